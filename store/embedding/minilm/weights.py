"""The weights of MiniLM as the shipped graphs expect them.

The packaged model file stores each matrix as int8 numbers with one scale per column, in a graph
that converts them into 90 MB of floats before it multiplies. Our graphs (written by
`scripts/models/minilm_graph.py`) multiply the int8 numbers directly and quantise the activations as
they come. That takes a third of the memory and a third of the time. The mean cosine between these
vectors and the float ones is 0.992, and retrieval quality is the same within 0.003.

This module reads the tensors of the model file by name and combines them into the arrays that the
graphs name: the query, key and value matrices of a layer become one matrix, for instance.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from store.embedding.minilm.tensors import FLOAT, INT8, Malformed, read_tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAYERS: Final = 6

_EMBEDDINGS: Final = "inner.embeddings."
_TYPES: Final = {FLOAT: "<f4", INT8: "i1"}


def initializers(model: memoryview, *, signed: bool) -> "dict[str, NDArray[Any]]":
    """The arrays for the initializers of a graph, by name, from the bytes of the model file.

    `signed` selects int8 weights. Without it they are shifted to uint8 and have zero points.
    Raises `Malformed` or `KeyError` if the file is not this model.
    """
    import numpy as np

    arrays = {
        tensor.name: np.frombuffer(tensor.data, _TYPES[tensor.kind]).reshape(tensor.shape)
        for tensor in read_tensors(model)
        if tensor.kind in _TYPES
    }
    words = f"{_EMBEDDINGS}word_embeddings.weight"
    places = f"{_EMBEDDINGS}position_embeddings.weight"
    position = arrays[f"{places}_q"].astype(np.float32) * arrays[f"{places}_scale"]
    found = {
        "words": arrays[f"{words}_q"],
        "words.scale": arrays[f"{words}_scale"],
        "positions": position + arrays[f"{_EMBEDDINGS}token_type_embeddings.weight"][0],
        "embedded.gain": arrays[f"{_EMBEDDINGS}LayerNorm.weight"],
        "embedded.shift": arrays[f"{_EMBEDDINGS}LayerNorm.bias"],
    }
    matrices = _matrices(arrays)
    for layer in range(LAYERS):
        found |= _layer(layer, arrays, matrices[layer * 6 : layer * 6 + 6], signed=signed)
    # Views of the file are copied ("O": the array owns its data), so that the file's bytes can be
    # freed.
    return {name: np.require(array, requirements=["C", "O"]) for name, array in found.items()}


def _matrices(arrays: "Mapping[str, NDArray[Any]]") -> list[str]:
    """The names of the weight matrices in the order of their use; the exporter numbered them."""
    names = [n.removesuffix("_q") for n in arrays if n.startswith("val_") and n.endswith("_q")]
    if len(names) != LAYERS * 6:
        raise Malformed(f"{len(names)} weight matrices, expected {LAYERS * 6}")
    return sorted(names, key=lambda name: int(name.removeprefix("val_")))


def _layer(
    layer: int, arrays: "Mapping[str, NDArray[Any]]", matrices: list[str], *, signed: bool
) -> "dict[str, NDArray[Any]]":
    import numpy as np

    source = f"inner.encoder.layer.{layer}."
    biases = [arrays[f"{source}attention.self.{part}.bias"] for part in ("query", "key", "value")]
    found = {
        "qkv.bias": np.concatenate(biases),
        "inner.bias": arrays[f"{source}intermediate.dense.bias"],
    }
    for name, module in (("a", f"{source}attention.output."), ("b", f"{source}output.")):
        found[f"{name}.gain"] = arrays[f"{module}LayerNorm.weight"]
        found[f"{name}.shift"] = arrays[f"{module}LayerNorm.bias"]
        found[f"{name}.bias"] = arrays[f"{module}dense.bias"]
    products = {
        "qkv": matrices[:3],
        "mixed": matrices[3:4],
        "inner": matrices[4:5],
        "outer": matrices[5:6],
    }
    for name, parts in products.items():
        matrix = np.concatenate([arrays[f"{part}_q"] for part in parts], axis=1)
        found[f"{name}.scale"] = np.concatenate(
            [arrays[f"{part}_scale"] for part in parts], axis=1
        )[0]
        if signed:
            found[f"{name}.w"] = matrix
        else:
            found[f"{name}.w"] = (matrix.astype(np.int16) + 128).astype(np.uint8)
            found[f"{name}.zero"] = np.full(matrix.shape[1], 128, dtype=np.uint8)
    return {f"{layer}.{name}": array for name, array in found.items()}
