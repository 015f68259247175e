"""Handles lead to sessions for as long as those live."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from store.sqlite.catalogue import Catalogue

pytestmark = pytest.mark.anyio

DIGEST = b"d" * 32


@pytest.fixture
async def catalogue(tmp_path: Path) -> AsyncGenerator[Catalogue]:
    opened = await Catalogue.open(tmp_path)
    yield opened
    await opened.close()


async def test_a_handle_leads_to_its_session_after_a_reopen(tmp_path: Path) -> None:
    first = await Catalogue.open(tmp_path)
    session = await first.sessions.mint(transport="http")
    await first.sessions.handles.keep(DIGEST, session.id, '{"a":1}')
    await first.sessions.handles.keep(DIGEST, session.id, '{"a":2}')
    await first.close()
    second = await Catalogue.open(tmp_path)
    found = await second.sessions.handles.find(DIGEST)
    await second.close()
    assert found is not None
    assert (found.session, found.state) == (session.id, '{"a":2}')


async def test_a_dropped_handle_leads_nowhere_and_its_session_is_over(
    catalogue: Catalogue,
) -> None:
    session = await catalogue.sessions.mint(transport="http")
    await catalogue.sessions.handles.keep(DIGEST, session.id, "{}")
    await catalogue.sessions.handles.drop(DIGEST)
    assert await catalogue.sessions.handles.find(DIGEST) is None
    assert await catalogue.sessions.resume(session.id) is None


async def test_an_ended_or_expired_session_takes_its_handles_along(catalogue: Catalogue) -> None:
    for number in (1, 2):
        session = await catalogue.sessions.mint(transport="http")
        await catalogue.sessions.handles.keep(bytes([number]) * 32, session.id, "{}")
        if number == 1:
            await catalogue.sessions.end(session.id)
    assert await catalogue.sessions.handles.find(b"\1" * 32) is None
    assert await catalogue.sessions.handles.find(b"\2" * 32) is not None
    await catalogue.sessions.expire(max_idle_seconds=-1, max_count=9)
    assert await catalogue.sessions.handles.find(b"\2" * 32) is None


async def test_sessions_without_a_handle_do_not_push_out_those_with_one(
    catalogue: Catalogue,
) -> None:
    held = await catalogue.sessions.mint(transport="http")
    await catalogue.sessions.handles.keep(DIGEST, held.id, "{}")
    over = await catalogue.sessions.mint(transport="http")
    await catalogue.sessions.handles.keep(b"e" * 32, over.id, "{}")
    await catalogue.sessions.end(over.id)
    others = [await catalogue.sessions.mint(transport="stdio") for _ in range(3)]
    await catalogue.sessions.expire(max_idle_seconds=1e9, max_count=0)
    assert await catalogue.sessions.get(held.id) is not None
    assert [await catalogue.sessions.get(each.id) for each in [over, *others]] == [None] * 4
    assert [digest for digest, _ in await catalogue.sessions.handles.all()] == [DIGEST]


async def test_an_unknown_handle_leads_nowhere(catalogue: Catalogue) -> None:
    assert await catalogue.sessions.handles.find(b"x" * 32) is None
