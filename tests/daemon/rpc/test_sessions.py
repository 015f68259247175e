"""A client that reconnects soon with the same name and bank resumes its session."""

from pathlib import Path

import pytest

from daemon.rpc.sessions import SessionKeeper
from store.sqlite.catalogue import Catalogue
from tests.support.clock import Clock

pytestmark = pytest.mark.anyio


async def opened(
    keeper: SessionKeeper,
    name: str | None = "editor",
    bank: str = "b",
    transport: str = "unix",
    resume: str | None = None,
) -> str:
    return await keeper.open(
        resume=resume, transport=transport, client_name=name, client_version="1", bank=bank
    )


async def keeper_at(home: Path, clock: Clock) -> tuple[Catalogue, SessionKeeper]:
    catalogue = await Catalogue.open(home, now=clock)
    keeper = SessionKeeper(catalogue.sessions, idle_days=30, keep=100, resume_seconds=600)
    return catalogue, keeper


async def test_the_same_name_and_bank_resume_the_last_session(tmp_path: Path) -> None:
    catalogue, keeper = await keeper_at(tmp_path, Clock())
    try:
        first = await opened(keeper)
        keeper.release(first)

        assert await opened(keeper) == first
    finally:
        await catalogue.close()


@pytest.mark.parametrize(
    "other",
    [{"name": "another"}, {"bank": "c"}, {"name": None}, {"transport": "http"}],
    ids=["name", "bank", "no name", "http"],
)
async def test_another_name_bank_or_transport_gets_a_new_session(
    tmp_path: Path, other: dict[str, str]
) -> None:
    catalogue, keeper = await keeper_at(tmp_path, Clock())
    try:
        first = await opened(keeper)
        keeper.release(first)

        assert await opened(keeper, **other) != first
    finally:
        await catalogue.close()


async def test_a_session_in_use_is_not_resumed(tmp_path: Path) -> None:
    catalogue, keeper = await keeper_at(tmp_path, Clock())
    try:
        first = await opened(keeper)
        second = await opened(keeper)
        assert second != first

        assert await opened(keeper, resume=first) == first  # its bridge reconnects
        keeper.release(first)
        assert await opened(keeper) not in (first, second)
        keeper.release(first)
        assert await opened(keeper) == first
    finally:
        await catalogue.close()


async def test_the_time_counts_from_the_end_of_the_connection(tmp_path: Path) -> None:
    clock = Clock()
    catalogue, keeper = await keeper_at(tmp_path, clock)
    try:
        first = await opened(keeper)
        clock.advance(3_600)  # an hour of silence with an open editor
        keeper.release(first)
        assert await opened(keeper) == first

        keeper.release(first)
        await keeper.flush()
        clock.advance(601)
        assert await opened(keeper) != first
    finally:
        await catalogue.close()
