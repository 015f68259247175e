"""Frames: one line of bytes, parsed strictly. Problems are stored in the frame, not raised."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["request", "notification", "result", "error", "batch", "invalid"]


class _NotStrictJson(ValueError):
    pass


def _no_constant(word: str) -> Any:
    raise _NotStrictJson(f"{word} is not JSON")


def _integer(digits: str) -> Any:
    # Conversion takes quadratic time, and no case asks for a number of thousands of digits.
    return int(digits) if len(digits) < 4000 else float("inf")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NotStrictJson(f"member {twice!r} occurs twice in one object")
    return members


@dataclass(frozen=True)
class Frame:
    """One line from the server."""

    raw: bytes
    value: Any
    problem: str | None

    @property
    def kind(self) -> Kind:
        if self.problem is not None:
            return "invalid"
        return kind_of(self.value)

    @property
    def id(self) -> Any:
        return self.value.get("id") if isinstance(self.value, dict) else None

    @property
    def has_id(self) -> bool:
        return isinstance(self.value, dict) and self.value.get("id") is not None

    @property
    def method(self) -> str | None:
        method = self.value.get("method") if isinstance(self.value, dict) else None
        return method if isinstance(method, str) else None

    @property
    def params(self) -> dict[str, Any]:
        params = self.value.get("params") if isinstance(self.value, dict) else None
        return params if isinstance(params, dict) else {}

    @property
    def result(self) -> Any:
        return self.value.get("result") if isinstance(self.value, dict) else None

    @property
    def error(self) -> dict[str, Any]:
        error = self.value.get("error") if isinstance(self.value, dict) else None
        return error if isinstance(error, dict) else {}

    @property
    def code(self) -> Any:
        return self.error.get("code")


def kind_of(value: Any) -> Kind:
    """The JSON-RPC kind of a JSON value."""
    if isinstance(value, list):
        return "batch"
    if not isinstance(value, dict):
        return "invalid"
    if "method" in value:
        if "result" in value or "error" in value:
            return "invalid"
        return "request" if "id" in value else "notification"
    if "result" in value and "error" not in value:
        return "result"
    if "error" in value and "result" not in value:
        return "error"
    return "invalid"


def parse(raw: bytes) -> Frame:
    """Parse one line strictly by RFC 8259 (JSON) and RFC 3629 (UTF-8)."""
    if raw.startswith(b"\xef\xbb\xbf"):
        return Frame(raw, None, "starts with a byte order mark")
    try:
        text = raw.decode("utf-8")
        value = json.loads(
            text,
            parse_constant=_no_constant,
            parse_int=_integer,
            object_pairs_hook=_unique,
        )
    except UnicodeDecodeError as error:
        return Frame(raw, None, f"is not UTF-8 (byte {error.start})")
    except _NotStrictJson as error:
        return Frame(raw, None, str(error))
    except RecursionError:
        return Frame(raw, None, "is nested too deeply to read")
    except ValueError as error:
        return Frame(raw, None, f"is not JSON ({error})")
    return Frame(raw, value, None)


def dump(value: Any) -> bytes:
    """Encode a message as compact UTF-8 JSON on one line, without the LF."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def key(value: Any) -> tuple[str, Any]:
    """An id as a dictionary key that distinguishes 1, 1.0, true and "1"."""
    return type(value).__name__, repr(value) if isinstance(value, list | dict) else value


def same(one: Any, other: Any) -> bool:
    """Equal in value and in JSON type."""
    return type(one) is type(other) and bool(one == other)


def show(raw: bytes, limit: int = 300) -> str:
    """Bytes as printable, shortened text for messages and reports."""
    cut = raw if len(raw) <= limit else raw[:limit]
    text = cut.decode("utf-8", "backslashreplace")
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if cut is raw else f"{text}… ({len(raw)} bytes)"


def parts_of(frame: Frame) -> list[Frame]:
    """The messages of a frame; several if it is a batch."""
    if frame.kind != "batch" or not frame.value:
        return [frame]
    return [Frame(dump(element), element, None) for element in frame.value]
