"""Recovery of the catalogue: no bank is lost with the database that lists the banks."""

import secrets
import shutil
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from store.errors import BankNotFound, StorageForeign
from store.model import NewMemory
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(home: Path) -> AsyncGenerator[EmbeddedEngine]:
    async with open_engine(home, ranking=PlainRanking, now=Clock()) as engine:
        yield engine


async def filled(home: Path) -> None:
    """Two banks with a memory each; "work" was renamed and has a quota."""
    async with opened(home) as engine:
        await engine.put("notes", NewMemory(text="in notes"))
        await engine.put("job", NewMemory(text="in work"))
        await engine.rename_bank("job", "work")
        await engine.set_quota("work", 10_000_000)


async def texts(engine: EmbeddedEngine, bank: str) -> list[str]:
    return [item.text for item in (await engine.recent(bank)).items]


def lose_catalogue(home: Path, *, with_backup: bool) -> None:
    for file in home.glob("catalogue.db*"):
        if with_backup or not file.name.endswith(".backup"):
            file.unlink()


def damage(file: Path) -> None:
    """Overwrite every page but the first, as a failing disk can."""
    content = file.read_bytes()
    file.write_bytes(content[:4096] + bytes(len(content) - 4096))


async def test_orphaned_banks_are_reported_and_recovered_with_their_names_and_settings(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    lose_catalogue(tmp_path, with_backup=True)

    async with opened(tmp_path) as engine:
        assert "banks-orphaned" in engine.health().degraded
        assert (await engine.banks()) == []
        with pytest.raises(BankNotFound):
            await engine.recent("notes")

        recovered = await engine.recover_banks()

        assert sorted(bank.name for bank in recovered.banks) == ["notes", "work"]
        assert recovered.refused == ()
        assert await texts(engine, "notes") == ["in notes"]
        assert await texts(engine, "work") == ["in work"]
        assert (await engine.bank("work")).quota_bytes == 10_000_000
        assert "banks-orphaned" not in engine.health().degraded
    async with opened(tmp_path) as engine:
        assert [bank.name for bank in await engine.banks()] == ["notes", "work"]


@pytest.mark.parametrize("loss", ["deleted", "emptied", "zeroed", "overwritten"])
async def test_a_lost_or_damaged_catalogue_is_replaced_by_its_backup(
    tmp_path: Path, loss: str
) -> None:
    await filled(tmp_path)
    catalogue = tmp_path / "catalogue.db"
    match loss:
        case "deleted":
            catalogue.unlink()
        case "emptied":
            catalogue.write_bytes(b"")
        case "zeroed":
            damage(catalogue)
        case _:
            catalogue.write_bytes(secrets.token_bytes(8192))

    async with opened(tmp_path) as engine:
        assert [bank.name for bank in await engine.banks()] == ["notes", "work"]
        assert await texts(engine, "work") == ["in work"]
        assert (await engine.bank("work")).quota_bytes == 10_000_000
        assert "catalogue-replaced" in engine.health().degraded
    async with opened(tmp_path) as engine:
        assert engine.health().degraded == ()


async def test_a_damaged_catalogue_without_a_backup_is_set_aside_and_the_engine_starts(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    (tmp_path / "catalogue.db.backup").unlink()
    damage(tmp_path / "catalogue.db")
    damaged = (tmp_path / "catalogue.db").read_bytes()

    async with opened(tmp_path) as engine:
        assert {"banks-orphaned", "catalogue-replaced"} <= set(engine.health().degraded)
        assert len((await engine.recover_banks()).banks) == 2

    (kept,) = tmp_path.glob("catalogue.db.damaged-*")
    assert kept.read_bytes() == damaged


async def test_a_backup_from_before_a_rename_and_a_deletion_brings_neither_back(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    old = tmp_path / "old"
    shutil.copyfile(tmp_path / "catalogue.db.backup", old)
    async with opened(tmp_path) as engine:
        await engine.rename_bank("work", "office")
        await engine.delete_bank("notes")
        await engine.put("new", NewMemory(text="in new"))
    shutil.copyfile(old, tmp_path / "catalogue.db.backup")
    (tmp_path / "catalogue.db").unlink()

    async with opened(tmp_path) as engine:
        assert [bank.name for bank in await engine.banks()] == ["office"]
        assert "banks-orphaned" in engine.health().degraded
        await engine.recover_banks()
        assert [bank.name for bank in await engine.banks()] == ["new", "office"]


async def test_a_recovered_bank_whose_name_is_taken_gets_another_one(tmp_path: Path) -> None:
    await filled(tmp_path)
    lose_catalogue(tmp_path, with_backup=True)
    async with opened(tmp_path) as engine:
        await engine.put("notes", NewMemory(text="newer notes"))

        recovered = await engine.recover_banks()

        (other,) = [bank for bank in recovered.banks if bank.name.startswith("notes (recovered ")]
        assert await texts(engine, "notes") == ["newer notes"]
        assert await texts(engine, other.name) == ["in notes"]


async def test_directories_that_are_not_banks_are_refused_by_name_and_left_alone(
    tmp_path: Path,
) -> None:
    await filled(tmp_path)
    foreign = tmp_path / "banks" / ("f" * 32)
    foreign.mkdir()
    with sqlite3.connect(foreign / "bank.db") as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = (foreign / "bank.db").read_bytes()

    async with opened(tmp_path) as engine:
        assert "banks-orphaned" in engine.health().degraded
        recovered = await engine.recover_banks()
        assert recovered.banks == ()
        ((directory, reason),) = recovered.refused
        assert directory == "f" * 32
        assert "another program" in reason
        assert [bank.name for bank in await engine.banks()] == ["notes", "work"]

    assert (foreign / "bank.db").read_bytes() == before


async def test_an_interrupted_deletion_does_not_come_back_as_an_orphan(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with opened(tmp_path) as engine:
        id = (await engine.bank("notes")).id
    # The process was killed after the directory was marked and before its files were removed.
    (tmp_path / "banks" / id).rename(tmp_path / "banks" / f"{id}.deleted")
    lose_catalogue(tmp_path, with_backup=True)

    async with opened(tmp_path) as engine:
        recovered = await engine.recover_banks()
        assert [bank.name for bank in recovered.banks] == ["work"]


async def test_a_bank_file_without_our_mark_is_refused_and_not_written_to(tmp_path: Path) -> None:
    await filled(tmp_path)
    async with opened(tmp_path) as engine:
        id = (await engine.bank("notes")).id
    file = tmp_path / "banks" / id / "bank.db"
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = file.read_bytes()

    async with opened(tmp_path) as engine:
        with pytest.raises(StorageForeign):
            await engine.recent("notes")
        assert await texts(engine, "work") == ["in work"]

    assert file.read_bytes() == before


async def test_a_bank_with_a_view_in_the_place_of_a_table_is_refused(tmp_path: Path) -> None:
    """A recursive view would keep `check` and every search busy for ever."""
    await filled(tmp_path)
    async with opened(tmp_path) as engine:
        id = (await engine.bank("notes")).id
    with sqlite3.connect(tmp_path / "banks" / id / "bank.db") as connection:
        connection.execute("DROP TABLE profiles")
        connection.execute(
            "CREATE VIEW profiles AS WITH RECURSIVE n(x) AS"
            " (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
            " SELECT x AS agent_role, x AS fields, x AS updated_at, x AS digest FROM n"
        )
    connection.close()

    async with opened(tmp_path) as engine:
        with pytest.raises(StorageForeign, match="views or triggers"):
            await engine.check("notes")
        assert await texts(engine, "work") == ["in work"]
