"""Import over `/api/v1`."""

from pathlib import Path

import pytest

from tests.daemon.api.test_memories import refused, web
from tests.daemon.importing.foreign_data import server_memory
from tests.support.web import Web

pytestmark = pytest.mark.anyio

__all__ = ["web"]  # the fixture

IMPORT = "/api/v1/banks/new/import"


async def test_a_dry_run_counts_an_import_stores_and_a_repetition_adds_nothing(
    web: Web, tmp_path: Path
) -> None:
    path = str(server_memory(tmp_path))
    dry = (await web.client.post(IMPORT, json={"path": path, "dry_run": True})).json()
    assert (await web.client.get("/api/v1/banks/new")).status_code == 404
    done = (await web.client.post(IMPORT, json={"path": path})).json()
    again = (await web.client.post(IMPORT, json={"path": path, "kind": "server-memory"})).json()

    assert (dry["dryRun"], dry["imported"], dry["detected"]) == (True, 6, True)
    assert (done["imported"], done["known"], done["kind"]) == (6, 0, "server-memory")
    assert (again["imported"], again["known"]) == (0, 6)


async def test_secrets_are_reported_and_skipped_or_redacted(web: Web) -> None:
    text = '{"text": "the key is AKIA' + 'ABCDEFGHIJKLMNOP"}\n{"text": "harmless"}\n'
    skipped = (await web.client.post(IMPORT, json={"text": text, "dry_run": True})).json()
    redacted = (await web.client.post(IMPORT, json={"text": text, "secrets": "redact"})).json()
    page = (await web.client.get("/api/v1/banks/new/memories")).json()

    assert (skipped["imported"], skipped["rejected"]) == (1, 1)
    assert skipped["secrets"]["entries"] == 1
    assert redacted["imported"] == 2
    assert "AKIA" not in str(page)


async def test_a_wrong_file_is_described_and_nothing_changes(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "Ana prefers tabs"}\n')
    wrong = [
        ({"path": str(path), "kind": "claude-mem"}, "it looks like JSON lines"),
        ({"path": str(tmp_path / "none")}, "no such file"),
        ({"text": "plain", "kind": "mem0"}, "nothing was imported"),
        ({"path": str(path), "kind": "tape"}, "is not one of"),
        ({}, "either path or text"),
    ]
    for given, words in wrong:
        assert words in refused(await web.client.post(IMPORT, json=given), 400), given
    assert (await web.client.get("/api/v1/banks")).json()["banks"] == []


async def test_the_kinds_are_listed(web: Web) -> None:
    kinds = (await web.client.get("/api/v1/import-kinds")).json()["kinds"]

    assert len(kinds) == 18
    assert {"name", "title", "places"} == set(kinds[0])
