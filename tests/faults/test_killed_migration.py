"""A migration killed at any step has happened or has not; the data is there either way."""

import subprocess
import sys
from pathlib import Path

import pytest

from store.sqlite.engine import open_engine
from store.sqlite.migrate import migrations
from tests.faults.test_kills import CALLS, needs_strace, strace
from tests.faults.verifier import ROOT
from tests.store.sqlite.test_fixtures import unpack
from tests.support.plain_ranking import PlainRanking

pytestmark = [pytest.mark.anyio, pytest.mark.faults, needs_strace]


def open_and_die(directory: Path, strike: int) -> None:
    opener = [sys.executable, "-m", "tests.faults.migrating_child", str(directory)]
    wrapper = strace(CALLS, f"signal=KILL:when={strike}")
    subprocess.run([*wrapper, *opener], cwd=ROOT, capture_output=True, check=False)


@pytest.mark.parametrize("strike", [1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 57])
async def test_a_migration_killed_at_the_nth_system_call_loses_nothing(
    tmp_path: Path, strike: int
) -> None:
    directory = tmp_path / "data"
    unpack("bank1-catalogue1", directory)

    open_and_die(directory, strike)

    async with open_engine(directory, ranking=PlainRanking) as engine:
        assert (await engine.recent("fixture")).total == 5
        assert (await engine.check("fixture")).problems == ()
        async with engine._banks.use("fixture") as opened:
            version = await opened.database.read(
                lambda connection: connection.execute("PRAGMA user_version").fetchone()
            )
        assert version == (len(migrations("bank")),)
