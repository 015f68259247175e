"""Reading the tensors of an ONNX file; damaged files are refused."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from store.embedding.minilm.tensors import FLOAT, Malformed, fields, read_tensors


def serialised(*tensors: TensorProto) -> memoryview:
    graph = helper.make_graph([], "g", [], [], list(tensors))
    return memoryview(helper.make_model(graph).SerializeToString())


def test_a_tensor_is_read_with_name_type_shape_and_bytes() -> None:
    array = np.arange(600, dtype=np.float32).reshape(2, 300)

    (tensor,) = read_tensors(serialised(numpy_helper.from_array(array, "w")))

    assert (tensor.name, tensor.kind, tensor.shape) == ("w", FLOAT, (2, 300))
    assert bytes(tensor.data) == array.tobytes()


def test_packed_shapes_are_read_and_fixed_width_fields_are_skipped() -> None:
    # dims = 3, 4 (packed), data_type = 1, an eight-byte field 5 and a four-byte field 6
    body = b"\x0a\x02\x03\x04" + b"\x10\x01" + b"\x29" + b"\x00" * 8 + b"\x35" + b"\x00" * 4
    graph = b"\x2a" + bytes([len(body)]) + body
    (tensor,) = read_tensors(memoryview(b"\x3a" + bytes([len(graph)]) + graph))
    assert tensor.shape == (3, 4)


@pytest.mark.parametrize("broken", [b"\x3a\x05a", b"\xff" * 11, b"\x3b", b"\x3a", b"\x39\x00"])
def test_a_truncated_or_foreign_message_is_malformed(broken: bytes) -> None:
    with pytest.raises(Malformed):
        list(fields(memoryview(broken)))
