"""The official JSON schemas as a second oracle for every message from a server.

The definitions name their methods (`properties.method.const`). The result of `XRequest` is
`XResult`, or `EmptyResult` where there is none. In 2026-07-28 a result may also be an
`InputRequiredResult`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from conformance import json_schema, revisions


@cache
def _schema(revision: str) -> dict[str, Any]:
    text = resources.files("conformance.official").joinpath(f"{revision}.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def _definitions(revision: str) -> dict[str, Any]:
    schema = _schema(revision)
    found: dict[str, Any] = schema.get("$defs") or schema["definitions"]
    return found


@cache
def _by_method(revision: str, kind: str) -> dict[str, str]:
    """The definitions of one kind ("Request", "Notification") by their method."""
    found = {}
    for name, definition in _definitions(revision).items():
        method = definition.get("properties", {}).get("method", {}).get("const")
        if name.endswith(kind) and isinstance(method, str):
            found[method] = name
    return found


def _check(revision: str, name: str, value: Any) -> str | None:
    wrong = json_schema.check_value(value, _definitions(revision)[name], _schema(revision))
    return None if wrong is None else f"not a {name}: {wrong}"


def check_result(revision: str, method: str, result: Any) -> str | None:
    """The first violation in the result of a request; None if it is valid or unknown."""
    request = _by_method(revision, "Request").get(method)
    if request is None:
        return None
    name = request.removesuffix("Request") + "Result"
    asks = isinstance(result, dict) and result.get("resultType") == "input_required"
    if asks and revision in revisions.MODERN:
        name = "InputRequiredResult"
    if name not in _definitions(revision):
        name = "EmptyResult"
    return _check(revision, name, result)


def check_notification(revision: str, message: Any, method: str) -> str | None:
    """The first violation in a notification; None if it is valid or unknown."""
    name = _by_method(revision, "Notification").get(method)
    return None if name is None else _check(revision, name, message)


def check_request(revision: str, message: Any, method: str) -> str | None:
    """The first violation in a request of the server; None if it is valid or unknown."""
    name = _by_method(revision, "Request").get(method)
    return None if name is None else _check(revision, name, message)


def check_error(revision: str, message: Any) -> str | None:
    """The first violation in an error response. An error may lack an id that was unreadable."""
    names = ("JSONRPCErrorResponse", "JSONRPCError")
    name = next(name for name in names if name in _definitions(revision))
    if isinstance(message, dict) and message.get("id") is None:
        message = {**message, "id": 0}
    return _check(revision, name, message)
