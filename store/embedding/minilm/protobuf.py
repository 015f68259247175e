"""As much of protocol buffers as an ONNX file needs: reading tensors, writing a model.

The `onnx` package would do this too, at 60 MB and with a protobuf runtime of its own. A message is
a run of fields, each a key (number << 3 | type) and a value: a variable-length integer (type 0),
eight bytes (1), a length and that many bytes (2), or four bytes (5).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

FLOAT = 1
INT8 = 3
UINT8 = 2
INT64 = 7


class Malformed(ValueError):
    """The bytes are not the message they should be."""


class Tensor(Struct, frozen=True):
    """An ONNX tensor: its name, its element type (as ONNX numbers them), shape and raw bytes."""

    name: str
    kind: int
    shape: tuple[int, ...]
    data: bytes | memoryview


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Each field of a message: its number and its value."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        match key & 7:
            case 0:
                value, at = _varint(message, at)
                yield key >> 3, value
            case 1 | 5 as fixed:
                size = 8 if fixed == 1 else 4
                yield key >> 3, _slice(message, at, size)
                at += size
            case 2:
                size, at = _varint(message, at)
                yield key >> 3, _slice(message, at, size)
                at += size
            case _:
                raise Malformed(f"field of unknown type {key & 7}")


def read_tensors(model: memoryview) -> Iterator[Tensor]:
    """The initializers of an ONNX model (ModelProto.graph = 7, GraphProto.initializer = 5)."""
    for number, graph in fields(model):
        if number == 7 and isinstance(graph, memoryview):
            for inner, value in fields(graph):
                if inner == 5 and isinstance(value, memoryview):
                    yield _tensor(value)


def _tensor(message: memoryview) -> Tensor:
    shape: list[int] = []
    kind = 0
    name = ""
    data: bytes | memoryview = b""
    for number, value in fields(message):
        match number, value:
            case 1, int():
                shape.append(value)
            case 1, memoryview():
                at = 0
                while at < len(value):
                    size, at = _varint(value, at)
                    shape.append(size)
            case 2, int():
                kind = value
            case 8, memoryview():
                name = str(value, "utf-8")
            case 9, memoryview():
                data = value
            case _:
                pass  # names of doc strings and the like
    return Tensor(name, kind, tuple(shape), data)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if at >= len(message):
            raise Malformed("message ends inside a number")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise Malformed("number longer than 64 bits")


def _slice(message: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(message):
        raise Malformed("message ends inside a field")
    return message[at : at + size]


# --- writing ----------------------------------------------------------------------------------


def number(field: int, value: int) -> bytes:
    """An integer field."""
    return _packed(field << 3) + _packed(value)


def block(field: int, *parts: bytes | memoryview) -> bytes:
    """A field of bytes: a string, or a message inside this one."""
    body = b"".join(parts)
    return _packed(field << 3 | 2) + _packed(len(body)) + body


def text(field: int, value: str) -> bytes:
    return block(field, value.encode())


def tensor(name: str, kind: int, shape: Sequence[int], data: bytes | memoryview) -> bytes:
    """A TensorProto's fields."""
    dims = b"".join(number(1, size) for size in shape)
    return dims + number(2, kind) + text(8, name) + block(9, data)


def node(
    operator: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    domain: str = "",
    attributes: Mapping[str, int | float] | None = None,
) -> bytes:
    """A NodeProto's fields: an operator, what it takes and what it gives."""
    parts = [text(1, name) for name in inputs] + [text(2, name) for name in outputs]
    parts.append(text(4, operator))
    for name, value in (attributes or {}).items():
        if isinstance(value, float):
            body = _packed(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
        else:
            body = number(3, value) + number(20, 2)
        parts.append(block(5, text(1, name), body))
    if domain:
        parts.append(text(7, domain))
    return b"".join(parts)


def value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    """A ValueInfoProto's fields: the type of an input or output; named sizes are free."""
    sizes = b"".join(
        block(1, text(2, size) if isinstance(size, str) else number(1, size)) for size in shape
    )
    return text(1, name) + block(2, block(1, number(1, kind), block(2, sizes)))


def _packed(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
