"""Scripts that attack the daemon: it stays unharmed, the status is right, the next call is served.

Each script is a tool. After each attack an innocent tool answers within 100 ms.
"""

import time
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from daemon.config.scripts import ScriptEntry
from tests.support.scripts import MIB, ScriptWeb, executing, script_web

#: The bar of issue 11.
NEXT_SECONDS = 0.1

ATTACKS = tomllib.loads(Path(__file__).with_name("attacks.toml").read_text())["attack"]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ScriptWeb]:
    scripts = {f"attack{n}": executing(attack["body"]) for n, attack in enumerate(ATTACKS)}
    scripts["innocent"] = (
        "tool = {parameters = {{name = 'word'}}}\n"
        "function tool.execute(params) return {word = params.word} end"
    )
    # Only attacks on the time get little of it: the others must end for their own reason, also on a
    # machine that is busy.
    entries = tuple(
        ScriptEntry(name=f"attack{n}", seconds=0.4 if attack["status"] == 408 else 30)
        for n, attack in enumerate(ATTACKS)
    )
    home = tmp_path_factory.mktemp("hostile")
    async with script_web(home, scripts, tools=entries, memory_bytes=32 * MIB, seconds=5) as web:
        yield web


def test_there_are_at_least_30_attacks() -> None:
    assert len(ATTACKS) >= 30


@pytest.mark.serial
@pytest.mark.parametrize("number", range(len(ATTACKS)), ids=[attack["name"] for attack in ATTACKS])
async def test_an_attack_costs_one_answer(server: ScriptWeb, number: int) -> None:
    status, expected = ATTACKS[number]["status"], ATTACKS[number]["expected"]
    started = time.monotonic()

    found, body = await server.call(f"attack{number}")

    assert found == status, body
    if status == 408:
        assert time.monotonic() - started < 5
    text = str(body["result"]) if status == 200 else body["error"]["message"]
    wanted = expected.replace("attack.lua", f"attack{number}.lua").replace('"', "'")
    assert wanted.lower() in text.lower()
    started = time.monotonic()
    assert await server.call("innocent", word="hello") == (200, {"result": {"word": "hello"}})
    assert time.monotonic() - started < NEXT_SECONDS


def test_no_attack_left_a_file() -> None:
    assert not Path("/tmp/recalld-was-here").exists()
