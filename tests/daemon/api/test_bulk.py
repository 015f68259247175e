"""Many memories over `/api/v1`: preview, forget, move, tag, export and one undo."""

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.api.test_banks import TOKENS, WRITER
from tests.daemon.api.test_memories import add, refused, web
from tests.support.memory import remembering_web
from tests.support.web import Web, token_file

pytestmark = pytest.mark.anyio

__all__ = ["web"]  # the fixture

WORK = "/api/v1/banks/work"


async def bulk(web: Web, **given: Any) -> Any:
    answer = await web.client.post(f"{WORK}/bulk", json=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def undo(web: Web, done: Any) -> int:
    answer = await web.client.post(f"{WORK}/undo", json={"undo": done["undo"]})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["restored"])


async def texts(web: Web, bank: str = "work") -> set[str]:
    page = await web.client.get(f"/api/v1/banks/{bank}/memories")
    return {each["text"] for each in page.json()["memories"]}


@pytest.mark.parametrize("action", ["forget", "move", "tag", "untag"])
async def test_a_preview_shows_the_memories_and_changes_nothing(web: Web, action: str) -> None:
    for number in range(12):
        await add(web, f"draft {number}", tags=["draft"])
    await add(web, "kept")
    more: dict[str, dict[str, Any]] = {
        "move": {"to": "archive"},
        "tag": {"tags": ["x"]},
        "untag": {"tags": ["draft"]},
    }
    seen = await bulk(
        web, where={"tags": ["draft"]}, action=action, dry_run=True, **more.get(action, {})
    )

    assert seen["count"] == 12
    assert len(seen["sample"]) == 10
    assert seen["undo"] is None
    assert len(await texts(web)) == 13
    assert (await web.client.get("/api/v1/banks")).json()["banks"][0]["name"] == "work"


async def test_forgotten_moved_and_tagged_memories_come_back_with_one_undo(web: Web) -> None:
    ids = [(await add(web, text))["id"] for text in ("one", "two")]
    forgotten = await bulk(web, ids=ids, action="forget")
    assert await texts(web) == set()
    assert await undo(web, forgotten) == 2
    moved = await bulk(web, ids=ids, action="move", to="archive")
    assert (await texts(web), await texts(web, "archive")) == (set(), {"one", "two"})
    assert await undo(web, moved) == 2
    assert (await texts(web), await texts(web, "archive")) == ({"one", "two"}, set())
    tagged = await bulk(web, where={"contains": "one"}, action="tag", tags=["x"])
    assert tagged["count"] == 1
    assert (await web.client.get(f"{WORK}/memories/{ids[0]}")).json()["tags"] == ["x"]
    assert await undo(web, tagged) == 1
    assert (await web.client.get(f"{WORK}/memories/{ids[0]}")).json()["tags"] == []


async def test_wrong_requests_name_the_field_and_change_nothing(web: Web) -> None:
    id = (await add(web, "one"))["id"]
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"action": "forget"}, "ids"),
        ({"action": "forget", "ids": [id], "where": {"tags": ["x"]}}, "ids"),
        ({"action": "forget", "where": {}}, "where"),
        ({"action": "move", "ids": [id]}, "to"),
        ({"action": "move", "ids": [id], "to": "work"}, "to"),
        ({"action": "tag", "ids": [id]}, "tags"),
        ({"action": "forget", "ids": [id], "tags": ["x"]}, "tags"),
        ({"action": "burn", "ids": [id]}, "action"),
    ]
    for given, field in wrong:
        answer = await web.client.post(f"{WORK}/bulk", json=given)
        assert refused(answer, 400).startswith(field), given
    missing = await web.client.post(f"{WORK}/bulk", json={"action": "forget", "ids": [id, "no"]})
    assert missing.status_code == 404
    assert await texts(web) == {"one"}


async def test_a_move_needs_the_right_to_write_both_banks(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        web.client.headers["authorization"] = f"Bearer {WRITER}"
        id = (await add(web, "one"))["id"]
        await toolkit.engine.create_bank("private")
        answers = [
            await web.client.post(
                f"{WORK}/bulk", json={"action": "move", "ids": [id], "to": to, "dry_run": is_dry}
            )
            for to in ("private", "nonexistent")
            for is_dry in (True, False)
        ]
        moved = await toolkit.engine.move("work", "private", ids=[id])
        stolen = await web.client.post(f"{WORK}/undo", json={"undo": moved.token})

    assert {answer.status_code for answer in (*answers, stolen)} == {403}
    assert len({answer.text for answer in (*answers, stolen)}) == 1


@pytest.mark.parametrize(
    ("format", "type", "name"),
    [
        ("jsonl", "application/jsonl", "work.jsonl"),
        ("csv", "text/csv; charset=utf-8", "work.csv"),
        ("markdown", "text/markdown; charset=utf-8", "work.md"),
    ],
)
async def test_an_export_is_a_file_that_an_import_accepts(
    web: Web, tmp_path: Path, format: str, type: str, name: str
) -> None:
    await add(web, "We release on Fridays", tags=["release"])
    await add(web, "a draft", tags=["draft"])
    body = {"format": format, "where": {"tags": ["release"]}}
    before = set(Path(tempfile.gettempdir()).glob("recalld-export-*"))
    answer = await web.client.post(f"{WORK}/export", json=body)
    again = {"text": answer.text, "name": name}
    report = (await web.client.post("/api/v1/banks/copy/import", json=again)).json()

    assert answer.status_code == 200
    assert answer.headers["content-type"] == type
    assert answer.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert (report["imported"], report["rejected"]) == (1, 0)
    assert await texts(web, "copy") == {"We release on Fridays"}
    assert set(Path(tempfile.gettempdir()).glob("recalld-export-*")) == before


async def test_an_export_without_a_selection_holds_the_whole_bank(web: Web) -> None:
    await add(web, "one")
    await add(web, "two")
    answer = await web.client.post(f"{WORK}/export", json={})
    lines = answer.text.splitlines()

    assert len(lines) == 4  # header, two items, end
    assert (await web.client.post("/api/v1/banks/none/export", json={})).status_code == 404
