"""Banks over `/api/v1`, and the rights of tokens to them."""

from pathlib import Path

import pytest

from store.model import NewCard, NewDocument, NewMemory, NewRisk, NewSkill, NewTask
from tests.support.memory import remembering_web
from tests.support.web import token_file

pytestmark = pytest.mark.anyio

BANKS = "/api/v1/banks"
READER, WRITER = "r" * 40, "w" * 40
TOKENS = f"""
[[token]]
name = "reader"
secret = "{READER}"
banks = ["work"]
write = false

[[token]]
name = "writer"
secret = "{WRITER}"
banks = ["work"]
write = true
"""


async def test_a_bank_is_created_renamed_limited_and_deleted(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        made = await web.client.post(BANKS, json={"name": "plans"})
        again = await web.client.post(BANKS, json={"name": "plans"})
        changed = await web.client.patch(
            f"{BANKS}/plans", json={"name": "plans / 2026", "quota_bytes": 5_000_000}
        )
        path = f"{BANKS}/plans%20%2F%202026"
        stats = await web.client.get(path)
        kept = await web.client.delete(path, params={"confirm": "plans"})
        gone = await web.client.delete(path, params={"confirm": "plans / 2026"})

        assert (made.status_code, again.status_code) == (201, 409)
        assert changed.json()["quota_bytes"] == 5_000_000
        assert stats.json()["name"] == "plans / 2026"
        assert stats.json()["items"] == 0
        assert kept.status_code == 400
        assert gone.json() == {"deleted": "plans / 2026"}
        assert (await web.client.get(path)).status_code == 404


async def test_a_bank_is_checked_backed_up_and_restored(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, toolkit):
        await toolkit.engine.put("work", NewMemory(text="first"))
        backup = (await web.client.post(f"{BANKS}/work/backups")).json()
        await toolkit.engine.put("work", NewMemory(text="second"))

        checked = await web.client.post(f"{BANKS}/work/check")
        listed = await web.client.get(f"{BANKS}/work/backups")
        await web.client.post(f"{BANKS}/work/restore", json={"backup": backup["name"]})

        assert checked.json()["problems"] == []
        assert [each["name"] for each in listed.json()["backups"]] == [backup["name"]]
        texts = (await web.client.get(f"{BANKS}/work/memories")).json()["memories"]
        assert [each["text"] for each in texts] == ["first"]


async def test_a_token_sees_only_its_banks_and_cannot_tell_whether_another_exists(
    tmp_path: Path,
) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        for bank in ("work", "secret"):
            await toolkit.engine.put(bank, NewMemory(text=f"a memory of {bank}"))
        headers = {"authorization": f"Bearer {READER}"}

        listed = await web.client.get(BANKS, headers=headers)
        others = [
            await web.client.get(f"{BANKS}/{name}/memories", headers=headers)
            for name in ("secret", "no-such-bank")
        ]

        assert [each["name"] for each in listed.json()["banks"]] == ["work"]
        assert {answer.status_code for answer in others} == {403}
        assert others[0].content == others[1].content


async def test_a_token_without_the_right_to_write_changes_nothing(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        put = await toolkit.engine.put("work", NewMemory(text="kept"))
        headers = {"authorization": f"Bearer {READER}"}
        one = f"{BANKS}/work/memories/{put.id}"
        answers = [
            await web.client.post(f"{BANKS}/work/memories", json={"text": "x"}, headers=headers),
            await web.client.patch(one, json={"text": "x"}, headers=headers),
            await web.client.delete(one, headers=headers),
            await web.client.post(f"{BANKS}/work/forget", json={"ids": [put.id]}, headers=headers),
            await web.client.post(BANKS, json={"name": "new"}, headers=headers),
            await web.client.post(f"{BANKS}/work/backups", headers=headers),
        ]

        assert {answer.status_code for answer in answers} == {403}
        assert (await toolkit.engine.get("work", put.id)).text == "kept"
        assert [bank.name for bank in await toolkit.engine.banks()] == ["work"]


async def test_banks_are_administered_by_the_owner_only(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        await toolkit.engine.put("work", NewMemory(text="kept"))
        headers = {"authorization": f"Bearer {WRITER}"}

        gone = await web.client.delete(f"{BANKS}/work", params={"confirm": "work"}, headers=headers)

        assert gone.status_code == 403
        assert [bank.name for bank in await toolkit.engine.banks()] == ["work"]


async def test_a_page_needs_the_request_header_to_change_something(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        page = {"origin": "http://localhost:3000"}
        body = {"text": "from a page"}

        without = await web.client.post(f"{BANKS}/work/memories", json=body, headers=page)
        with_it = await web.client.post(
            f"{BANKS}/work/memories", json=body, headers={**page, "x-recalld-request": "1"}
        )
        reading = await web.client.get(f"{BANKS}/work/memories", headers=page)

        assert (without.status_code, with_it.status_code) == (403, 201)
        assert reading.json()["total"] == 1


@pytest.mark.parametrize(
    ("verb", "path", "status"),
    [
        ("GET", "/api/v1/", 404),
        ("GET", "/api/v1/banks/work/nothing", 404),
        ("DELETE", "/api/v1/banks", 405),
        ("PATCH", "/api/v1/banks/work/memories", 405),
        ("GET", "/api/v1/banks/%FF/memories", 400),
    ],
)
async def test_an_unknown_path_or_method_is_refused(
    tmp_path: Path, verb: str, path: str, status: int
) -> None:
    async with remembering_web(tmp_path) as (web, _):
        answer = await web.client.request(verb, path)

        assert answer.status_code == status
        if status == 405:
            assert "OPTIONS" in answer.headers["allow"]


async def test_documents_knowledge_sessions_and_days_can_be_read_and_changed(
    tmp_path: Path,
) -> None:
    async with remembering_web(tmp_path) as (web, toolkit):
        engine = toolkit.engine
        await engine.put("work", NewMemory(text="an event", kind="event", session="s1"))
        document = await engine.upsert_document(
            "work", NewDocument(source="notes", source_id="a.md", body="# Title\n\nBody text.")
        )
        (card,) = await engine.put_cards(
            "work", [NewCard(category="decision", title="Tabs", summary="We use tabs")]
        )
        (task,) = await engine.put_tasks("work", [NewTask(title="Write the docs")])
        (risk,) = await engine.put_risks("work", [NewRisk(title="No backup")])
        await engine.put_skills("work", [NewSkill(name="release", summary="how to release")])

        async def get(path: str) -> dict[str, object]:
            answer = await web.client.get(f"{BANKS}/work/{path}")
            assert answer.status_code == 200, answer.text
            found: dict[str, object] = answer.json()
            return found

        async def change(path: str, body: dict[str, str]) -> dict[str, object]:
            answer = await web.client.patch(f"{BANKS}/work/{path}", json=body)
            assert answer.status_code == 200, answer.text
            found: dict[str, object] = answer.json()
            return found

        assert len((await get("documents"))["documents"]) == 1  # type: ignore[arg-type]
        assert "Body text." in str((await get(f"documents/{document.id}"))["body"])
        assert len((await get(f"documents/{document.id}/chunks"))["chunks"]) == 1  # type: ignore[arg-type]
        assert (await get("sessions"))["sessions"][0]["id"] == "s1"  # type: ignore[index]
        assert (await get("timeline"))["days"][0]["count"] == 1  # type: ignore[index]
        assert (await get("cards"))["total"] == 1
        assert (await get(f"cards/{card.id}"))["title"] == "Tabs"
        assert len((await get(f"cards/{card.id}/history"))["cards"]) == 1  # type: ignore[arg-type]
        assert (await get("skills"))["skills"][0]["name"] == "release"  # type: ignore[index]
        assert (await change(f"cards/{card.id}", {"status": "resolved"}))["status"] == "resolved"
        assert (await change(f"tasks/{task.id}", {"status": "completed"}))["status"] == "completed"
        assert (await change(f"risks/{risk.id}", {"status": "mitigated"}))["status"] == "mitigated"
        assert (await get("tasks?statuses=completed"))["total"] == 1
        assert (await get("risks?statuses=active"))["total"] == 0
        deleted = await web.client.delete(f"{BANKS}/work/documents/{document.id}")
        assert deleted.json() == {"deleted": 1}
