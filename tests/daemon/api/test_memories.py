"""Memories over `/api/v1`: list, add, edit, forget and undo."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.memory import remembering_web
from tests.support.web import Web

pytestmark = pytest.mark.anyio

MEMORIES = "/api/v1/banks/work/memories"


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with remembering_web(tmp_path) as (running, _):
        yield running


async def add(web: Web, text: str, **more: Any) -> dict[str, Any]:
    answer = await web.client.post(MEMORIES, json={"text": text, **more})
    assert answer.status_code == 201, answer.text
    memory: dict[str, Any] = answer.json()["memory"]
    return memory


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["error"]["message"])


async def test_an_added_memory_is_returned_with_its_tags_date_and_provenance(web: Web) -> None:
    memory = await add(
        web, "We release on Fridays", tags=["release"], occurred_at="2026-05-03T10:00:00+02:00"
    )

    got = await web.client.get(f"{MEMORIES}/{memory['id']}")

    assert got.json() == memory
    assert memory["tags"] == ["release"]
    assert memory["occurred_at"] == "2026-05-03T08:00:00.000Z"
    assert memory["provenance"] == {"dialect": "api", "transport": "http"}
    assert got.headers["etag"] == f'"{memory["version"]}"'


async def test_an_idempotency_key_makes_a_repetition_harmless(web: Web) -> None:
    first = await add(web, "once", idempotency_key="k1")
    again = await web.client.post(MEMORIES, json={"text": "once", "idempotency_key": "k1"})

    assert again.json()["known"] is True
    assert again.json()["memory"]["id"] == first["id"]


async def test_pages_do_not_shift_when_memories_are_added_between_them(web: Web) -> None:
    for number in range(5):
        await add(web, f"memory {number}")
    first = (await web.client.get(MEMORIES, params={"limit": 2})).json()
    await add(web, "arrived later")

    second = await web.client.get(MEMORIES, params={"limit": 2, "cursor": first["next_cursor"]})

    texts = [each["text"] for each in first["memories"] + second.json()["memories"]]
    assert texts == ["memory 4", "memory 3", "memory 2", "memory 1"]


async def test_the_last_page_has_no_cursor(web: Web) -> None:
    for number in range(3):
        await add(web, f"memory {number}")
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        params: dict[str, Any] = {"limit": 2, **({"cursor": cursor} if cursor else {})}
        page = (await web.client.get(MEMORIES, params=params)).json()
        seen += [each["text"] for each in page["memories"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert cursor is None
    assert seen == ["memory 2", "memory 1", "memory 0"]


@pytest.mark.parametrize(
    ("params", "texts"),
    [
        ({"tags": "red"}, ["c", "a"]),
        ({"tags": ["red", "round"]}, ["c"]),
        ({"contains": "B"}, ["b"]),
        ({"since": "2026-02-01"}, ["c", "b"]),
        ({"until": "2026-02-01T00:00:00Z"}, ["a"]),
        ({"kinds": "event"}, []),
        ({"sources": ["api", "other"]}, ["c", "b", "a"]),
    ],
)
async def test_filters_are_conditions_that_must_all_hold(
    web: Web, params: dict[str, Any], texts: list[str]
) -> None:
    await add(web, "a", tags=["red"], occurred_at="2026-01-01")
    await add(web, "b", occurred_at="2026-02-01")
    await add(web, "c", tags=["red", "round"], occurred_at="2026-03-01")

    found = await web.client.get(MEMORIES, params=params)

    assert [each["text"] for each in found.json()["memories"]] == texts


async def test_an_edit_of_an_outdated_version_is_refused_and_changes_nothing(web: Web) -> None:
    memory = await add(web, "before")
    path = f"{MEMORIES}/{memory['id']}"
    match = {"if-match": f'"{memory["version"]}"'}

    first = await web.client.patch(path, json={"text": "mine"}, headers=match)
    second = await web.client.patch(path, json={"text": "yours"}, headers=match)

    assert first.status_code == 200
    assert first.json()["version"] != memory["version"]
    refused(second, 409)
    assert (await web.client.get(path)).json()["text"] == "mine"


async def test_a_change_of_tags_makes_a_version_outdated(web: Web) -> None:
    memory = await add(web, "text", tags=["a"])
    path = f"{MEMORIES}/{memory['id']}"
    await web.client.patch(path, json={"tags": ["b"]})

    late = await web.client.patch(
        path, json={"text": "new"}, headers={"if-match": memory["version"]}
    )

    refused(late, 409)


async def test_a_forgotten_memory_comes_back_with_its_undo_token(web: Web) -> None:
    memory = await add(web, "by mistake")
    path = f"{MEMORIES}/{memory['id']}"

    forgot = (await web.client.delete(path)).json()
    gone = await web.client.get(path)
    undone = await web.client.post("/api/v1/banks/work/undo", json={"undo": forgot["undo"]})

    assert forgot["count"] == 1
    refused(gone, 404)
    assert undone.json() == {"restored": 1}
    back = (await web.client.get(path)).json()
    assert (back["id"], back["text"]) == (memory["id"], "by mistake")


async def test_a_dry_run_counts_and_forgets_nothing(web: Web) -> None:
    for number in range(3):
        await add(web, f"draft {number}", tags=["draft"])
    await add(web, "final")
    where = {"where": {"tags": ["draft"]}}

    tried = await web.client.post("/api/v1/banks/work/forget", json={**where, "dry_run": True})
    before = (await web.client.get(MEMORIES)).json()["total"]
    done = await web.client.post("/api/v1/banks/work/forget", json=where)
    after = (await web.client.get(MEMORIES)).json()["total"]

    assert tried.json() == {"count": 3, "undo": None, "undo_until": None}
    assert done.json()["count"] == 3
    assert (before, after) == (4, 1)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "ids"),
        ({"ids": ["x"], "where": {"tags": ["a"]}}, "ids"),
        ({"where": {}}, "where"),
        ({"where": {"tag": "a"}}, "where.tag"),
    ],
)
async def test_a_forget_without_a_clear_target_is_refused(
    web: Web, body: dict[str, Any], field: str
) -> None:
    await add(web, "kept")

    message = refused(await web.client.post("/api/v1/banks/work/forget", json=body), 400)

    assert message.startswith(f"{field}:")
    assert (await web.client.get(MEMORIES)).json()["total"] == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"limit": "0"}, "limit:"),
        ({"limit": "many"}, "limit:"),
        ({"colour": "red"}, "colour: unknown field"),
        ({"cursor": "!!"}, "cursor: is not a cursor of this list"),
        ({"cursor": "djI6MQ"}, "cursor: is not a cursor of this list"),
        ({"since": "yesterday"}, "since: 'yesterday' is not a time in ISO 8601"),
        ({"bank": "other"}, "bank: is part of the path"),
        ([("limit", "1"), ("limit", "2")], "limit: must not be repeated"),
    ],
)
async def test_a_wrong_parameter_is_refused_by_name(web: Web, params: Any, message: str) -> None:
    await add(web, "text")

    assert refused(await web.client.get(MEMORIES, params=params), 400).startswith(message)


@pytest.mark.parametrize("body", [{"text": ""}, {}, {"text": 7}, {"text": "x", "id": "y"}])
async def test_a_wrong_memory_is_refused_and_creates_no_bank(web: Web, body: Any) -> None:
    refused(await web.client.post(MEMORIES, json=body), 400)

    assert (await web.client.get("/api/v1/banks")).json() == {"banks": []}


async def test_a_list_can_start_anywhere_by_an_offset(web: Web) -> None:
    for number in range(5):
        await add(web, f"memory {number}")

    page = (await web.client.get(MEMORIES, params={"offset": 3, "limit": 10})).json()

    assert [each["text"] for each in page["memories"]] == ["memory 1", "memory 0"]
    assert page["total"] == 5


async def test_an_offset_and_a_cursor_exclude_each_other(web: Web) -> None:
    for number in range(3):
        await add(web, f"memory {number}")
    cursor = (await web.client.get(MEMORIES, params={"limit": 1})).json()["next_cursor"]

    answer = await web.client.get(MEMORIES, params={"offset": 1, "cursor": cursor})

    assert "offset" in refused(answer, 400)


async def test_reading_as_the_owner_takes_no_slot_of_the_rate_limiter(tmp_path: Path) -> None:
    async with remembering_web(tmp_path, limits__requests_per_minute=2) as (limited, _):
        await add(limited, "one")
        reads = [await limited.client.get(MEMORIES) for _ in range(10)]
        await add(limited, "two")
        third = await limited.client.post(MEMORIES, json={"text": "three"})

    assert {answer.status_code for answer in reads} == {200}
    assert third.status_code == 429
