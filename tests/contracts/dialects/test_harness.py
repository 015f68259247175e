"""Context Harness: documents, search results, their order, and sources."""

import re
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from store.model import NewDocument
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.contracts.client import Client, Home, OpenClient

AUTH = (
    "# Authentication\n\n"
    + "JWT tokens are signed with the key of the day.\n\n"
    + "\n\n".join(
        f"Authentication note {n}: " + "rotate keys and tokens often. " * 25 for n in range(8)
    )
)
DOCUMENTS = (
    NewDocument(
        id="a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        source="git",
        source_id="docs/auth.md",
        title="Authentication Guide",
        body=AUTH,
        url="https://example.org/docs/auth.md",
        updated_at=1_736_937_000_000,  # 2025-01-15T10:30:00Z
    ),
    NewDocument(source="filesystem", source_id="notes/deploy.txt", body="Deploy with make ship."),
    NewDocument(
        source="filesystem",
        source_id="a.txt",
        title="Twin",
        body="authentication twin",
        updated_at=1000,
    ),
    NewDocument(
        source="filesystem",
        source_id="b.txt",
        title="Twin",
        body="authentication twin",
        updated_at=2000,
    ),
    NewDocument(source="wiki", source_id="odd", title="", body=""),
)


async def fill(home: Home, bank: str) -> None:
    """Store the documents through the engine, as an import does."""
    async with open_engine(home.path / "data", ranking=HybridRanking) as engine:
        for document in DOCUMENTS:
            await engine.upsert_document(bank, document)


@pytest.fixture(scope="module")
def library() -> Iterator[Client]:
    home = Home({"RECALLD_FINAL_LIMIT": "3"})
    anyio.run(fill, home, "library")
    client = Client("embedded", "2025-11-25", home, "--bank", "library")
    yield client
    client.close()
    home.close()


def search(client: Client, query: str, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.call("search", query=query, **more).json["results"]
    return found


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_a_document_with_many_matching_chunks_is_one_result(library: Client, mode: str) -> None:
    rows = search(library, "authentication tokens keys rotate", mode=mode, limit=50)

    ids = [row["id"] for row in rows]
    assert len(ids) == len(set(ids))
    assert ids[0] == "a1b2c3d4-e5f6-7890-abcd-ef1234567890"


def test_a_result_has_the_title_source_and_url_of_its_document(library: Client) -> None:
    row = search(library, "JWT tokens signed")[0]

    assert 0 < row.pop("score") <= 1
    assert "JWT tokens are signed with" in row.pop("snippet")
    assert row == {
        "id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        "source": "git",
        "source_id": "docs/auth.md",
        "title": "Authentication Guide",
        "source_url": "https://example.org/docs/auth.md",
    }


def test_the_limit_counts_documents_and_comes_from_the_configuration(library: Client) -> None:
    assert len(search(library, "authentication twin rotate deploy", mode="hybrid")) == 3
    assert len(search(library, "authentication twin rotate deploy", mode="hybrid", limit=4)) == 4
    assert len(search(library, "authentication", limit=1)) == 1


def test_results_of_equal_score_are_ordered_newest_first(library: Client) -> None:
    rows = search(library, "authentication twin", source="filesystem")

    assert [row["source_id"] for row in rows] == ["b.txt", "a.txt"]
    assert rows[0]["score"] == rows[1]["score"]
    assert all(
        search(library, "authentication twin", source="filesystem") == rows for _ in range(3)
    )


def test_a_source_filter_is_applied_before_the_limit(library: Client) -> None:
    assert {
        row["source"] for row in search(library, "authentication", limit=1, source="filesystem")
    } == {"filesystem"}
    assert search(library, "authentication", source="no such source") == []


def test_get_returns_the_whole_document(library: Client) -> None:
    whole = library.call("get", id="a1b2c3d4-e5f6-7890-abcd-ef1234567890").json

    assert whole == {
        "id": "a1b2c3d4-e5f6-7890-abcd-ef1234567890",
        "source": "git",
        "source_id": "docs/auth.md",
        "title": "Authentication Guide",
        "body": AUTH,
        "source_url": "https://example.org/docs/auth.md",
        "updated_at": "2025-01-15T10:30:00Z",
    }


def test_every_search_result_can_be_fetched_by_id(library: Client) -> None:
    for row in search(library, "authentication deploy twin", mode="hybrid", limit=10):
        whole = library.call("get", id=row["id"]).json
        assert {name: whole[name] for name in ("id", "source", "source_id", "title")} == {
            name: row[name] for name in ("id", "source", "source_id", "title")
        }
        assert row["snippet"].strip("… ")[:20] in whole["body"]


def test_an_unknown_document_is_not_found(library: Client) -> None:
    answer = library.call("get", id="no-such-document")

    assert answer.is_error
    assert answer.text == (
        '{"error":{"code":"not_found","message":"document not found: no-such-document"}}'
    )


def test_sources_counts_the_documents_of_each_source(library: Client) -> None:
    assert library.call("sources").json == {
        "sources": [
            {"name": "filesystem", "configured": False, "healthy": True, "doc_count": 3},
            {"name": "git", "configured": False, "healthy": True, "doc_count": 1},
            {"name": "wiki", "configured": False, "healthy": True, "doc_count": 1},
        ]
    }


@pytest.mark.parametrize(
    "query",
    [
        "what is auth?",
        "rate-limit",
        "docs/auth.md",
        "user's tokens",
        "C++",
        "AND",
        "title:auth",
        '"',
    ],
)
def test_any_string_is_a_valid_query(library: Client, query: str) -> None:
    for mode in ("keyword", "semantic", "hybrid"):
        assert not library.call("search", query=query, mode=mode).is_error


def test_a_bank_that_does_not_exist_reads_as_empty(open_client: OpenClient) -> None:
    client = open_client()
    assert client.call("search", query="anything").json == {"results": []}
    assert client.call("sources").json == {"sources": []}
    assert "not_found" in client.call("get", id="x").text


def test_a_memory_is_readable_as_a_document(open_client: OpenClient) -> None:
    client = open_client()
    text = "Use tabs, not spaces.\nThe linter insists."
    id = client.call("store_memory", content=text).json["id"]

    (row,) = search(client, "tabs spaces")
    whole = client.call("get", id=id).json

    assert (row["id"], row["source"], row["title"]) == (id, "recall", "Use tabs, not spaces.")
    assert (whole["id"], whole["body"], whole["source_url"]) == (id, text, None)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", whole["updated_at"])
    assert client.call("sources").json["sources"] == [
        {"name": "recall", "configured": False, "healthy": True, "doc_count": 1}
    ]
