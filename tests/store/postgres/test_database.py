"""Transactions on a server that fails, and several engines on one database."""

import anyio
import psycopg
import pytest

from store.errors import BankNotFound, StorageBusy, StorageFailed
from store.model import NewMemory, Query
from store.postgres import database as databases
from store.postgres.connection import Server
from store.postgres.engine import PostgresEngine, open_postgres_engine
from tests.store.postgres.cluster import Cluster, cluster
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio


async def texts(engine: PostgresEngine, bank: str) -> list[str]:
    page = await engine.recent(bank, limit=1_000)
    return sorted(item.text for item in page.items)


async def test_two_engines_write_to_one_bank_and_each_write_is_there_once(url: str) -> None:
    async with (
        open_postgres_engine(url, ranking=PlainRanking) as one,
        open_postgres_engine(url, ranking=PlainRanking) as other,
    ):
        rowids: list[int] = []

        async def write(engine: PostgresEngine, name: str) -> None:
            for number in range(10):
                put = await engine.put("shared", NewMemory(text=f"{name} wrote {number}"))
                rowids.append(put.rowid)
                found = await engine.search(Query(bank="shared", text=f"{name} {number}"))
                assert any(hit.item.id == put.id for hit in found.hits)

        async with anyio.create_task_group() as tasks:
            for writer in range(8):
                tasks.start_soon(write, (one, other)[writer % 2], f"writer{writer}")

        expected = sorted(f"writer{w} wrote {n}" for w in range(8) for n in range(10))
        assert await texts(one, "shared") == await texts(other, "shared") == expected
        assert len(set(rowids)) == len(rowids) == 80  # no change number was given twice
        assert (await one.check("shared")).problems == ()


async def test_a_bank_that_another_engine_deletes_or_renames_is_noticed(url: str) -> None:
    async with (
        open_postgres_engine(url, ranking=PlainRanking) as one,
        open_postgres_engine(url, ranking=PlainRanking) as other,
    ):
        await one.put("shared", NewMemory(text="a"))
        assert await texts(other, "shared") == ["a"]
        await one.delete_bank("shared")
        with pytest.raises(BankNotFound):
            await texts(other, "shared")
        await one.put("shared", NewMemory(text="b"))
        assert await texts(other, "shared") == ["b"]


async def test_a_connection_that_the_server_ends_is_replaced_without_an_error(
    server: Cluster, url: str
) -> None:
    async with open_postgres_engine(url, ranking=PlainRanking) as engine:
        await engine.put("w", NewMemory(text="before"))
        server.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'recalld'"
        )
        await engine.put("w", NewMemory(text="after"))
        assert await texts(engine, "w") == ["after", "before"]


async def test_a_connection_lost_during_commit_is_reported_and_a_retry_stores_once(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_postgres_engine(url, ranking=PlainRanking) as engine:
        await engine.create_bank("w")
        end = databases.ServerDatabase._end

        def cut(self: databases.ServerDatabase, server: Server) -> None:
            """The COMMIT takes effect, but its answer never arrives."""
            end(self, server)
            monkeypatch.setattr(databases.ServerDatabase, "_end", end)
            try:
                raise psycopg.OperationalError("the connection was lost")
            except psycopg.OperationalError as error:
                raise StorageFailed("during COMMIT") from error

        monkeypatch.setattr(databases.ServerDatabase, "_end", cut)
        memory = NewMemory(text="once", idempotency_key="k")
        with pytest.raises(StorageFailed):
            await engine.put("w", memory)
        again = await engine.put("w", memory)
        assert again.duplicate
        assert await texts(engine, "w") == ["once"]


async def test_a_killed_server_makes_calls_fail_and_service_resumes_by_itself() -> None:
    with cluster() as running:
        url = running.new_database()
        async with open_postgres_engine(url, ranking=PlainRanking) as engine:
            await engine.put("w", NewMemory(text="acknowledged"))
            running.stop("immediate")
            with pytest.raises(StorageBusy):
                await engine.put("w", NewMemory(text="not acknowledged"))
            with anyio.fail_after(20):
                while "storage-unreachable" not in engine.health().degraded:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            assert not engine.health().is_ready
            running.start()
            await engine.put("w", NewMemory(text="later"))
            assert await texts(engine, "w") == ["acknowledged", "later"]
            with anyio.fail_after(20):
                while not engine.health().is_ready:  # noqa: ASYNC110
                    await anyio.sleep(0.05)
