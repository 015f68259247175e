"""MiniLM: vectors of meaning from the installed packages alone."""

import hashlib
from pathlib import Path

import pytest

from scripts.models.minilm_graph import build
from store.embedding.minilm.model import (
    SHA256,
    MiniLM,
    installed_weights,
    load_file,
    load_graph,
)
from store.embedding.minilm.weights import initializers
from store.embedding.selection import EmbeddingSettings, choose_embedder
from store.errors import EmbedderFailed

# The first components of a vector. CPUs with and without VNNI round differently.
GOLDEN = [-0.0023, -0.0493, -0.0081, -0.0171]

PAIRS = [
    ("The cat sat on the mat", "A kitten rested on the rug"),
    ("How do I reset my password?", "Steps to recover access to an account"),
    ("The meeting was moved to Friday", "We rescheduled the appointment for the end of the week"),
]


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    embedder = choose_embedder()
    assert isinstance(embedder, MiniLM), "the install alone must bring real vectors"
    return embedder


def test_texts_of_like_meaning_are_closer_than_others(minilm: MiniLM) -> None:
    left = minilm.embed([one for one, _ in PAIRS])
    right = minilm.embed([other for _, other in PAIRS])
    cosines = left @ right.T
    for row in range(len(PAIRS)):
        others = [cosines[row, column] for column in range(len(PAIRS)) if column != row]
        assert cosines[row, row] > max(others) + 0.25


def test_vectors_are_unit_rows_of_the_dimensions_the_identity_says(minilm: MiniLM) -> None:
    vectors = minilm.embed(["", "a", "word " * 1000, "東京", "\x00\x01"])
    assert vectors.shape == (5, minilm.identity.dims)
    assert ((vectors**2).sum(axis=1) - 1.0 < 1e-5).all()
    assert minilm.embed([]).shape == (0, minilm.identity.dims)


def test_a_vector_is_a_function_of_its_text_alone(minilm: MiniLM) -> None:
    alone = minilm.embed(["The lake was cold"])[0]
    among = minilm.embed(["x", "The lake was cold", "something far longer " * 30, "y", "z"])[1]
    assert (alone == among).all()


def test_the_packaged_weights_are_the_pinned_ones() -> None:
    path = installed_weights()
    assert path is not None
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


def test_weights_that_were_changed_are_refused(tmp_path: Path) -> None:
    path = installed_weights()
    assert path is not None
    changed = tmp_path / "model.onnx"
    changed.write_bytes(path.read_bytes()[:-1] + b"\x00")
    with pytest.raises(EmbedderFailed, match="not the one"):
        MiniLM(changed, digest=SHA256).embed(["x"])


def test_the_whole_digest_of_the_weights_is_compared(tmp_path: Path) -> None:
    path = installed_weights()
    assert path is not None
    same_beginning = SHA256[:16] + "0" * 48
    with pytest.raises(EmbedderFailed, match="not the one"):
        MiniLM(path, digest=same_beginning).embed(["x"])


def test_an_operators_own_file_is_named_by_its_digest_and_must_be_a_model(tmp_path: Path) -> None:
    own = tmp_path / "own.onnx"
    own.write_bytes(b"\x3a\x02\x2a\x00")
    embedder = choose_embedder(EmbeddingSettings(model_path=own))
    assert embedder.identity.revision == hashlib.sha256(own.read_bytes()).hexdigest()[:16]
    with pytest.raises(EmbedderFailed, match="could not be loaded"):
        embedder.embed(["x"])
    with pytest.raises(EmbedderFailed, match="cannot be read"):
        load_file(tmp_path / "absent.onnx")


@pytest.mark.parametrize("signed", [True, False])
def test_the_shipped_graph_is_the_one_that_the_script_writes(signed: bool) -> None:
    assert type(build(signed=signed)).FromString(load_graph(signed=signed)) == build(signed=signed)


@pytest.mark.parametrize("signed", [True, False])
def test_the_weights_have_the_names_and_shapes_that_the_graph_declares(signed: bool) -> None:
    path = installed_weights()
    assert path is not None
    arrays = initializers(memoryview(path.read_bytes()), signed=signed)

    declared = {
        tensor.name: tuple(tensor.dims) for tensor in build(signed=signed).graph.initializer
    }

    assert {name: array.shape for name, array in arrays.items()} == declared


def test_vectors_are_those_of_earlier_versions(minilm: MiniLM) -> None:
    vector = minilm.embed(["Ana prefers tabs over spaces"])[0]

    assert vector[:4].tolist() == pytest.approx(GOLDEN, abs=2e-3)
