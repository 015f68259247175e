"""Embedders: meaning from the install alone, an endpoint when configured, honest hashes below."""

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.embedding.embedder import (
    EmbeddingSettings,
    EndpointSettings,
    HashedFeatures,
    choose_embedder,
)
from store.embedding.endpoint import EndpointEmbedder
from store.embedding.minilm import protobuf
from store.embedding.minilm.model import SHA256, MiniLM, installed_weights, load_file
from store.embedding.minilm.wordpiece import MAX_PIECES, WordPieces, load_vocabulary
from store.errors import EmbedderFailed
from tests.support.endpoint import endpoint

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
        MiniLM(changed, revision=SHA256[:16]).embed(["x"])


def test_an_operators_own_file_is_named_by_its_digest_and_must_be_a_model(tmp_path: Path) -> None:
    own = tmp_path / "own.onnx"
    own.write_bytes(b"\x3a\x02\x2a\x00")
    embedder = choose_embedder(EmbeddingSettings(model_path=own))
    assert embedder.identity.revision == hashlib.sha256(own.read_bytes()).hexdigest()[:16]
    with pytest.raises(EmbedderFailed, match="could not be loaded"):
        embedder.embed(["x"])
    with pytest.raises(EmbedderFailed, match="cannot be read"):
        load_file(tmp_path / "absent.onnx")


def test_nothing_heavy_is_imported_before_the_first_text() -> None:
    code = (
        "import sys, store.sqlite.engine, store.sqlite.search.hybrid\n"
        "from store.embedding.embedder import choose_embedder\n"
        "choose_embedder()\n"
        "heavy = {'numpy', 'usearch', 'onnxruntime'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "order", ["load_usearch(); load_onnxruntime()", "load_onnxruntime(); load_usearch()"]
)
def test_the_native_libraries_live_together_in_either_order(order: str) -> None:
    code = (
        f"from store.embedding.native_libraries import *; {order};"
        "import numpy; print(numpy.ones(3) @ numpy.ones(3))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)


# --- word pieces --------------------------------------------------------------------------------


def test_the_vocabulary_is_berts() -> None:
    content = "\n".join([*load_vocabulary(), ""]).encode()
    assert hashlib.sha256(content).hexdigest().startswith("07eced375cec144d27c900241f3e3394")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, World!", "hello , world !"),
        ("unaffable", "una ##ffa ##ble"),
        ("naïve CAFÉ", "naive cafe"),
        ("東京x", "東 京 x"),
        ("a\u00a0b\tc\u200bd", "a b cd"),
        ("$5.00", "$ 5 . 00"),
        ("x" * 101, "[UNK]"),
        ("ab🦄", "[UNK]"),
        ("", ""),
    ],
)
def test_word_pieces_are_those_the_model_was_trained_with(text: str, pieces: str) -> None:
    vocabulary = load_vocabulary()
    numbers = WordPieces(vocabulary).encode(text)
    assert [vocabulary[number] for number in numbers] == ["[CLS]", *pieces.split(), "[SEP]"]


@given(st.text(max_size=300))
def test_any_text_becomes_a_bounded_list_of_known_pieces(text: str) -> None:
    numbers = WORD_PIECES.encode(text * 5)
    assert 2 <= len(numbers) <= MAX_PIECES
    assert all(0 <= number < 30522 for number in numbers)


WORD_PIECES = WordPieces(load_vocabulary())


# --- protocol buffers -----------------------------------------------------------------------------


def test_what_is_written_can_be_read() -> None:
    model = protobuf.block(
        7, protobuf.block(5, protobuf.tensor("w", protobuf.FLOAT, (2, 300), b"x" * 2400))
    )
    (tensor,) = protobuf.read_tensors(memoryview(model))
    assert (tensor.name, tensor.kind, tensor.shape) == ("w", protobuf.FLOAT, (2, 300))
    assert bytes(tensor.data) == b"x" * 2400


