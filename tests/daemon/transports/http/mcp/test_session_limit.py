"""The number of sessions of a principal is limited, without effect on others."""

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.support.web import Web, call, request, running_web, token_file

pytestmark = pytest.mark.anyio

LIMIT: Final = 3
TOKENS: Final = "".join(
    f'[[token]]\nname = "{name}"\nsecret = "{name * 40}"\n' for name in ("a", "b")
)


def serving(home: Path) -> Any:
    tokens = token_file(home, TOKENS)
    return running_web(
        home, server__token_file=tokens, limits__http_sessions=LIMIT, sessions__keep=1
    )


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with serving(tmp_path) as running:
        yield running


async def opened(web: Web, name: str) -> dict[str, str]:
    return await web.open(headers={"authorization": f"Bearer {name * 40}"})


async def is_alive(web: Web, session: dict[str, str]) -> bool:
    answer = await web.post(request("ping"), session)
    assert answer.status_code in (200, 404)
    return answer.status_code == 200


async def test_one_token_cannot_end_the_sessions_of_another(web: Web) -> None:
    mine = [await opened(web, "a") for _ in range(LIMIT)]
    for _ in range(LIMIT * 3):
        await opened(web, "b")
    await web.services.sessions.flush()  # the catalogue also keeps one session without a handle
    assert [await is_alive(web, session) for session in mine] == [True] * LIMIT
    assert len(web.services.limiter._windows) <= 2 * LIMIT + 2


async def test_one_session_too_many_ends_the_least_recently_used(web: Web) -> None:
    first, second, third = [await opened(web, "a") for _ in range(LIMIT)]
    assert await is_alive(web, first)
    fourth = await opened(web, "a")
    alive = [await is_alive(web, session) for session in (first, second, third, fourth)]
    assert alive == [True, False, True, True]


async def test_sessions_from_before_a_restart_count(tmp_path: Path) -> None:
    async with serving(tmp_path) as web:
        before = [await opened(web, "a") for _ in range(LIMIT)]
        other = await opened(web, "b")
    async with serving(tmp_path) as web:
        after = [await opened(web, "a") for _ in range(2)]
        alive = [await is_alive(web, session) for session in [*before, *after, other]]
    assert alive.count(True) == LIMIT + 1
    assert alive[-3:] == [True, True, True]


async def test_a_busy_session_is_not_ended_and_all_busy_is_an_error(web: Web) -> None:
    sessions = [await opened(web, "a") for _ in range(LIMIT)]
    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(web.post, call("slow", {"seconds": 60}, id=9), session)
        await web.services.gate.until(lambda: web.services.gate.in_flight == LIMIT)
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        refused = await web.post(
            request("initialize", params), {"authorization": f"Bearer {'a' * 40}"}
        )
        assert refused.status_code == 429
        assert "retry-after" in refused.headers
        assert refused.json()["error"]["data"]["kind"] == "overloaded"
        assert "mcp-session-id" not in refused.headers
        assert await is_alive(web, await opened(web, "b"))
        ended = await web.client.delete("/mcp", headers=sessions[0])
        assert ended.status_code == 204
        assert await is_alive(web, await opened(web, "a"))
        group.cancel_scope.cancel()
