"""Checks the headers of a modern request against its body."""

from __future__ import annotations

import base64
from collections.abc import Callable
from email.message import Message
from typing import Any

from conformance.broken import fixtures
from conformance.broken.http_connection import HttpError
from conformance.client.http_headers import NAMED
from conformance.revisions import PROTOCOL_VERSION, E

Quirk = Callable[[str], Any]
ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")


def check_mirrored_headers(
    headers: Message, quirk: Quirk, message: dict[str, Any], meta: dict[str, Any], id: Any
) -> None:
    """Reject a request whose headers contradict its body."""
    mismatch = HttpError(400, -32020, id)
    if not quirk("http_repeated"):
        for name in ROUTING:
            if len(headers.get_all(name, [])) > 1:
                raise mismatch
    _check_version(headers, quirk, meta, mismatch)
    method = headers.get("mcp-method")
    if method is None and not quirk("http_no_method"):
        raise mismatch
    wanted = str(message.get("method"))
    if quirk("http_method_case") and method is not None:
        method, wanted = method.lower(), wanted.lower()
    if method is not None and method.strip() != wanted and not quirk("http_any_method"):
        raise mismatch
    if quirk("http_strict_case") and "MCP-METHOD" in list(headers):
        raise mismatch
    params = message.get("params")
    member = NAMED.get(str(message.get("method")))
    if member == "taskId" and quirk("http_any_task_name"):
        return
    if member is not None and isinstance(params, dict) and isinstance(params.get(member), str):
        _check_name(headers, quirk, params[member], mismatch)
    if message.get("method") == "tools/call" and isinstance(params, dict):
        _check_arguments(headers, quirk, params, mismatch)


def _check_version(
    headers: Message, quirk: Quirk, meta: dict[str, Any], mismatch: HttpError
) -> None:
    said = headers.get("mcp-protocol-version")
    if said is None:
        if quirk("http_no_version"):
            return
        raise mismatch
    spoken = meta[PROTOCOL_VERSION]
    if not isinstance(spoken, str):
        return
    if quirk("http_unequal") and said.strip() != E and spoken != E:
        raise HttpError(400, -32022, mismatch.id)
    if said.strip() != spoken and not quirk("http_any_version"):
        raise mismatch


def _check_name(headers: Message, quirk: Quirk, name: str, mismatch: HttpError) -> None:
    said = headers.get("mcp-name")
    if said is None:
        if quirk("http_no_name"):
            return
        raise mismatch
    if said.startswith("=?base64?") and quirk("http_bad_base64") and _decoded(said) is None:
        return
    if not quirk("http_plain_name"):
        said = _decoded(said)
    if said != name and not quirk("http_any_name"):
        raise mismatch


def _decoded(value: str) -> str | None:
    if not value.startswith("=?base64?") or not value.endswith("?="):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None


def _check_arguments(
    headers: Message, quirk: Quirk, params: dict[str, Any], mismatch: HttpError
) -> None:
    schema = fixtures.SCHEMAS.get(str(params.get("name")), {})
    arguments = params.get("arguments")
    known = {
        f"mcp-param-{row['x-mcp-header']}".lower(): name
        for name, row in schema.get("properties", {}).items()
        if "x-mcp-header" in row
    }
    if quirk("http_param_strange") and known:
        for header in headers:
            if header.lower().startswith("mcp-param-") and header.lower() not in known:
                raise mismatch
    for header, name in known.items():
        value = arguments.get(name) if isinstance(arguments, dict) else None
        said = headers.get(header)
        if value is None:
            if quirk("http_param_null") and said is None:
                raise mismatch
            continue
        if said is None:
            if not quirk("http_param_missing"):
                raise mismatch
        elif not _equal(said, value, quirk) and not quirk("http_param_other"):
            raise mismatch


def _equal(said: str, value: Any, quirk: Quirk) -> bool:
    if isinstance(value, int) and not quirk("http_param_letters"):
        try:
            return float(said) == value
        except ValueError:
            return False
    read = said if quirk("http_param_plain") else _decoded(said)
    return read == str(value)