def test_packed_shapes_and_fixed_width_fields_are_read_too() -> None:
    body = (
        b"\x0a\x02\x03\x04" + protobuf.number(2, 1) + b"\x29" + b"\x00" * 8 + b"\x35" + b"\x00" * 4
    )
    (tensor,) = protobuf.read_tensors(memoryview(protobuf.block(7, protobuf.block(5, body))))
    assert tensor.shape == (3, 4)


@pytest.mark.parametrize("broken", [b"\x3a\x05a", b"\xff" * 11, b"\x3b", b"\x3a", b"\x39\x00"])
def test_a_cut_or_foreign_message_is_malformed(broken: bytes) -> None:
    with pytest.raises(protobuf.Malformed):
        list(protobuf.fields(memoryview(broken)))


# --- hashed features ------------------------------------------------------------------------------


def test_hashed_features_know_spelling_and_say_that_they_know_no_meaning() -> None:
    embedder = choose_embedder(EmbeddingSettings(hashed=True))
    assert isinstance(embedder, HashedFeatures)
    assert not embedder.is_semantic
    one, same, typo, other = embedder.embed(
        ["postgres upgrade", "Upgrade: Postgres", "postgress upgrades", "birthday cake"]
    )
    assert one @ same > 0.8
    assert one @ typo > 0.5 > abs(one @ other) + 0.1


@given(st.lists(st.text(max_size=40), max_size=4))
def test_hashed_features_are_unit_vectors_of_any_text(texts: list[str]) -> None:
    vectors = HashedFeatures().embed(texts)
    assert (abs((vectors**2).sum(axis=1) - 1.0) < 1e-4).all()


# --- endpoint -------------------------------------------------------------------------------------


def test_an_endpoint_is_asked_in_batches_and_its_answer_put_in_order() -> None:
    def answer(texts: list[str]) -> Any:
        rows = [{"index": at, "embedding": [len(text), 0.0]} for at, text in enumerate(texts)]
        return {"data": rows[::-1], "model": "m"}

    with endpoint(answer) as (settings, seen):
        embedder = choose_embedder(EmbeddingSettings(endpoint=settings))
        vectors = embedder.embed(["a", "bb", "ccc"])
    assert vectors.tolist() == [[1.0, 0.0]] * 3
    assert [len(call["body"]["input"]) for call in seen] == [2, 1]
    assert seen[0]["key"] == "Bearer secret"
    assert str(embedder.identity) == "m@endpoint/2"


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        ({"data": [{"index": 0, "embedding": [1.0]}]}, 200, "1 dimensions, 2 are configured"),
        ({"data": []}, 200, "did not answer for 1"),
        ({"data": [{"index": 3, "embedding": [1.0, 2.0]}]}, 200, "did not answer for 1"),
        ({"data": [{"index": 0, "embedding": [0.0, 0.0]}]}, 200, "without a direction"),
        ({"data": [{"index": 0, "embedding": [1e300, 1.0]}]}, 200, "without a direction"),
        (b"<html>", 200, "another shape"),
        ({"error": "no"}, 401, "answered 401"),
    ],
)
def test_an_endpoint_that_answers_wrongly_is_an_error(
    answer: Any, status: int, message: str
) -> None:
    with (
        endpoint(answer, status=status) as (settings, _),
        pytest.raises(EmbedderFailed, match=message),
    ):
        EndpointEmbedder(settings).embed(["x"])


def test_an_endpoint_that_is_not_there_is_an_error_without_its_address() -> None:
    settings = EndpointSettings(url="http://127.0.0.1:1/v1/embeddings", model="m", dims=2)
    with pytest.raises(EmbedderFailed, match="could not be asked") as caught:
        EndpointEmbedder(settings).embed(["x"])
    assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        EndpointSettings(url="file:///etc/passwd", model="m", dims=2),
        EndpointSettings(url="http://x/", model="m", dims=0),
        EndpointSettings(url="http://x/", model="m", dims=2, timeout_seconds=0),
    ],
)
def test_a_senseless_endpoint_is_refused_at_once(settings: EndpointSettings) -> None:
    with pytest.raises(EmbedderFailed):
        EndpointEmbedder(settings)
