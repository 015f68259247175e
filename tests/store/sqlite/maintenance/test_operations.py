"""Erase leaves no byte, exports come back identical, backups are believed after a look inside."""

import json
import sqlite3
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from store.errors import (
    EraseIncomplete,
    ImportRefused,
    InvalidInput,
    NotFound,
    StorageBusy,
    StorageDamaged,
    StorageFull,
)
from store.model import (
    AgentProfile,
    Evidence,
    NewCard,
    NewDocument,
    NewMemory,
    NewTask,
    Query,
)
from store.sqlite.connection import Connection, run_on_file
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.maintenance import backup
from store.sqlite.maintenance.operations import BACKUPS_KEPT
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

MARKERS = [f"marker{n:03d}qxj" for n in range(200)]


def residue(directory: Path) -> list[str]:
    """The markers that are still in some file, whatever kind of file."""
    content = b"\n".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())
    return [marker for marker in MARKERS if marker.encode() in content]


async def fill(engine: EmbeddedEngine) -> list[str]:
    """Two hundred marked memories among others, moved about, some forgotten, and in backups."""
    ids = []
    for n, marker in enumerate(MARKERS):
        memory = NewMemory(
            text=f"{marker} was said {'at length ' * (n % 40)}",
            title=f"about {marker}",
            session=f"session {n % 7}",
            metadata={"marker": marker},
            idempotency_key=f"key {n}",
        )
        ids.append((await engine.put("w", memory)).id)
        await engine.put("w", NewMemory(text=f"keep me {n} " + "padding " * (n % 50)))
    await engine.back_up("w")
    for n in range(0, 200, 10):
        await engine.change("w", ids[n], text=f"{MARKERS[n]} was said otherwise")
    await engine.forget("w", ids[:20])
    return ids


