"""HTTP messages: request headers, bounded bodies, responses and errors.

Every error has one schema: `{"error": {"code": …, "message": …}}`. The code is a word of `CODES`;
the message names the problem and the rule.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, Final

import msgspec
from msgspec import Struct

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]


class Pace(Struct, frozen=True, kw_only=True):
    """The timeouts and intervals of HTTP, in seconds."""

    #: Timeouts for the head of a request, for its body, and between requests.
    head: float = 5.0
    body: float = 30.0
    idle: float = 75.0
    #: A call that is silent for this long is answered as a stream, which can be kept alive.
    commit: float = 2.0
    keep_alive: float = 15.0
    #: A client that takes nothing of a waiting response for this long is disconnected.
    stall: float = 30.0
    #: How often the token file is checked between requests.
    tokens: float = 1.0


JSON: Final = (b"content-type", b"application/json")
#: Headers of every response: do not cache it, do not guess its type.
PLAIN: Final[RawHeaders] = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
CLOSE: Final = (b"connection", b"close")

#: The code word of each status; Context Harness defines some of them.
CODES: Final[dict[int, str]] = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "timeout",
    409: "conflict",
    410: "gone",
    413: "too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    431: "headers_too_large",
    500: "internal",
    503: "unavailable",
    505: "version_not_supported",
    507: "full",
}

#: A parameter of a media type: name, quoted value, plain value. Every name is tried once, because
#: trying it again from each of its characters takes quadratic time.
_PARAMETER: Final = re.compile(
    r"""(?<![^\s;="])([^\s;="]++)=(?:"((?:[^"\\]|\\.)*+)"|([^\s;"]*+))"""
)

_encoder: Final = msgspec.json.Encoder()


class Refusal(Exception):
    """An HTTP error response: its status, message, code word and headers."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "",
        headers: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code or CODES[status]
        self.message = message
        self.headers = list(headers)


def error_body(code: str, message: str) -> bytes:
    """The one error schema."""
    return _encoder.encode({"error": {"code": code, "message": message}})


def headers_of(scope: Scope) -> dict[str, list[str]]:
    """Header values by lower-case name, in order, without surrounding whitespace."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1").strip(" \t"))
    return found


def only(headers: dict[str, list[str]], name: str) -> str | None:
    """The value of a header that must not be repeated; None if absent."""
    values = headers.get(name)
    if values is None:
        return None
    if len(values) != 1:
        raise Refusal(400, f"the {name} header must not be repeated")
    return values[0]


async def reply(
    send: Send, status: int, body: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """Send a complete response; JSON, unless it is empty or `headers` name another type."""
    given: RawHeaders = [*PLAIN, *headers]
    if status not in (202, 204):
        given.append((b"content-length", b"%d" % len(body)))
        if not any(name == b"content-type" for name, _ in given):
            given.append(JSON)
    elif status == 202:
        given.append((b"content-length", b"0"))
    await send({"type": "http.response.start", "status": status, "headers": given})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, refusal: Refusal) -> None:
    body = error_body(refusal.code, refusal.message)
    await reply(send, refusal.status, body, refusal.headers)


def require_json(headers: dict[str, list[str]]) -> None:
    """Raise 415 unless the body is JSON. A page cannot send JSON without a CORS preflight."""
    kind, _, parameters = (only(headers, "content-type") or "").partition(";")
    if kind.strip().lower() != "application/json":
        raise Refusal(415, "Content-Type must be application/json", headers=[CLOSE])
    for name, quoted, plain in _PARAMETER.findall(parameters):
        if name.lower() == "charset" and (quoted or plain).lower() not in ("utf-8", "utf8"):
            raise Refusal(415, "the body must be UTF-8", headers=[CLOSE])
    codings = ",".join(headers.get("content-encoding", ())).split(",")
    if any(coding.strip().lower() not in ("", "identity") for coding in codings):
        raise Refusal(415, "the body must not be compressed", headers=[CLOSE])


async def read_body(headers: dict[str, list[str]], receive: Receive, limit: int) -> bytes:
    """The body, up to `limit` bytes (`connection` limits its time); `Gone` if the client left."""
    announced = only(headers, "content-length")
    if announced is not None and announced.isdigit() and int(announced) > limit:
        raise _too_large(limit)
    message = await _next(receive)
    body: bytes = message["body"]
    if message["more_body"]:
        pieces = [body]
        size = len(body)
        while message["more_body"] and size <= limit:
            message = await _next(receive)
            pieces.append(message["body"])
            size += len(pieces[-1])
        body = b"".join(pieces)
    if len(body) > limit:
        raise _too_large(limit)
    return body


class Gone(Exception):
    """The client disconnected before its request was complete."""


async def _next(receive: Receive) -> MutableMapping[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit} bytes", headers=[CLOSE])


def accepts(headers: dict[str, list[str]], *kinds: str) -> bool:
    """Whether the Accept header allows all of these media types; absent, it allows any."""
    values = headers.get("accept")
    if values is None:
        return True
    ranges: set[str] = set()
    for part in ",".join(values).split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if "q=0" not in parameters:
            ranges.add(kind)
    return all(
        kind in ranges or "*/*" in ranges or kind.partition("/")[0] + "/*" in ranges
        for kind in kinds
    )
