"""An embeddings endpoint: asked in batches; every wrong reply is an error."""

from typing import Any

import pytest

from store.embedding.endpoint import EndpointEmbedder, EndpointSettings
from store.embedding.selection import EmbeddingSettings, choose_embedder
from store.errors import EmbedderFailed
from tests.support.endpoint import endpoint


def test_texts_are_sent_in_batches_and_the_vectors_are_returned_in_order() -> None:
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
def test_a_wrong_reply_is_an_error(answer: Any, status: int, message: str) -> None:
    with (
        endpoint(answer, status=status) as (settings, _),
        pytest.raises(EmbedderFailed, match=message),
    ):
        EndpointEmbedder(settings).embed(["x"])


def test_the_error_for_an_unreachable_endpoint_does_not_contain_its_address() -> None:
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
def test_invalid_settings_are_refused_at_once(settings: EndpointSettings) -> None:
    with pytest.raises(EmbedderFailed):
        EndpointEmbedder(settings)
