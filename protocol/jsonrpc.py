"""JSON-RPC 2.0 messages: strict decoding of bytes into typed values, and encoding.

`params`, `result` and `error` stay raw JSON, because their type depends on the method. A request id
is kept as its original bytes, so it is echoed exactly, even when it is a huge number.

The typed decoder is fast, but it stops at the first wrong member and reports invalid JSON and a
wrong shape alike. A rejected message is therefore decoded a second time, slowly, to distinguish
-32700 (not JSON) from -32600 (JSON, but not a message), to find the id and to explain the error.
Some input passes the typed decoder although we reject it: invalid UTF-8, deep nesting, U+0000.
Fast byte searches find it before decoding; on an ordinary line they cost almost nothing.
"""

import json
import re
from collections.abc import Iterator
from typing import Final, Literal, NoReturn, cast

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from protocol.errors import ErrorObject, Fault, error_object
from protocol.revisions import Revision

MAX_DEPTH: Final = 64
MAX_NODES: Final = 100_000
LONE_SURROGATE: Final = "a lone surrogate escape is not text"

_ABSENT: Final = Raw(b"")
_STRINGS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_INVALID_TEXT: Final = re.compile("[\0\ud800-\udfff]")
_NUL_ESCAPE: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_INTEGER: Final = re.compile(rb"(-?(?:0|[1-9][0-9]*))(?:\.0+)?")
_BRACKETS: Final = b"[]{}"
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(_BRACKETS))
_AS_SQUARE: Final = bytes.maketrans(b"{}", b"[]")
_SEPARATORS: Final = bytes(set(range(256)) - set(b",[{"))


class _Frame(Struct, frozen=True, gc=False):
    jsonrpc: Literal["2.0"]
    id: Raw = _ABSENT
    method: str | UnsetType = UNSET
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class Request(Struct, frozen=True, gc=False):
    """A message that expects an answer. `id` is the raw JSON of its id, `key` its identity."""

    id: bytes
    key: bytes
    method: str
    params: bytes


class Notification(Struct, frozen=True, gc=False):
    """A message that is never answered."""

    method: str
    params: bytes


class Response(Struct, frozen=True, gc=False):
    """The peer's answer to our request: exactly one of `result` and `error` is not empty."""

    key: bytes
    result: bytes
    error: bytes


class Invalid(Struct, frozen=True):
    """Bytes that are not a message: the error to send, and the id (empty if unreadable)."""

    id: bytes
    error: ErrorObject
    fault: Fault


Message = Request | Notification | Response | Invalid

_frame_decoder: Final = msgspec.json.Decoder(_Frame)
_array_decoder: Final = msgspec.json.Decoder(list[Raw])
_any_decoder: Final = msgspec.json.Decoder()
_object_decoder: Final = msgspec.json.Decoder(dict[str, Raw])

_NO_PARAMS: Final = b"{}"


def is_array(frame: bytes) -> bool:
    """Whether a frame is a batch rather than one message."""
    return frame.lstrip(b" \t\r\n")[:1] == b"["


def decode(frame: bytes) -> Message:
    """Decode one frame into one message; never raises."""
    rejected = _unfit(frame)
    if rejected is not None:
        return rejected
    return decode_fit(frame)


def decode_batch(frame: bytes) -> list[Message] | Invalid:
    """Decode the messages of a batch; `Invalid` when it is not JSON or is empty."""
    rejected = _unfit(frame)
    if rejected is not None:
        # An array is never a notification, so this is always `Invalid`.
        return rejected if isinstance(rejected, Invalid) else _unparsed("not a batch")
    try:
        elements = _array_decoder.decode(frame)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return _not_json(frame) or _invalid(b"", str(error))
    if not elements:
        return _invalid(b"", "a batch holds at least one message")
    return [decode_fit(bytes(element)) for element in elements]


def decode_fit(frame: bytes) -> Message:
    """Like `decode`, for a frame that is known to be valid UTF-8 of bounded depth."""
    try:
        message = _frame_decoder.decode(frame)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return _diagnose(frame)
    raw_id = bytes(message.id)
    if message.method is not UNSET:
        if message.result or message.error:
            return _invalid(raw_id, "a message has a method or a result, not both")
        params = bytes(message.params)
        if params[:1] != b"{":
            if params in (b"", b"null"):
                params = _NO_PARAMS
            elif not raw_id:
                params = _NO_PARAMS  # a notification is never answered, not even with an error
            else:
                return _bad_params(raw_id, "params must be an object")
        if not raw_id:
            return Notification(message.method, params)
        key = identity(raw_id)
        if not key:
            return _invalid(b"", "id must be a string or an integer")
        return Request(raw_id, key, message.method, params)
    return _response_or_invalid(message, raw_id)


