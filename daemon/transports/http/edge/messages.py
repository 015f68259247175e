"""HTTP in small pieces: the headers of a request, its body within bounds, an answer.

Every refusal has the one error schema: `{"error": {"code": …, "message": …}}`, where the code is a
word of `CODES` and the message says what was wrong and what would be right.
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
    """How long we wait for what, in seconds."""

    #: For the head of a request, for its body, and between requests.
    head: float = 5.0
    body: float = 30.0
    idle: float = 75.0
    #: A call that has said nothing for this long is answered as a stream, which can be kept alive.
    commit: float = 2.0
    keep_alive: float = 15.0
    #: How often the token file is looked at when nobody asks for anything.
    tokens: float = 1.0


JSON: Final = (b"content-type", b"application/json")
#: Said with every answer: it is for this caller only, and nothing else than its type says.
PLAIN: Final[RawHeaders] = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]
CLOSE: Final = (b"connection", b"close")

#: The code word of each status; seed 004's where it has one.
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
    507: "full",
}

#: A parameter of a media type: its name, and its value in quotes or without.
_PARAMETER: Final = re.compile(r"""([^\s;="]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))""")

_encoder: Final = msgspec.json.Encoder()


class Refusal(Exception):
    """An HTTP request that is answered with an error: its status, and what to do about it."""

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
    """Header values by lower-case name, in order, without the blanks around them (H20)."""
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1").strip(" \t"))
    return found


def only(headers: dict[str, list[str]], name: str) -> str | None:
    """The value of a header that may be given once; None when absent."""
    values = headers.get(name)
    if values is None:
        return None
    if len(values) != 1:
        raise Refusal(400, f"the {name} header is given more than once")
    return values[0]


async def reply(
    send: Send, status: int, body: bytes = b"", headers: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    """A whole answer; JSON unless it is empty or says another type itself."""
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
    """415 unless the body is JSON: what a web page can send without asking never is."""
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
    """The body, within its size (its time is the door's business); `Gone` if the client left."""
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
    """The client left before its request was whole."""


async def _next(receive: Receive) -> MutableMapping[str, Any]:
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit} bytes", headers=[CLOSE])


def accepts(headers: dict[str, list[str]], *kinds: str) -> bool:
    """Whether an Accept header (absent: anything) takes each of these media types."""
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
