#!/usr/bin/env python3
"""Writes the ONNX graphs of MiniLM that `store/embedding/minilm` ships. Needs the `onnx` package.

The graphs contain the operators and no weights. Each weight is declared as an external initializer;
`store/embedding/minilm/weights.py` computes the arrays with these names from the packaged model
file and hands them to onnxruntime. Run this after a change here: `scripts/models/minilm_graph.py`.

The network is BERT: token and position embeddings, then six layers of attention and a two-layer
perceptron, each with a skip connection and a layer normalisation. Inputs are `ids` (1 x pieces,
int64) and `places` (pieces, int64: 0, 1, 2, ...). The output is `state` (1 x pieces x 384).

There are two graphs. `graph-int8.onnx` multiplies int8 weights. CPUs without VNNI saturate on
those, so they use `graph-uint8.onnx`, whose weights are shifted by 128 and have zero points.
"""

from pathlib import Path
from typing import Any, Final

from onnx import (  # type: ignore[import-not-found, unused-ignore]
    ModelProto,
    NodeProto,
    TensorProto,
    helper,
)

FOLDER: Final = Path(__file__).resolve().parents[2] / "store" / "embedding" / "minilm"
LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
INNER: Final = 1_536
WORDS: Final = 30_522
PLACES: Final = 512

_MICROSOFT: Final = "com.microsoft"
_EPSILON: Final = 1e-12


class GraphBuilder:
    """The nodes and initializers of a graph, in the order they are added."""

    def __init__(self, *, signed: bool) -> None:
        self.signed = signed
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []

    def weight(self, name: str, kind: int, *shape: int) -> str:
        """Declare an initializer whose data comes from elsewhere."""
        tensor = TensorProto(name=name, data_type=kind, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="weights")
        self.initializers.append(tensor)
        return name

    def node(self, operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(operator, inputs, list(outputs), **attributes))
        return outputs[0]

    def product(self, name: str, given: str, rows: int, columns: int, bias: str = "") -> str:
        """A multiplication by a quantised matrix; the activations are quantised as they come."""
        kind = TensorProto.INT8 if self.signed else TensorProto.UINT8
        inputs = [
            given,
            self.weight(f"{name}.w", kind, rows, columns),
            self.weight(f"{name}.scale", TensorProto.FLOAT, columns),
            "" if self.signed else self.weight(f"{name}.zero", kind, columns),
        ]
        if bias:
            inputs.append(bias)
        return self.node("DynamicQuantizeMatMul", inputs, name, domain=_MICROSOFT)

    def normalised(self, name: str, inputs: list[str], *, bias: bool) -> str:
        """Skip connection, bias and layer normalisation in one operator."""
        parts = ("gain", "shift", "bias") if bias else ("gain", "shift")
        weights = [self.weight(f"{name}.{part}", TensorProto.FLOAT, WIDTH) for part in parts]
        return self.node(
            "SkipLayerNormalization",
            [*inputs, *weights],
            name,
            domain=_MICROSOFT,
            epsilon=_EPSILON,
        )

    def layer(self, number: int, state: str) -> str:
        name = f"{number}."
        bias = self.weight(f"{name}qkv.bias", TensorProto.FLOAT, 3 * WIDTH)
        projected = self.product(f"{name}qkv", state, WIDTH, 3 * WIDTH, bias)
        self.node("Split", [projected], f"{name}q", f"{name}k", f"{name}v", axis=2)
        attended = self.node(
            "MultiHeadAttention",
            [f"{name}q", f"{name}k", f"{name}v"],
            f"{name}attended",
            domain=_MICROSOFT,
            num_heads=HEADS,
        )
        mixed = self.product(f"{name}mixed", attended, WIDTH, WIDTH)
        state = self.normalised(f"{name}a", [mixed, state], bias=True)
        inner = self.product(f"{name}inner", state, WIDTH, INNER)
        bias = self.weight(f"{name}inner.bias", TensorProto.FLOAT, INNER)
        active = self.node("FastGelu", [inner, bias], f"{name}active", domain=_MICROSOFT)
        outer = self.product(f"{name}outer", active, INNER, WIDTH)
        return self.normalised(f"{name}b", [outer, state], bias=True)


def build(*, signed: bool) -> ModelProto:
    """The model without its weights."""
    graph = GraphBuilder(signed=signed)
    graph.weight("words", TensorProto.INT8, WORDS, WIDTH)
    graph.weight("words.scale", TensorProto.FLOAT, WORDS, 1)
    graph.weight("positions", TensorProto.FLOAT, PLACES, WIDTH)
    graph.node("Gather", ["words", "ids"], "word.q")
    graph.node("Cast", ["word.q"], "word.f", to=TensorProto.FLOAT)
    graph.node("Gather", ["words.scale", "ids"], "word.s")
    graph.node("Mul", ["word.f", "word.s"], "word")
    graph.node("Gather", ["positions", "places"], "place")
    state = graph.normalised("embedded", ["word", "place"], bias=False)
    for number in range(LAYERS):
        state = graph.layer(number, state)
    graph.node("Identity", [state], "state")
    return helper.make_model(
        helper.make_graph(
            graph.nodes,
            "minilm",
            [
                helper.make_tensor_value_info("ids", TensorProto.INT64, [1, "pieces"]),
                helper.make_tensor_value_info("places", TensorProto.INT64, ["pieces"]),
            ],
            [helper.make_tensor_value_info("state", TensorProto.FLOAT, [1, "pieces", WIDTH])],
            graph.initializers,
        ),
        ir_version=8,  # understood by every onnxruntime since 2021
        opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid(_MICROSOFT, 1)],
    )


def main() -> None:
    for name, signed in (("graph-int8.onnx", True), ("graph-uint8.onnx", False)):
        content = build(signed=signed).SerializeToString(deterministic=True)
        (FOLDER / name).write_bytes(content)
        print(f"{FOLDER.name}/{name}: {len(content)} bytes")


if __name__ == "__main__":
    main()
