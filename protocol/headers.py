"""HTTP headers that mirror a modern message, and their comparison with the message.

MCP 2026-07-28 copies the version, the method, the name and marked tool arguments into headers, so
that proxies can route without reading bodies. A server that reads the body must reject a message
that differs from its headers (-32020), because a proxy may have routed by the header.
"""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct, field

from protocol.errors import Fault, ProtocolError
from protocol.jsonrpc import Request

VERSION: Final = "mcp-protocol-version"
METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
PARAM_PREFIX: Final = "mcp-param-"

#: The member of the params that `Mcp-Name` mirrors, per method.
_NAME_MEMBER: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "task_id",
    "tasks/update": "task_id",
    "tasks/cancel": "task_id",
}

_OPEN: Final = "=?base64?"
_CLOSE: Final = "?="
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SAFE_INTEGER: Final = 2**53 - 1


class _NameParams(Struct):
    name: Raw = Raw(b"")
    uri: Raw = Raw(b"")
    task_id: Raw = field(name="taskId", default=Raw(b""))


_name_params: Final = msgspec.json.Decoder(_NameParams)
_any: Final = msgspec.json.Decoder()

#: Header values by lower-case name; several values when a header was repeated.
Headers = Mapping[str, Sequence[str]]


class Mirrored(Struct, frozen=True):
    """A tool argument that a header mirrors: its property path, and the header name."""

    path: tuple[str, ...]
    header: str


def check_request(headers: Headers, request: Request, version: str | None) -> None:
    """Compare the standard headers with a request; `ProtocolError` (-32020) when they differ.

    `version` is the protocol version in the body, None when it is not a string.
    """
    header = _single(headers, VERSION, "MCP-Protocol-Version")
    if version is not None and header != version:
        raise _differs("MCP-Protocol-Version", header, version)
    method = _single(headers, METHOD, "Mcp-Method")
    if method != request.method:
        raise _differs("Mcp-Method", method, request.method)
    member = _NAME_MEMBER.get(request.method)
    if member is None:
        return
    name = decoded(_single(headers, NAME, "Mcp-Name"), "Mcp-Name")
    raw = bytes(getattr(_name_params.decode(request.params), member))
    if raw[:1] != b'"':
        return  # the method itself rejects a name that is missing or not a string
    value = msgspec.json.decode(raw, type=str)
    if name != value:
        raise _differs("Mcp-Name", name, value)


def check_arguments(headers: Headers, mirrored: Sequence[Mirrored], arguments: bytes) -> None:
    """Compare the `Mcp-Param-*` headers with the arguments that they mirror."""
    try:
        values = _any.decode(arguments)
    except msgspec.MsgspecError:
        return  # the tool will reject the arguments with a better message
    for entry in mirrored:
        value = _at(values, entry.path)
        found = headers.get(PARAM_PREFIX + entry.header.lower())
        name = f"Mcp-Param-{entry.header}"
        if value is None:
            if found:
                raise ProtocolError(
                    Fault.HEADER_MISMATCH, f"{name} is given, {'.'.join(entry.path)} is not"
                )
            continue
        text = decoded(_single(headers, PARAM_PREFIX + entry.header.lower(), name), name)
        if not _same(text, value):
            raise _differs(name, text, value)


def mirrored_in(schema: dict[str, Any]) -> tuple[Mirrored, ...]:
    """Return the arguments that a tool schema marks with `x-mcp-header`.

    Raises ValueError when a mark is invalid or two properties share a header.
    """
    found = tuple(_marked(schema, ()))
    names = [entry.header.lower() for entry in found]
    if len(set(names)) != len(names):
        raise ValueError("two properties have the same x-mcp-header")
    return found


def decoded(value: str, header: str) -> str:
    """Decode a header value: plain ASCII, or base64 of UTF-8 between its markers."""
    if not (value.startswith(_OPEN) and value.endswith(_CLOSE)):
        if not all(" " <= character <= "~" or character == "\t" for character in value):
            raise ProtocolError(
                Fault.HEADER_MISMATCH,
                f"{header} contains characters that are not allowed; encode it as base64",
            )
        return value
    coded = value[len(_OPEN) : -len(_CLOSE)]
    try:
        if not _BASE64.fullmatch(coded):
            raise ValueError(coded)
        return base64.b64decode(coded, validate=True).decode("utf-8", "strict")
    except (ValueError, binascii.Error):
        raise ProtocolError(
            Fault.HEADER_MISMATCH, f"{header} is not the base64 of UTF-8 text"
        ) from None


def _single(headers: Headers, name: str, spelling: str) -> str:
    values = headers.get(name, ())
    if len(values) != 1:
        how = "is missing" if not values else "is given more than once"
        raise ProtocolError(Fault.HEADER_MISMATCH, f"{spelling} {how}")
    return values[0]


def _differs(header: str, text: str, value: object) -> ProtocolError:
    return ProtocolError(
        Fault.HEADER_MISMATCH,
        f"{header} is {text[:100]!r}, the body says {str(value)[:100]!r}",
    )


def _at(values: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if not isinstance(values, dict):
            return None
        values = cast("dict[str, Any]", values).get(step)
    return values


def _same(text: str, value: Any) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, (int, float)):
        try:
            return float(text) == value and abs(value) <= _SAFE_INTEGER
        except ValueError:
            return False
    return isinstance(value, str) and text == value


def _marked(schema: dict[str, Any], path: tuple[str, ...]) -> list[Mirrored]:
    found: list[Mirrored] = []
    for name, entry in cast("dict[str, Any]", schema.get("properties", {})).items():
        if not isinstance(entry, dict):
            continue
        member = cast("dict[str, Any]", entry)
        header = member.get("x-mcp-header")
        if header is not None:
            if not isinstance(header, str) or not _TOKEN.fullmatch(header):
                raise ValueError(f"x-mcp-header of {name} is not a header name")
            if member.get("type") not in ("string", "integer", "boolean"):
                raise ValueError(f"x-mcp-header of {name} is on a type that cannot be mirrored")
            found.append(Mirrored((*path, name), header))
        found.extend(_marked(member, (*path, name)))
    return found
