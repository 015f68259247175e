"""The configured embedder is the one that is used."""

from pathlib import Path
from typing import Any

import pytest

from daemon.exit_codes import CONFIG
from tests.support.endpoint import endpoint
from tests.support.processes import Child, child
from tests.support.wire import call, initialize, request

EMBEDDED = ("stdio", "--embedded")


def remembers(started: Child) -> list[str]:
    """Store two memories and search for one of them; returns the texts of the result."""
    started.send(initialize())
    started.line()
    for id, text in enumerate(("The kitten sleeps", "The bridge is closed"), 1):
        started.send(call(id, "hindsight_put", bank_id="me", content=text, context="test"))
        assert not started.line()["result"].get("isError")
    started.send(call(3, "hindsight_search", bank_id="me", query="feline"))
    answer = started.line()["result"]
    assert not answer.get("isError"), answer
    return [block["text"] for block in answer["content"]]


def test_a_configured_endpoint_is_used(tmp_path: Path) -> None:
    def answer(texts: list[str]) -> Any:
        like = [[1.0, 0.0] if "kitten" in t or "feline" in t else [0.0, 1.0] for t in texts]
        return {"data": [{"index": at, "embedding": row} for at, row in enumerate(like)]}

    with endpoint(answer) as (settings, seen):
        variables = {
            "RECALLD_EMBEDDING_URL": settings.url,
            "RECALLD_EMBEDDING_MODEL": "m",
            "RECALLD_EMBEDDING_DIMS": "2",
            "RECALLD_EMBEDDING_KEY": "secret",
        }
        with child(tmp_path, *EMBEDDED, variables=variables) as started:
            assert "kitten" in remembers(started)[0]
            started.close_input()
            started.wait()
            assert "secret" not in started.errors()
    asked = [text for request in seen for text in request["body"]["input"]]
    assert {text.partition("\n")[0] for text in asked} >= {
        "The kitten sleeps",
        "The bridge is closed",
        "feline",
    }
    assert {request["key"] for request in seen} == {"Bearer secret"}


def test_without_its_endpoint_only_semantic_search_is_missing(tmp_path: Path) -> None:
    variables = {
        "RECALLD_EMBEDDING_URL": "http://127.0.0.1:9/v1/embeddings",
        "RECALLD_EMBEDDING_MODEL": "m",
        "RECALLD_EMBEDDING_DIMS": "2",
    }
    with child(tmp_path, *EMBEDDED, variables=variables) as started:
        remembers(started)
        started.send(call(4, "hindsight_search", bank_id="me", query="kitten"))
        assert "kitten" in started.line()["result"]["content"][0]["text"]


def test_hashed_features_work_without_a_model(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED, variables={"RECALLD_EMBEDDING_HASHED": "1"}) as started:
        remembers(started)
        started.send(call(4, "hindsight_search", bank_id="me", query="kittens"))
        assert "kitten" in started.line()["result"]["content"][0]["text"]


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"RECALLD_EMBEDDING_FILE": "/nowhere/model.onnx"}, "embedding.file /nowhere/model.onnx: "),
        (
            {
                "RECALLD_EMBEDDING_URL": "file:///etc/passwd",
                "RECALLD_EMBEDDING_MODEL": "m",
                "RECALLD_EMBEDDING_DIMS": "2",
            },
            "http or https",
        ),
    ],
)
def test_an_unusable_embedder_is_reported_at_startup(
    tmp_path: Path, variables: dict[str, str], words: str
) -> None:
    with child(tmp_path, *EMBEDDED, variables=variables) as started:
        assert started.wait() == CONFIG
        assert words in started.errors()


def test_hashed_features_are_not_reported_as_degraded(tmp_path: Path) -> None:
    variables = {"RECALLD_EMBEDDING_HASHED": "true"}
    with child(tmp_path, *EMBEDDED, variables=variables) as started:
        assert remembers(started)
        started.send(request(9, "health/check"))
        health = started.line()["result"]
    assert (health["status"], health.get("degraded", [])) == ("healthy", [])
