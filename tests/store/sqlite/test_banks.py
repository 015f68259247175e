"""Banks: names that are never paths, a bounded number open, nothing of one in another."""

import stat
from collections.abc import Callable
from pathlib import Path

import anyio
import msgspec
import pytest

from store.errors import (
    BankExists,
    BankNameInvalid,
    BankNotFound,
    InvalidInput,
    StorageDamaged,
    StorageForeign,
    StoreError,
)
from store.model import NewMemory, Query
from store.sqlite.catalogue import Catalogue
from store.sqlite.database import Connection
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

HOSTILE_NAMES = [
    "../../etc/passwd", "/", "..", ".", "~", "a/b", "CON", "nul", "Work", "work", "WORK", " work",
    "work ", "café", "名前", "🧠", "'; DROP TABLE banks; --", "%s%n", "a" * 256, "\u202eevil",
]  # fmt: skip


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


async def test_any_name_is_a_bank_of_its_own_and_never_a_path(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    for position, name in enumerate(HOSTILE_NAMES):
        await engine.put(name, NewMemory(text=f"only in number {position}"))

    for position, name in enumerate(HOSTILE_NAMES):
        (item,) = (await engine.recent(name)).items
        assert item.text == f"only in number {position}"
    directories = list((tmp_path / "data" / "banks").iterdir())
    assert len(directories) == len(HOSTILE_NAMES)
    assert all(len(directory.name) == 32 for directory in directories)
    assert names(tmp_path) == {"data"}


async def test_two_spellings_of_the_same_letters_are_one_bank(engine: EmbeddedEngine) -> None:
    await engine.put("cafe\u0301", NewMemory(text="composed or not"))

    assert (await engine.recent("caf\u00e9")).total == 1
    assert len(await engine.banks()) == 1


@pytest.mark.parametrize("name", ["", "a" * 257, "a\x00b", "line\nbreak", "\x1b[31m", "\ud800"])
async def test_a_name_that_cannot_be_one_is_refused(engine: EmbeddedEngine, name: str) -> None:
    with pytest.raises(BankNameInvalid):
        await engine.put(name, NewMemory(text="x"))
    with pytest.raises(BankNameInvalid):
        await engine.search(Query(bank=name, text="x"))

    assert (await engine.banks()) == []


async def test_banks_are_created_renamed_and_deleted(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await engine.create_bank("one")
    await engine.put("two", NewMemory(text="kept"))
    with pytest.raises(BankExists):
        await engine.create_bank("one")
    with pytest.raises(BankExists):
        await engine.rename_bank("two", "one")
    with pytest.raises(BankNotFound):
        await engine.rename_bank("three", "four")
    for quota in (0, -1, 2**63):
        with pytest.raises(InvalidInput):
            await engine.create_bank("none", quota_bytes=quota)
        with pytest.raises(InvalidInput):
            await engine.set_quota("one", quota)

    await engine.rename_bank("two", "second")
    assert (await engine.recent("second")).total == 1
    with pytest.raises(BankNotFound):
        await engine.recent("two")

    await engine.back_up("second")
    await engine.delete_bank("second")
    with pytest.raises(BankNotFound):
        await engine.recent("second")
    assert [bank.name for bank in await engine.banks()] == ["one"]
    assert list((tmp_path / "data" / "banks").iterdir()) == []
    assert list((tmp_path / "data" / "backups").iterdir()) == []
    await engine.put("second", NewMemory(text="a new one"))
    assert (await engine.recent("second")).total == 1


async def test_quotas_set_at_once_or_with_a_put_find_the_bank(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        await engine.put("w", NewMemory(text="first"))

    async with open_engine(tmp_path, ranking=PlainRanking, now=clock) as engine:
        async with anyio.create_task_group() as group:
            for quota in (10_000_000, 20_000_000, 30_000_000):
                group.start_soon(engine.set_quota, "w", quota)
                group.start_soon(engine.put, "w", NewMemory(text=f"beside {quota}"))

        assert (await engine.bank("w")).quota_bytes == 30_000_000
        assert (await engine.recent("w")).total == 4
        assert [opened.bank for opened in engine._registry.open_banks()] == [
            (await engine.bank("w"))
        ]


async def test_a_bank_renamed_twice_at_once_has_one_name(engine: EmbeddedEngine) -> None:
    await engine.put("w", NewMemory(text="x"))
    outcomes: list[str] = []

    async def rename(new: str) -> None:
        try:
            outcomes.append((await engine.rename_bank("w", new)).name)
        except BankNotFound as error:
            outcomes.append(f"no {error.bank}")

    async with anyio.create_task_group() as group:
        group.start_soon(rename, "a")
        group.start_soon(rename, "b")

    assert sorted(outcomes) == ["a", "no w"]
    assert [bank.name for bank in await engine.banks()] == ["a"]


async def test_a_bank_is_deleted_after_its_users_are_done(engine: EmbeddedEngine) -> None:
    await engine.put("busy", NewMemory(text="x"))
    order: list[str] = []

    async with anyio.create_task_group() as group:

        async def delete() -> None:
            await engine.delete_bank("busy")
            order.append("deleted")

        async with engine._registry.use("busy") as opened:
            group.start_soon(delete)
            await anyio.wait_all_tasks_blocked()
            assert (await opened.database.read(_count)) == 1
            order.append("used")

    assert order == ["used", "deleted"]


async def test_only_so_many_banks_are_open_and_each_answers(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(
        tmp_path / "data", ranking=PlainRanking, now=clock, open_limit=3
    ) as engine:
        for n in range(10):
            await engine.put(f"bank {n}", NewMemory(text=f"text {n}"))
            assert engine.health().open_banks <= 3
        for n in range(10):
            assert (await engine.recent(f"bank {n}")).items[0].text == f"text {n}"

        assert engine.health().banks == 10


async def test_a_deletion_that_was_cut_short_is_finished_at_the_next_start(
    tmp_path: Path, clock: Clock
) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        await engine.put("doomed", NewMemory(text="x"))
        id = (await engine.bank("doomed")).id
    catalogue = await Catalogue.open(tmp_path / "data", now=clock)

    def leave(connection: Connection) -> None:
        connection.execute("DELETE FROM banks")
        connection.execute("INSERT INTO banks_leaving VALUES (?, 0)", (id,))

    await catalogue.database.write(leave)
    await catalogue.close()

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        assert (await engine.banks()) == []
        assert not (tmp_path / "data" / "banks" / id).exists()


async def test_files_and_directories_are_private(engine: EmbeddedEngine, tmp_path: Path) -> None:
    await engine.put("w", NewMemory(text="x"))
    await engine.back_up("w")

    for path in [tmp_path / "data", *(tmp_path / "data").rglob("*")]:
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


async def test_a_database_in_another_banks_place_is_refused(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        await engine.put("a", NewMemory(text="a's secret"))
        await engine.put("b", NewMemory(text="b's secret"))
        paths = [engine._registry.directory(await engine.bank(name)) / "bank.db" for name in "ab"]
    (a, b) = (path.read_bytes() for path in paths)
    paths[0].write_bytes(b)
    paths[1].write_bytes(a)

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        for name in "ab":
            with pytest.raises(StorageForeign):
                await engine.recent(name)


async def test_a_damaged_bank_does_not_touch_the_others(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        for name in "abc":
            await engine.put(name, NewMemory(text=f"in {name}"))
        path = engine._registry.directory(await engine.bank("b")) / "bank.db"
    path.write_bytes(b"garbage" * 1000)

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        with pytest.raises(StorageDamaged):
            await engine.recent("b")
        for name in "ac":
            assert (await engine.recent(name)).total == 1
            await engine.put(name, NewMemory(text="more"))


# --- isolation --------------------------------------------------------------------------------

CANARIES = [f"canary{n:03d}zq" for n in range(500)]


async def _script(engine: EmbeddedEngine) -> list[bytes]:
    """The answers of bank A as bytes, without ids and rowids."""
    answers: list[bytes] = []
    for n in range(20):
        await engine.put(
            "a", NewMemory(text=f"note {n} about the {'red' if n % 2 else 'blue'} boat")
        )
    for text in ("red boat", "blue", "note 7", "nothing like it", CANARIES[0]):
        for mode in ("keyword", "hybrid"):
            found = await engine.search(Query(bank="a", text=text, mode=mode))
            answers.append(
                msgspec.json.encode([(hit.item.text, hit.score, hit.snippet) for hit in found.hits])
            )
    stats = await engine.stats("a")
    answers.append(msgspec.json.encode((stats.items, stats.by_kind, stats.oldest_at)))
    return answers


@pytest.mark.parametrize("ranking", [PlainRanking, None], ids=["plain", "real"])
async def test_a_banks_answers_do_not_depend_on_another_bank(
    tmp_path: Path, clock: Clock, ranking: Callable[..., PlainRanking] | None
) -> None:
    answers = []
    for neighbours in (0, 10_000):
        options = {} if ranking is None else {"ranking": ranking}
        directory = tmp_path / f"data{neighbours}"
        async with open_engine(directory, now=clock, **options) as engine:  # type: ignore[arg-type]  # one option
            await engine.create_bank("a")
            for start in range(0, neighbours, 1_000):
                await engine.put_many(
                    "b",
                    [
                        NewMemory(text=f"note {n} about the red boat, nearly the same {n}")
                        for n in range(start, start + 1_000)
                    ],
                )
            answers.append(await _script(engine))

    assert answers[0] == answers[1]


async def test_five_hundred_canaries_of_one_bank_never_show_in_another(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    await engine.put_many("b", [NewMemory(text=f"{canary} sings") for canary in CANARIES])
    await engine.put("a", NewMemory(text="a quiet place"))
    seen = bytearray()

    for canary in CANARIES:
        seen += msgspec.json.encode(await engine.search(Query(bank="a", text=f"{canary} sings")))
        for verb in (engine.get, engine.document, engine.card):
            try:
                seen += repr(await verb("a", "mem_unknown")).encode()
            except StoreError as error:
                seen += repr(error).encode()
    await engine.export("a", tmp_path / "a.jsonl")
    await engine.back_up("a")
    places = [
        engine._registry.directory(await engine.bank("a")),
        engine._registry.backups(await engine.bank("a")),
    ]
    for file in [tmp_path / "a.jsonl", *(path for place in places for path in place.iterdir())]:
        seen += file.read_bytes()

    assert b"quiet place" in seen
    assert [canary for canary in CANARIES if canary.encode() in seen] == []


def _count(connection: Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM items").fetchone()
    return int(count)
