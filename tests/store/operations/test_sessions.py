"""Sessions are minted, resumed across restarts, and expire."""

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.errors import ImportRefused, StorageFailed
from store.sqlite.catalogue import Catalogue
from tests.support.clock import START, Clock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def catalogue(tmp_path: Path, clock: Clock) -> AsyncIterator[Catalogue]:
    catalogue = await Catalogue.open(tmp_path / "data", now=clock)
    yield catalogue
    await catalogue.close()


async def test_a_minted_session_is_resumed_by_the_next_process(
    catalogue: Catalogue, clock: Clock
) -> None:
    minted = await catalogue.sessions.mint(
        transport="stdio", client_name="editor", client_version="1.2", bank="work"
    )
    await catalogue.close()
    clock.advance(60)
    next_process = await Catalogue.open(catalogue.directory, now=clock)

    resumed = await next_process.sessions.resume(minted.id)
    await next_process.close()

    assert resumed is not None
    assert resumed.seen_at == START + 60_000
    assert (resumed.client_name, resumed.bank) == ("editor", "work")
    assert resumed.created_at == minted.created_at


async def test_session_ids_are_long_and_never_alike(catalogue: Catalogue) -> None:
    minted = {(await catalogue.sessions.mint(transport="stdio")).id for _ in range(50)}

    assert len(minted) == 50
    assert all(id.startswith("session_") and len(id) == 8 + 32 for id in minted)


async def test_unknown_ended_and_expired_sessions_do_not_resume(
    catalogue: Catalogue, clock: Clock
) -> None:
    ended = await catalogue.sessions.mint(transport="http")
    expired = await catalogue.sessions.mint(transport="http")
    await catalogue.sessions.end(ended.id)
    clock.advance(3600)
    fresh = await catalogue.sessions.mint(transport="http")

    assert await catalogue.sessions.expire(max_idle_seconds=1800, max_count=10) == 2

    assert await catalogue.sessions.resume("session_unknown") is None
    assert await catalogue.sessions.resume(ended.id) is None
    assert await catalogue.sessions.resume(expired.id) is None
    assert await catalogue.sessions.resume(fresh.id) is not None


async def test_beyond_the_count_the_longest_idle_go_first(
    catalogue: Catalogue, clock: Clock
) -> None:
    minted = []
    for _ in range(5):
        minted.append((await catalogue.sessions.mint(transport="unix")).id)
        clock.advance(1)
    await catalogue.sessions.touch([minted[0]])

    assert await catalogue.sessions.expire(max_idle_seconds=1e6, max_count=2) == 3

    left = {session.id for session in await catalogue.sessions.recent()}
    assert left == {minted[0], minted[4]}


async def test_counts_tell_all_and_active(catalogue: Catalogue, clock: Clock) -> None:
    old = await catalogue.sessions.mint(transport="unix")
    clock.advance(600)
    await catalogue.sessions.mint(transport="unix")

    assert await catalogue.sessions.counts(active_within_seconds=300) == (2, 1)

    await catalogue.sessions.touch([old.id, "session_unknown"], calls=3)
    assert await catalogue.sessions.counts(active_within_seconds=300) == (2, 2)
    seen = await catalogue.sessions.get(old.id)
    assert seen is not None
    assert seen.calls == 3


async def test_a_clock_that_jumps_back_does_not_make_a_session_older(
    catalogue: Catalogue, clock: Clock
) -> None:
    session = await catalogue.sessions.mint(transport="unix")
    clock.advance(-30 * 86_400)
    await catalogue.sessions.touch([session.id])

    resumed = await catalogue.sessions.resume(session.id)

    assert resumed is not None
    assert resumed.seen_at == START


async def test_the_name_and_version_of_a_client_are_kept(catalogue: Catalogue) -> None:
    session = await catalogue.sessions.mint(transport="unix")
    await catalogue.sessions.describe(session.id, client_name="ide", client_version="9")
    await catalogue.sessions.describe("session_unknown", client_name="x", client_version=None)

    known = await catalogue.sessions.get(session.id)

    assert known is not None
    assert (known.client_name, known.client_version) == ("ide", "9")


async def test_a_seed_sessions_file_comes_in_once_and_goes_out_alike(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    seed: list[tuple[str, dict[str, object]]] = [
        ("s2", {"id": "s2", "startTime": START, "lastActivity": START + 9, "toolCalls": 4}),
        ("s1", {"id": "s1", "startTime": START, "lastActivity": START + 5, "toolCalls": 0}),
    ]
    file = tmp_path / "sessions.json"
    file.write_text(json.dumps(seed))

    assert await catalogue.sessions.import_json(file) == 2
    assert await catalogue.sessions.import_json(file) == 0
    assert await catalogue.sessions.export_json(tmp_path / "out.json") == 2

    written = json.loads((tmp_path / "out.json").read_text())
    assert [entry | {"memories": [], "metadata": {}} for _, entry in seed] == [
        entry for _, entry in written
    ]


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1}', b'[["s1", {"id": 4}]]', b"\xff\xfe"])
async def test_a_damaged_sessions_file_is_refused_whole(
    catalogue: Catalogue, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "sessions.json"
    file.write_bytes(content)

    with pytest.raises(ImportRefused):
        await catalogue.sessions.import_json(file)
    with pytest.raises(StorageFailed):
        await catalogue.sessions.import_json(tmp_path / "missing.json")

    assert await catalogue.sessions.counts(active_within_seconds=1) == (0, 0)


def test_importing_the_catalogue_loads_no_heavy_library() -> None:
    heavy = "numpy usearch onnxruntime"
    code = (
        "import sys, store.sqlite.catalogue;"
        f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
