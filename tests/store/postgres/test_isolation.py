"""Banks in the same tables do not see each other, even if a statement forgets to name its bank."""

from pathlib import Path
from unittest.mock import patch

import psycopg
import pytest

from store.errors import NotFound
from store.model import Filters, NewCard, NewDocument, NewMemory, Query
from store.postgres import connection as connections
from store.postgres.engine import PostgresEngine, open_postgres_engine
from store.postgres.scoping import BANK_TABLES, Scoped, scoped
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio


async def fill(engine: PostgresEngine, bank: str, word: str) -> None:
    await engine.put(bank, NewMemory(text=f"the {word} is in the cellar", id=f"{word}-1"))
    await engine.put(bank, NewMemory(text=f"{word} again", session="s", tags=("t",), user="u"))
    card = NewCard(category="rule", title=f"{word} rule", summary=f"use {word}")
    await engine.put_cards(bank, [card])
    body = f"# {word}\n\nA document about {word}."
    await engine.upsert_document(bank, NewDocument(source="s", source_id="1", body=body))


async def seen(engine: PostgresEngine, bank: str, directory: Path) -> bytes:
    """Everything that a bank answers, as bytes."""
    path = directory / "seen.jsonl"
    await engine.export(bank, path)
    found = await engine.search(Query(bank=bank, text="cellar rule document"))
    listed = await engine.timeline(bank, filters=Filters(user="u"))
    stats = await engine.stats(bank)
    return path.read_bytes() + repr((found, listed, stats)).encode()


async def test_what_one_bank_answers_does_not_depend_on_other_banks(
    url: str, clock: Clock, tmp_path: Path
) -> None:
    async with open_postgres_engine(url, ranking=PlainRanking, now=clock) as engine:
        await fill(engine, "ours", "copper")
        before = await seen(engine, "ours", tmp_path)
        for round in range(20):
            await fill(engine, f"other {round % 4}", f"silver{round}")
            assert await seen(engine, "ours", tmp_path) == before
        with pytest.raises(NotFound):
            await engine.get("other 1", "copper-1")
        await engine.delete_bank("other 1")
        assert await seen(engine, "ours", tmp_path) == before


def unlimited(sql: str) -> Scoped:
    """A faulty rewriting that forgets the bank in every SELECT."""
    right = scoped(sql)
    if not sql.startswith("SELECT"):
        return right
    return Scoped(right.sql.replace("WHERE bank = $1)", "WHERE $1::bigint IS NOT NULL)"), True)


async def test_row_level_security_isolates_banks_when_the_condition_is_missing(
    url: str, clock: Clock, tmp_path: Path
) -> None:
    async with open_postgres_engine(url, ranking=PlainRanking, now=clock) as engine:
        await fill(engine, "ours", "copper")
        await fill(engine, "theirs", "silver")
        before = await seen(engine, "ours", tmp_path)
        with patch.object(connections, "scoped", unlimited):
            assert await seen(engine, "ours", tmp_path) == before
            with pytest.raises(NotFound):
                await engine.get("ours", "silver-1")


@pytest.mark.parametrize("table", BANK_TABLES)
async def test_without_a_bank_no_row_of_any_bank_is_visible(
    url: str, clock: Clock, table: str
) -> None:
    async with open_postgres_engine(url, ranking=PlainRanking, now=clock) as engine:
        await fill(engine, "ours", "copper")
    with psycopg.connect(url) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone() == (0,)
        forced = connection.execute(
            "SELECT relrowsecurity, relforcerowsecurity FROM pg_class WHERE oid = %s::regclass",
            (table,),
        ).fetchone()
    assert forced == (True, True)
