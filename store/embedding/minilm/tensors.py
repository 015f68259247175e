"""Reader for the tensors of an ONNX file.

An ONNX file is a protocol buffers message. The `onnx` package can read it too, but it takes 34 MB
and brings a protobuf runtime. A message is a sequence of fields, each a key (number << 3 | type)
and a value: a variable-length integer (type 0), eight bytes (1), a length and that many bytes (2),
or four bytes (5).
"""

from collections.abc import Iterator

from msgspec import Struct

# Element types, as TensorProto.DataType numbers them.
FLOAT = 1
INT8 = 3


class Malformed(ValueError):
    """The bytes are not a valid ONNX model, or not this model."""


class Tensor(Struct, frozen=True):
    """An ONNX tensor: its name, element type, shape and raw bytes."""

    name: str
    kind: int
    shape: tuple[int, ...]
    data: bytes | memoryview


def read_tensors(model: memoryview) -> Iterator[Tensor]:
    """The initializers of an ONNX model (ModelProto.graph = 7, GraphProto.initializer = 5)."""
    for number, graph in fields(model):
        if number == 7 and isinstance(graph, memoryview):
            for inner, value in fields(graph):
                if inner == 5 and isinstance(value, memoryview):
                    yield _tensor(value)


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


def _tensor(message: memoryview) -> Tensor:
    """A TensorProto (dims = 1, data_type = 2, name = 8, raw_data = 9); other fields are skipped."""
    shape: list[int] = []
    kind = 0
    name = ""
    data: bytes | memoryview = b""
    for number, value in fields(message):
        match number, value:
            case 1, int():
                shape.append(value)
            case 1, memoryview():  # the packed form of a repeated integer
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
                pass
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
