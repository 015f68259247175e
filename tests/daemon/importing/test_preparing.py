"""Preparation of imports, and the import of every kind into a bank."""

from pathlib import Path
from typing import Any

import pytest

from daemon.importing.preparing import Prepared, prepare
from daemon.importing.record import WrongKind
from store.model import Imported
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.daemon.importing.foreign_data import SAMPLES
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

NOW = 1_780_000_000_000


def prepared(path: Path, name: str | None, directory: Path, **more: Any) -> Prepared:
    directory.mkdir(parents=True, exist_ok=True)
    given: dict[str, Any] = {"policy": "skip", "progress": lambda _done, _total: None, **more}
    return prepare(path, name, directory, bank="n", now=NOW, **given)


async def imported(engine: EmbeddedEngine, bank: str, made: Prepared) -> dict[str, Any]:
    done: Imported = await engine.import_file(bank, made.file)
    return made.report(
        {
            "bank": bank,
            "createdByType": done.created_by_type,
            "knownByType": done.known_by_type,
            "edited": done.is_edited,
            "dryRun": False,
        }
    )


async def test_every_kind_reaches_a_bank_once(tmp_path: Path) -> None:
    async with open_engine(tmp_path / "engine", ranking=PlainRanking) as engine:
        for name, sample in SAMPLES.items():
            (tmp_path / name).mkdir()
            path = sample(tmp_path / name)
            first = await imported(engine, name, prepared(path, name, tmp_path / f"{name}-1"))
            assert first["imported"] >= 1, name
            second = await imported(engine, name, prepared(path, None, tmp_path / f"{name}-2"))
            assert second["kind"] == name
            assert (second["imported"], second["known"]) == (0, first["imported"]), name
            assert second["rejected"] == first["rejected"], name


async def test_the_entries_are_counted_while_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "note {number}"}}\n' for number in range(2_500)))
    seen: list[tuple[int, int]] = []
    made = prepared(
        path, "jsonl", tmp_path / "staged", progress=lambda *counts: seen.append(counts)
    )

    assert seen == [(1_000, 0), (2_000, 0)]
    assert made.staged is not None
    assert made.staged.staged == 2_500


async def test_an_interrupted_import_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f'{{"text": "note {number}"}}\n' for number in range(6_000)))
    made = prepared(path, "jsonl", tmp_path / "staged")
    async with open_engine(tmp_path / "engine", ranking=PlainRanking) as engine:

        def fail(done: int, _total: int) -> None:
            if done >= 5_000:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            await engine.import_file("n", made.file, progress=fail)
        assert (await engine.stats("n")).items == 5_000
        again = await engine.import_file("n", made.file)
        assert (again.created, again.known) == (1_000, 5_000)
        assert (await engine.check("n")).problems == ()


def test_a_path_of_another_kind_is_described(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(WrongKind, match="is of no known kind; it looks like a binary file"):
        prepared(path, None, tmp_path / "staged")
    with pytest.raises(WrongKind, match="is not data of"):
        prepared(path, "hindsight", tmp_path / "staged")
    assert not (tmp_path / "staged" / "staged.jsonl").exists()


def test_an_export_of_recalld_is_of_no_other_kind(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"format": "recalld-bank", "version": 1, "bank": "work"}\n')
    with pytest.raises(WrongKind, match="it is an export of recalld"):
        prepared(path, "csv", tmp_path / "staged")
    assert prepared(path, None, tmp_path / "staged").staged is None
