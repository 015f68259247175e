"""Mutations of frames: of the JSON tree and of the encoded bytes.

The module has its own JSON writer, because the standard one cannot write raw number tokens such as
`1e400`, duplicate keys, lone surrogates and NaN. All choices come from the given `Random`, so a
seed reproduces a run.
"""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final


class Token(str):
    """Text that is written into the JSON unchanged, valid or not."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object as a list of members, which allows duplicate keys."""


NUMBERS: Final = ("1e400", "-0", "1.5", "1.0", "9007199254740993", "1" * 40, "9" * 5000, "1E+2")
NOT_JSON: Final = (
    "NaN",
    "Infinity",
    "-Infinity",
    "01",
    "+1",
    ".5",
    "1.",
    "0x10",
    "'a'",
    "undefined",
)
STRINGS: Final = (
    '""',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83e\\udde0"',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\x41"',
    '"unterminated',
    '"\x01"',
    '"\t"',
    '"\u2028"',
    '"' + "k" * 10_000 + '"',
    '"../../etc/passwd"',
    '"2025-03-26"',
)
PLAIN: Final[tuple[Any, ...]] = (None, True, False, 0, -1, [], {}, [[]], [None], {"": {}}, "1", 1)
METHODS: Final = ("ping", "initialize", "Tools/List", "tools/call", "", "rpc.x", "tools/list ")
KEYS: Final = ("id", "method", "params", "jsonrpc", "result", "error", "_meta", "name", "arguments")
BAD_UTF8: Final = (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80")
SPECKS: Final = (b"\x00", b"\xef\xbb\xbf", b"\r", b"\x0b", b"\x0c", b"\xc2\x85", b"\n", b"\\", b'"')


def write(node: Any) -> bytes:
    """Encode a node as JSON text, including tokens and duplicate keys."""
    return _text(node).encode("utf-8", "surrogatepass")


def _text(node: Any) -> str:
    if isinstance(node, Token):
        return str(node)
    if isinstance(node, Pairs):
        return "{" + ",".join(f"{json.dumps(key)}:{_text(value)}" for key, value in node) + "}"
    if isinstance(node, dict):
        return _text(Pairs(node.items()))
    if isinstance(node, list):
        return "[" + ",".join(map(_text, node)) + "]"
    return json.dumps(node, ensure_ascii=False)


def strange(rng: Random, known: list[Any]) -> Any:
    """An unexpected value."""
    kind = rng.random()
    if kind < 0.35:
        return rng.choice(PLAIN)
    if kind < 0.55:
        return Token(rng.choice(NUMBERS))
    if kind < 0.62:
        return Token(rng.choice(NOT_JSON))
    if kind < 0.85:
        return Token(rng.choice(STRINGS))
    if kind < 0.9:
        depth = rng.choice((20, 200, 2_000, 20_000))
        opening, closing = rng.choice((("[", "]"), ('{"a":', "}")))
        # One in three is not closed: deep nesting combined with truncated text.
        return Token(opening * depth + "0" + (closing * depth if rng.random() < 0.67 else ""))
    return rng.choice(known) if known else 0


def mutate_tree(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    """Mutate the tree once: replace a value, or remove, duplicate, rename or add a member."""
    return rng.choice(_WOUNDS)(rng, frame, known)


def _replace_member(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    key = rng.choice(list(frame))
    return {**frame, key: strange(rng, known)}


def _replace_deeper(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    params = frame.get("params")
    if not isinstance(params, dict) or not params:
        return _replace_member(rng, frame, known)
    key = rng.choice(list(params))
    inner = params[key]
    if isinstance(inner, dict) and inner and rng.random() < 0.6:
        hurt: Any = {**inner, rng.choice(list(inner)): strange(rng, known)}
    else:
        hurt = strange(rng, known)
    return {**frame, "params": {**params, key: hurt}}


def _replace_id(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    return {**frame, "id": strange(rng, known)}


def _collide(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    return {**frame, "id": rng.choice(known)} if known else frame


def _replace_method(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    return {**frame, "method": rng.choice(METHODS)}


def _lose_member(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    lost = rng.choice(list(frame))
    return {key: value for key, value in frame.items() if key != lost}


def _double_member(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    pairs = Pairs(frame.items())
    pairs.insert(rng.randrange(len(pairs) + 1), (rng.choice(list(frame)), strange(rng, known)))
    return pairs


def _add_member(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    return {**frame, rng.choice(KEYS): strange(rng, known)}


def _wrap(rng: Random, frame: dict[str, Any], known: list[Any]) -> Any:
    others = [strange(rng, known) for _ in range(rng.choice((0, 0, 1, 3)))]
    batch = [frame, *others]
    rng.shuffle(batch)
    return batch if rng.random() < 0.9 else [batch]


_Wound = Callable[[Random, dict[str, Any], list[Any]], Any]
_WOUNDS: Final[tuple[_Wound, ...]] = (
    _replace_member,
    _replace_deeper,
    _replace_deeper,
    _replace_id,
    _collide,
    _replace_method,
    _lose_member,
    _double_member,
    _add_member,
    _wrap,
)


def mutate_bytes(rng: Random, line: bytes, other: bytes) -> bytes:
    """Apply one mutation to the bytes of a frame; `other` is another frame to splice with."""
    at = rng.randrange(len(line) + 1)
    kind = rng.randrange(9)
    if kind == 0 and line:
        spot = min(at, len(line) - 1)
        flipped = line[spot] ^ (1 << rng.randrange(8))
        return line[:spot] + bytes([flipped]) + line[spot + 1 :]
    if kind == 1:
        return line[:at]
    if kind == 2:
        until = min(len(line), at + rng.randrange(1, 20))
        return line[:at] + line[until:]
    if kind == 3:
        until = min(len(line), at + rng.randrange(1, 60))
        return line[:until] + line[at:]
    if kind == 4:
        return line[:at] + rng.choice(BAD_UTF8) + line[at:]
    if kind == 5:
        return line[:at] + rng.choice(SPECKS) + line[at:]
    if kind == 6:
        return line[:at] + other[rng.randrange(len(other) + 1) :]
    if kind == 7:
        return line + rng.choice((b" ", b"\r", b"\t", b"}", b"{}", b",", b"//x", other))
    return rng.randbytes(rng.randrange(1, 200)).replace(b"\n", b"")