async def test_two_hundred_markers_leave_no_byte_in_any_file(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    ids = await fill(engine)
    snapshot = engine._banks.directory(engine.bank("w")) / "vectors.snapshot"
    snapshot.write_bytes(b"graph of marker007qxj")
    assert len(residue(tmp_path)) == 200

    erased = await engine.erase("w", ids, reason="person asked")

    assert residue(tmp_path) == []
    assert erased.items == 200
    assert erased.copies_removed >= 1
    assert (await engine.recent("w")).total == 200
    checked = await engine.check("w")
    assert (checked.items, checked.problems) == (200, ())
    assert (await engine.backups("w")) == []
    assert engine.health().degraded == ()


async def test_a_tombstone_says_when_and_why_and_not_what(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    put = await engine.put("w", NewMemory(text="secret"))
    await engine.erase("w", [put.id], reason="person asked")

    def look(connection: Connection) -> list[tuple[object, ...]]:
        return connection.execute("SELECT * FROM tombstones").fetchall()

    async with engine._banks.use("w") as opened:
        assert await opened.database.read(look) == [
            (put.id, "memory", clock.now, clock.now, "person asked")
        ]
    with pytest.raises(NotFound):
        await engine.erase("w", [put.id])


async def test_a_document_and_what_quotes_it_are_erased(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    document = await engine.upsert_document(
        "w", NewDocument(source="s", source_id="d", body=f"# {MARKERS[0]}\n\n{MARKERS[1]} is here")
    )
    quoting = NewCard(
        category="decision",
        title="A card",
        summary="that quotes",
        evidence=(Evidence(snippet=f"{MARKERS[1]} is here"),),
    )
    await engine.put_cards("w", [quoting])

    await engine.erase("w", documents=[document.id])

    assert residue(tmp_path) == []
    assert (await engine.cards("w"))[1] == 1


async def test_forgotten_things_can_be_erased_together(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    ids = await fill(engine)
    await engine.forget("w", ids[20:])

    erased = await engine.erase_forgotten("w")

    assert erased.items == 200
    assert residue(tmp_path) == []


async def test_with_a_reader_open_an_erase_says_it_is_not_done_and_is_done_later(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    engine.erase_wait_seconds = 0.3
    ids = await fill(engine)
    path = engine._banks.directory(engine.bank("w")) / "bank.db"
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM items").fetchone()

    with pytest.raises(EraseIncomplete):
        await engine.erase("w", ids)
    assert "erase-incomplete" in engine.health().degraded
    assert (await engine.recent("w")).total == 200  # unreachable all the same

    reader.close()
    await engine.erase("w", [])

    assert residue(tmp_path) == []
    assert engine.health().degraded == ()


# --- export and import ------------------------------------------------------------------------


async def furnish(engine: EmbeddedEngine) -> None:
    for n in range(30):
        await engine.put(
            "w", NewMemory(text=f"memory {n} é\u2028", metadata={"n": n}, tags=("t",), user="u")
        )
    again = NewMemory(text="memory 3 é\u2028", metadata={"n": 3}, tags=("t",), user="u")
    await engine.put("w", again)
    await engine.upsert_document("w", NewDocument(source="s", source_id="d", body="# H\n\nbody"))
    card = NewCard(category="c", title="old", summary="one two", evidence=(Evidence(snippet="x"),))
    (old,) = await engine.put_cards("w", [card])
    await engine.put_cards(
        "w", [NewCard(category="c", title="new", summary="three four", supersedes=old.id)]
    )
    await engine.put_tasks("w", [NewTask(title="do it")])
    await engine.put_profile("w", AgentProfile(agent_role="r"))
    gone = await engine.put("w", NewMemory(text="forgotten"))
    await engine.forget("w", [gone.id])


async def test_an_export_imported_elsewhere_exports_to_the_same_bytes(
    engine: EmbeddedEngine, tmp_path: Path, clock: Clock
) -> None:
    await furnish(engine)
    exported = await engine.export("w", tmp_path / "one.jsonl")
    clock.advance(1000)
    progress: list[tuple[int, int]] = []

    async with open_engine(tmp_path / "other", ranking=PlainRanking, now=clock) as other:
        imported = await other.import_file(
            "w", tmp_path / "one.jsonl", progress=lambda *done: progress.append(done)
        )
        again = await other.import_file("w", tmp_path / "one.jsonl")
        await other.export("w", tmp_path / "two.jsonl")
        assert (await other.check("w")).problems == ()
        assert len((await other.search(Query(bank="w", text="memory 7"))).hits) > 0

    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    assert (imported.created, imported.known) == (exported.records, 0)
    assert (again.created, again.known) == (0, exported.records)
    assert progress[-1] == (exported.records, exported.records)
    assert b"forgotten" not in (tmp_path / "one.jsonl").read_bytes()


@pytest.mark.parametrize("damage", ["cut", "flip", "append", "header", "nul", "version", "field"])
async def test_a_damaged_export_is_refused_and_nothing_is_written(
    engine: EmbeddedEngine, tmp_path: Path, damage: str
) -> None:
    await furnish(engine)
    path = tmp_path / "one.jsonl"
    await engine.export("w", path)
    lines = path.read_bytes().splitlines(keepends=True)
    record = json.loads(lines[5])
    match damage:
        case "cut":
            lines = lines[:-1]
        case "flip":
            lines[5] = lines[5].replace(b"memory", b"nemory")
        case "append":
            lines.append(lines[5])
        case "header":
            lines = lines[1:]
        case "nul":
            lines[5] = json.dumps({**record, "text": "a\x00b"}).encode() + b"\n"
        case "version":
            lines[0] = lines[0].replace(b'"version":1', b'"version":9')
        case "field":
            lines[5] = json.dumps({**record, "surprise": 1}).encode() + b"\n"
    path.write_bytes(b"".join(lines))

    with pytest.raises(ImportRefused):
        await engine.import_file("other", path)

    assert [bank.name for bank in engine.banks()] == ["w"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("missing/deeper/x.jsonl", "there is no directory 'missing/deeper'"),
        ("file/x.jsonl", "there is no directory 'file'"),
        ("here", "is a directory"),
        ("x" * 300, "cannot be written (ENAMETOOLONG)"),
        ("", "must name a file"),
    ],
)
async def test_an_export_to_where_no_file_can_be_is_refused_in_the_callers_own_words(
    engine: EmbeddedEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, said: str
) -> None:
    await engine.put("w", NewMemory(text="x"))
    place = tmp_path / "elsewhere"
    (place / "here").mkdir(parents=True)
    (place / "file").write_text("a file")
    monkeypatch.chdir(place)

    with pytest.raises(InvalidInput) as refused:
        await engine.export("w", Path(given))

    assert (refused.value.field, refused.value.rule) == ("path", said)
    assert sorted(path.name for path in place.iterdir()) == ["file", "here"]


# --- backup and restore -----------------------------------------------------------------------


async def test_a_restored_backup_is_the_bank_as_it_was(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await furnish(engine)
    before = await engine.export("w", tmp_path / "before.jsonl")
    made = await engine.back_up("w")
    await engine.put("w", NewMemory(text="after the backup"))

    restored = await engine.restore("w", made.name)

    after = await engine.export("w", tmp_path / "after.jsonl")
    assert after.digest == before.digest
    assert restored.items == made.items
    assert (await engine.check("w")).problems == ()
    names = [entry.name for entry in await engine.backups("w")]
    assert made.name in names
    assert len(names) == 2  # what was there before the restore is kept
    await engine.restore("w", next(name for name in names if name != made.name))
    assert (await engine.search(Query(bank="w", text="after the backup"))).hits


async def test_a_damaged_backup_is_not_restored(engine: EmbeddedEngine) -> None:
    await furnish(engine)
    made = await engine.back_up("w")
    file = engine._banks.backups(engine.bank("w")) / f"{made.name}.db"
    content = bytearray(file.read_bytes())
    at = content.index(b"memory 7 ")
    content[at] ^= 1
    file.write_bytes(content)

    with pytest.raises(StorageDamaged):
        await engine.restore("w", made.name)
    with pytest.raises(NotFound):
        await engine.restore("w", "../../catalogue")

    assert (await engine.recent("w")).total > 30


async def test_a_damaged_bank_can_be_restored(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        await furnish(engine)
        total = (await engine.recent("w")).total
        made = await engine.back_up("w")
        path = engine._banks.directory(engine.bank("w")) / "bank.db"
    path.write_bytes(b"garbage" * 5000)

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        with pytest.raises(StorageDamaged):
            await engine.recent("w")
        await engine.restore("w", made.name)
        assert (await engine.recent("w")).total == total


async def test_only_the_newest_backups_are_kept(engine: EmbeddedEngine, clock: Clock) -> None:
    await engine.put("w", NewMemory(text="x"))
    made = []
    for _ in range(7):
        made.append((await engine.back_up("w")).name)
        clock.advance(1)

    assert [entry.name for entry in await engine.backups("w")] == list(reversed(made[2:]))


async def test_the_oldest_of_as_many_backups_as_are_kept_can_be_restored(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    await engine.put("w", NewMemory(text="the first state"))
    made = []
    for n in range(BACKUPS_KEPT):
        made.append((await engine.back_up("w")).name)
        clock.advance(1)
        await engine.put("w", NewMemory(text=f"later state {n}"))

    restored = await engine.restore("w", made[0])

    assert restored.items == 1
    assert [item.text for item in (await engine.recent("w")).items] == ["the first state"]
    names = [entry.name for entry in await engine.backups("w")]
    assert made[0] in names
    newest = next(name for name in names if name not in made)
    assert (await engine.restore("w", newest)).items == 1 + BACKUPS_KEPT


async def test_a_backup_made_after_the_clock_went_back_is_kept(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    await engine.put("w", NewMemory(text="x"))
    for _ in range(BACKUPS_KEPT):
        await engine.back_up("w")
        clock.advance(1000)
    clock.advance(-3_600_000)

    made = await engine.back_up("w")

    assert made.name in [entry.name for entry in await engine.backups("w")]


async def test_what_is_put_while_a_backup_is_restored_is_in_the_bank_or_in_a_backup(
    engine: EmbeddedEngine,
) -> None:
    await engine.put_many("w", [NewMemory(text=f"memory {n} {'word ' * 50}") for n in range(500)])
    made = await engine.back_up("w")
    acknowledged: set[str] = set()
    refused = 0

    async def write(writer: int) -> None:
        nonlocal refused
        n = 0
        while not is_restored.is_set():
            n += 1
            try:
                put = await engine.put("w", NewMemory(text=f"racing {writer} {n}"))
            except StorageBusy:
                refused += 1
                await checkpoint()
            else:
                acknowledged.add(put.id)

    is_restored = anyio.Event()
    async with anyio.create_task_group() as group:
        for writer in range(4):
            group.start_soon(write, writer)
        await anyio.wait_all_tasks_blocked()
        await engine.restore("w", made.name)
        is_restored.set()

    assert acknowledged
    kept = {item.id for item in (await engine.recent("w", limit=5000)).items}
    for file in engine._banks.backups(engine.bank("w")).glob("*.db"):
        kept |= run_on_file(file, item_ids)
    assert acknowledged - kept == set()


def item_ids(connection: Connection) -> set[str]:
    return {id for (id,) in connection.execute("SELECT public_id FROM items")}


async def test_without_room_for_a_backup_of_what_is_there_nothing_is_restored(
    engine: EmbeddedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    await engine.put("w", NewMemory(text="before"))
    made = await engine.back_up("w")
    await engine.put("w", NewMemory(text="after"))

    def full(*_: object, **__: object) -> None:
        raise StorageFull("no space left on the disk")

    monkeypatch.setattr(backup, "make", full)
    with pytest.raises(StorageFull):
        await engine.restore("w", made.name)

    assert (await engine.recent("w")).total == 2


# --- check, repair, rebuild -------------------------------------------------------------------

FAULTS = {
    "words-missing": "DELETE FROM words WHERE rowid = (SELECT min(id) FROM items)",
    "words-left-over": "INSERT INTO words (rowid, tokens) VALUES (999999, 'ghost')",
    "vectors-missing": "DELETE FROM vectors WHERE item = (SELECT min(id) FROM items)",
    "words-wrong": "UPDATE words SET tokens = 'other' WHERE rowid = (SELECT min(id) FROM items)",
    "counters-wrong": "UPDATE state SET words = words + 1",
    "rows-damaged": "UPDATE items SET text = 'changed' WHERE id = (SELECT min(id) FROM items)",
    "vectors-wrong": "UPDATE vectors SET bytes = x'00' WHERE item = (SELECT min(id) FROM items)",
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_each_fault_is_found_by_its_name_and_repaired(
    engine: EmbeddedEngine, fault: str
) -> None:
    for n in range(5):
        await engine.put("w", NewMemory(text=f"memory {n}"))

    def damage(connection: Connection) -> None:
        connection.execute(FAULTS[fault])

    async with engine._banks.use("w") as opened:
        await opened.database.write(damage)

    assert fault in {problem.name for problem in (await engine.check("w")).problems}
    assert "damaged" in engine.health().degraded
    repaired = await engine.repair("w")

    assert repaired.problems == ()
    assert repaired.items == (4 if fault == "rows-damaged" else 5)
    assert engine.health().degraded == ()


@pytest.mark.parametrize("number", ["007e", "00fe", "007c", "00fc"])
async def test_a_vector_with_no_number_in_it_is_found_and_made_anew(
    engine: EmbeddedEngine, number: str
) -> None:
    """NaN and infinity, as little-endian half floats."""
    for n in range(5):
        await engine.put("w", NewMemory(text=f"memory {n}"))
    (before,) = await engine._read("w", vectors)

    def damage(connection: Connection) -> None:
        connection.execute(
            f"UPDATE vectors SET bytes = CAST(x'{'0000' * 7}{number}' AS BLOB)"
            " WHERE item = (SELECT min(item) FROM vectors)"
        )

    async with engine._banks.use("w") as opened:
        await opened.database.write(damage)

    found = (await engine.check("w")).problems
    assert [(problem.name, problem.count) for problem in found] == [("vectors-wrong", 1)]
    assert (await engine.repair("w")).problems == ()
    assert await engine._read("w", vectors) == [before]


def vectors(connection: Connection) -> list[list[bytes]]:
    return [[row[0] for row in connection.execute("SELECT bytes FROM vectors ORDER BY item")]]


@pytest.mark.parametrize(
    "fault",
    [
        "fields = '{'",
        "fields = CAST(x'7bff7d' AS TEXT)",
        "fields = replace(fields, 'Developer', 'Director')",
        "agent_role = CAST(x'ff' AS TEXT)",
        "updated_at = 5",
    ],
)
async def test_a_damaged_profile_is_found_and_put_aside(engine: EmbeddedEngine, fault: str) -> None:
    await engine.put_profile("w", AgentProfile(agent_role="dev", title="Developer"))
    await engine.put_profile("w", AgentProfile(agent_role="qa", title="Tester"))

    def damage(connection: Connection) -> None:
        connection.execute(f"UPDATE profiles SET {fault} WHERE agent_role = 'dev'")

    async with engine._banks.use("w") as opened:
        await opened.database.write(damage)
        directory = opened.directory

    found = (await engine.check("w")).problems
    assert [(problem.name, problem.part) for problem in found] == [("rows-damaged", "profiles")]
    with pytest.raises(StorageDamaged):
        await engine.export("w", directory / "file")
    assert (await engine.repair("w")).problems == ()
    assert [profile.agent_role for profile in await engine.profiles("w")] == ["qa"]
    (line,) = (directory / "damaged.jsonl").read_bytes().splitlines()
    assert json.loads(line)["damaged"] == "profile"


async def test_a_damaged_row_is_never_returned_and_is_put_aside_by_repair(
    engine: EmbeddedEngine,
) -> None:
    put = await engine.put("w", NewMemory(text="the true text"))

    def damage(connection: Connection) -> None:
        connection.execute("UPDATE items SET text = CAST(x'ff686579' AS TEXT)")

    async with engine._banks.use("w") as opened:
        await opened.database.write(damage)
        directory = opened.directory

    with pytest.raises(StorageDamaged):
        await engine.get("w", put.id)
    with pytest.raises(StorageDamaged):
        await engine.recent("w")

    assert (await engine.repair("w")).items == 0
    (line,) = (directory / "damaged.jsonl").read_text().splitlines()
    assert json.loads(line)["public_id"] == put.id


async def test_a_rebuild_makes_words_and_vectors_again(engine: EmbeddedEngine) -> None:
    await furnish(engine)
    before = await engine.search(Query(bank="w", text="memory 7"))

    def lose(connection: Connection) -> None:
        connection.execute("DELETE FROM words")

    async with engine._banks.use("w") as opened:
        await opened.database.write(lose)
    checked = await engine.rebuild("w")

    assert checked.problems == ()
    after = await engine.search(Query(bank="w", text="memory 7"))
    assert {hit.item.id for hit in after.hits} == {hit.item.id for hit in before.hits}