def unfit(body: bytes) -> str:
    """Return the reason to reject a REST body before decoding it; empty when there is none.

    The rules are those of messages: strict UTF-8, bounded depth and number of values, no U+0000.
    """
    if b"\\u0000" in body and _NUL_ESCAPE.search(body):
        return _named(body, _NUL_RULE)
    rejected = _unfit(body)
    if not isinstance(rejected, Invalid) or rejected.error.data is UNSET:
        return ""
    return str(rejected.error.data["details"]).replace("a message", "the body")


def not_json(body: bytes, error: Exception) -> str:
    """Return the reason why a REST body could not be decoded.

    The decoder reports a lone surrogate as truncated input, so that case is checked here.
    """
    if b"\\u" in body and _is_json_with_surrogates(body):
        return LONE_SURROGATE
    return f"the body is not JSON: {error}"


def identity(raw_id: bytes) -> bytes:
    """Return the canonical form of an id: 1 equals 1.0, "a" equals "\\u0061", 1 differs from "1".

    Empty when the JSON value is not allowed as an id.
    """
    if raw_id[:1] == b'"':
        if b"\\" not in raw_id:
            return raw_id
        return b'"' + msgspec.json.decode(raw_id, type=str).encode() + b'"'
    if raw_id.isdigit():
        return raw_id
    number = _INTEGER.fullmatch(raw_id)
    if number is None:
        return b""
    return b"0" if number[1] == b"-0" else number[1]


def success(raw_id: bytes, result: bytes) -> bytes:
    """Encode the frame of a result; `result` is encoded JSON."""
    return b'{"jsonrpc":"2.0","id":' + raw_id + b',"result":' + result + b"}\n"


def failure(raw_id: bytes, error: ErrorObject, revision: Revision | None) -> bytes:
    """Encode the frame of an error; the revision decides if a missing id is null or absent."""
    body = _encoder.encode(error)
    if raw_id:
        return b'{"jsonrpc":"2.0","id":' + raw_id + b',"error":' + body + b"}\n"
    if revision is None or revision.null_error_id:
        return b'{"jsonrpc":"2.0","id":null,"error":' + body + b"}\n"
    return b'{"jsonrpc":"2.0","error":' + body + b"}\n"


def notification(method: str, params: bytes) -> bytes:
    """Encode the frame of a notification; `params` is encoded JSON."""
    return b'{"jsonrpc":"2.0","method":"' + method.encode() + b'","params":' + params + b"}\n"


def request(raw_id: bytes, method: str, params: bytes) -> bytes:
    """Encode the frame of a request that we send."""
    head = b'{"jsonrpc":"2.0","id":' + raw_id + b',"method":"' + method.encode()
    return head + b'","params":' + params + b"}\n"


_encoder: Final = msgspec.json.Encoder()


# --- rejected frames -------------------------------------------------------------------------


def _unfit(frame: bytes) -> Notification | Invalid | None:
    """Reject invalid UTF-8, deep nesting, too many values and U+0000, which the decoder accepts."""
    if not frame.isascii():
        try:
            frame.decode("utf-8", "strict")
        except UnicodeDecodeError as error:
            return _unparsed(f"byte {error.start} is not valid UTF-8")
    if frame.count(b"[") + frame.count(b"{") > MAX_DEPTH:
        bare = _STRINGS.sub(b"", frame)
        if _deeper_than(bare, MAX_DEPTH):
            return _invalid(b"", f"nesting is deeper than {MAX_DEPTH} levels")
        if len(bare.translate(None, _SEPARATORS)) > MAX_NODES:
            return _invalid(_find_id(frame), f"a message holds at most {MAX_NODES} values")
    elif frame.count(b",") > MAX_NODES:
        bare = _STRINGS.sub(b"", frame)
        if bare.count(b",") > MAX_NODES:
            return _invalid(_find_id(frame), f"a message holds at most {MAX_NODES} values")
    if b"\\u0000" in frame and _NUL_ESCAPE.search(frame):
        return _refuse_text(frame, _NUL_RULE)
    return None


def _deeper_than(bare: bytes, limit: int) -> bool:
    """Return whether brackets nest deeper than `limit`, by removing one level per pass."""
    brackets = bare.translate(_AS_SQUARE, _NOT_BRACKETS)
    for _ in range(limit):
        if not brackets:
            return False
        peeled = brackets.replace(b"[]", b"")
        if len(peeled) == len(brackets):
            return False  # unbalanced, so not JSON; the decoder will report it
        brackets = peeled
    return bool(brackets)


