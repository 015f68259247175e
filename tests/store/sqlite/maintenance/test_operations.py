"""Erase, export, import and the progress of long operations through the engine."""

import json
import sqlite3
from pathlib import Path

import pytest

from store.errors import (
    EraseIncomplete,
    ImportRefused,
    InvalidInput,
    NotFound,
)
from store.model import (
    Evidence,
    NewCard,
    NewDocument,
    NewMemory,
    Query,
)
from store.sqlite.connection import Connection
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.store.sqlite.maintenance.contents import fill_bank
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio
BOTH_ENGINES = True

MARKERS = [f"marker{n:03d}qxj" for n in range(200)]


def residue(directory: Path) -> list[str]:
    """The markers that are still in any file."""
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


@pytest.mark.embedded
async def test_two_hundred_markers_leave_no_byte_in_any_file(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    ids = await fill(engine)
    snapshot = engine._registry.directory(await engine.bank("w")) / "vectors.snapshot"
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


@pytest.mark.embedded
async def test_a_tombstone_holds_time_and_reason_but_no_content(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    put = await engine.put("w", NewMemory(text="secret"))
    await engine.erase("w", [put.id], reason="person asked")

    def look(connection: Connection) -> list[tuple[object, ...]]:
        return connection.execute("SELECT * FROM tombstones").fetchall()

    async with engine._registry.use("w") as opened:
        assert await opened.database.read(look) == [
            (put.id, "memory", clock.now, clock.now, "person asked")
        ]
    with pytest.raises(NotFound):
        await engine.erase("w", [put.id])


async def test_a_document_and_quotations_of_it_are_erased(
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


@pytest.mark.embedded
async def test_forgotten_things_can_be_erased_together(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    ids = await fill(engine)
    await engine.forget("w", ids[20:])

    erased = await engine.erase_forgotten("w")

    assert erased.items == 200
    assert residue(tmp_path) == []


@pytest.mark.embedded
async def test_with_a_reader_open_an_erase_says_it_is_not_done_and_is_done_later(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    engine.erase_wait_seconds = 0.3
    ids = await fill(engine)
    path = engine._registry.directory(await engine.bank("w")) / "bank.db"
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


async def test_an_export_imported_elsewhere_exports_to_the_same_bytes(
    engine: EmbeddedEngine, tmp_path: Path, clock: Clock
) -> None:
    await fill_bank(engine)
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
    await fill_bank(engine)
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

    assert [bank.name for bank in await engine.banks()] == ["w"]


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


class Counts(list[tuple[int, int]]):
    """The reported progress of an operation."""

    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))


@pytest.mark.embedded
async def test_long_operations_report_growing_progress(engine: EmbeddedEngine) -> None:
    await engine.put_many("w", [NewMemory(text=f"memory number {n}") for n in range(1_200)])
    reported: dict[str, Counts] = {
        name: Counts() for name in ("back_up", "restore", "check", "repair", "rebuild")
    }
    made = await engine.back_up("w", progress=reported["back_up"])
    await engine.restore("w", made.name, progress=reported["restore"])
    await engine.check("w", progress=reported["check"])
    await engine.repair("w", progress=reported["repair"])
    await engine.rebuild("w", progress=reported["rebuild"])
    for name, counts in reported.items():
        shares = [done / total for done, total in counts]
        assert len(set(shares)) >= 3, name
        assert shares == sorted(shares), name
        assert 0.5 <= shares[-1] <= 1, name
