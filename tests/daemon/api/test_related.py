"""One memory among others over `/api/v1`."""

from pathlib import Path

import pytest

from store.model import NewCard, NewDocument
from tests.daemon.api.test_memories import add, refused, web
from tests.support.memory import remembering_web
from tests.support.web import Web

pytestmark = pytest.mark.anyio

__all__ = ["web"]  # the fixture

WORK = "/api/v1/banks/work"


async def test_neighbours_are_those_of_the_session_in_order_of_time(web: Web) -> None:
    ids = [
        (await add(web, f"step {n}", session="s1", occurred_at=f"2026-05-03T10:0{n}:00Z"))["id"]
        for n in range(6)
    ]
    await add(web, "elsewhere", session="s2", occurred_at="2026-05-03T10:02:30Z")
    answer = await web.client.get(f"{WORK}/memories/{ids[2]}/neighbours", params={"count": 2})
    found = answer.json()

    assert found["by"] == "session"
    assert [each["text"] for each in found["before"]] == ["step 0", "step 1"]
    assert [each["text"] for each in found["after"]] == ["step 3", "step 4"]


async def test_memories_of_the_same_moment_are_neighbours_in_order_of_arrival(web: Web) -> None:
    ids = [(await add(web, f"n{n}", occurred_at="2026-05-03T10:00:00Z"))["id"] for n in range(3)]
    found = (await web.client.get(f"{WORK}/memories/{ids[1]}/neighbours")).json()

    assert found["by"] == "time"
    assert [each["text"] for each in found["before"]] == ["n0"]
    assert [each["text"] for each in found["after"]] == ["n2"]


async def test_the_neighbours_of_a_chunk_are_those_of_its_document(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, toolkit):
        body = "\n\n".join(f"# Part {n}\n\n" + f"text {n} " * 200 for n in range(4))
        made = await toolkit.engine.upsert_document(
            "work", NewDocument(source="notes", source_id="a", body=body)
        )
        chunks = await toolkit.engine.chunks("work", made.id)
        found = (await web.client.get(f"{WORK}/memories/{chunks[1].id}/neighbours")).json()

    assert found["by"] == "document"
    assert found["before"][-1]["id"] == chunks[0].id
    assert found["after"][0]["id"] == chunks[2].id


async def test_the_history_names_repetitions_changes_and_successors(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, toolkit):
        first = await add(web, "one")
        again = await web.client.post(f"{WORK}/memories", json={"text": "one"})
        assert again.json()["known"]
        history = (await web.client.get(f"{WORK}/memories/{first['id']}/history")).json()
        cards: list[str] = []
        for summary in ("We release on Fridays", "We release on Thursdays now"):
            new = NewCard(
                category="key_point",
                title="Release day",
                summary=summary,
                supersedes=cards[-1] if cards else None,
            )
            (outcome,) = await toolkit.engine.put_cards("work", [new])
            cards.append(outcome.id)
        old = (await web.client.get(f"{WORK}/memories/{cards[0]}/history")).json()
        new_one = (await web.client.get(f"{WORK}/memories/{cards[-1]}/history")).json()

    assert [each["what"] for each in history["entries"]] == ["stored", "stored again, 1 times"]
    if cards[0] != cards[1]:
        assert old["superseded_by"]["id"] == cards[1]
        assert [each["id"] for each in new_one["supersedes"]] == [cards[0]]


async def test_an_erased_memory_is_gone_for_good(web: Web) -> None:
    id = (await add(web, "one"))["id"]
    path = f"{WORK}/memories/{id}/erase"
    assert "confirm" in refused(await web.client.post(path, json={"confirm": "yes"}), 400)
    erased = await web.client.post(path, json={"confirm": id})

    assert erased.json()["erased"] == 1
    assert (await web.client.get(f"{WORK}/memories/{id}")).status_code == 404


async def test_without_vectors_nothing_is_similar(web: Web) -> None:
    id = (await add(web, "one"))["id"]
    found = (await web.client.get(f"{WORK}/memories/{id}/similar")).json()

    assert found["similar"] == []