def _diagnose(frame: bytes) -> Notification | Invalid:
    """Explain why a frame is not a message: not JSON (-32700), or the wrong shape (-32600)."""
    try:
        members = _object_decoder.decode(frame)
    except msgspec.ValidationError:
        # Raised at the first character; the rest may not be JSON.
        return _not_json(frame) or _invalid(b"", "a message is a JSON object")
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        if b"\\u" in frame and _is_json_with_surrogates(frame):
            return _refuse_text(frame, LONE_SURROGATE)
        return _unparsed(str(error))
    raw_id = bytes(members.get("id", b""))
    if raw_id and not identity(raw_id):
        return _invalid(b"", "id must be a string or an integer")
    if bytes(members.get("jsonrpc", b"")) != b'"2.0"':
        return _invalid(raw_id, 'jsonrpc must be the string "2.0"')
    return _invalid(raw_id, "method must be a string")


def _not_json(frame: bytes) -> Invalid | None:
    try:
        _any_decoder.decode(frame)
    except msgspec.ValidationError:
        return None  # JSON, but with a number out of Python's range
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        return _unparsed(str(error))
    return None


def _response_or_invalid(message: _Frame, raw_id: bytes) -> Response | Invalid:
    result, error = bytes(message.result), bytes(message.error)
    key = identity(raw_id)
    if not key and (raw_id or not error) and not (raw_id == b"null" and error):
        return _invalid(b"", "id must be a string or an integer")
    if bool(result) == bool(error):
        return _invalid(raw_id, "a message has a method, a result or an error")
    return Response(key, result, error)


def _is_json_with_surrogates(frame: bytes) -> bool:
    def no_constants(text: str) -> NoReturn:
        raise ValueError(text)

    try:
        json.loads(frame, parse_constant=no_constants)
    except (ValueError, RecursionError):
        return False
    return True


def _find_id(frame: bytes) -> bytes:
    """Return the id of a frame that will be rejected; empty when it cannot be read."""
    try:
        raw_id = bytes(_frame_decoder.decode(frame).id)
        return raw_id if raw_id and identity(raw_id) else b""
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return b""


_NUL_RULE: Final = "U+0000 is not accepted in text"
_MAX_PATH: Final = 200


def _named(body: bytes, rule: str) -> str:
    """Prefix a rule with the path of the text that breaks it."""
    try:
        return _with_path(json.loads(body), rule)
    except (ValueError, RecursionError):
        return rule


def _with_path(value: object, rule: str) -> str:
    path = next(_invalid_text_paths(value), "").removeprefix(".")
    path = path.encode("utf-8", "replace").decode()
    return f"{path[:_MAX_PATH]}: {rule}" if path else rule


def _invalid_text_paths(value: object, path: str = "") -> Iterator[str]:
    """Yield the paths of rejected texts, such as `params.arguments.tags[2]`."""
    if isinstance(value, str):
        if _INVALID_TEXT.search(value):
            yield path
    elif isinstance(value, list):
        for index, element in enumerate(cast("list[object]", value)):
            yield from _invalid_text_paths(element, f"{path}[{index}]")
    elif isinstance(value, dict):
        for name, member in cast("dict[str, object]", value).items():
            if _INVALID_TEXT.search(name):
                yield path  # the name itself cannot be shown, so name the object around it
            else:
                yield from _invalid_text_paths(member, f"{path}.{name}")


def _refuse_text(frame: bytes, details: str) -> Notification | Invalid:
    """Reject a message for its text; the JSON is well-formed, so the error has the id."""
    try:
        value: object = json.loads(frame)
    except (ValueError, RecursionError):
        return _unparsed(details)
    raw_id = b""
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        method = members.get("method")
        if "id" not in members and isinstance(method, str):
            return Notification(method, _NO_PARAMS)
        raw_id = json.dumps(members.get("id"), ensure_ascii=False).encode(errors="ignore")
        if _NUL_ESCAPE.search(raw_id) or not _is_same(raw_id, members.get("id")):
            raw_id = b""  # the rejected text is in the id itself
    details = _with_path(cast("object", value), details)
    if not identity(raw_id):
        return _invalid(b"", details)
    return _refusal(raw_id, Fault.INVALID_PARAMS, details)


def _is_same(raw_id: bytes, value: object) -> bool:
    return bool(json.loads(raw_id) == value)


def _bad_params(raw_id: bytes, details: str) -> Invalid:
    if not identity(raw_id):
        return _invalid(b"", "id must be a string or an integer")
    return _refusal(raw_id, Fault.INVALID_PARAMS, details)


def _invalid(raw_id: bytes, details: str) -> Invalid:
    if raw_id and not identity(raw_id):
        raw_id = b""
    return _refusal(raw_id, Fault.INVALID_REQUEST, details)


def _unparsed(details: str) -> Invalid:
    return _refusal(b"", Fault.PARSE_ERROR, details)


def _refusal(raw_id: bytes, fault: Fault, details: str) -> Invalid:
    return Invalid(raw_id, error_object(fault, details), fault)
