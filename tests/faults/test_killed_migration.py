"""A migration killed at any step is completed by the next start and loses no data."""

import subprocess
import sys
from pathlib import Path

import pytest

from store.sqlite.engine import open_engine
from store.sqlite.migrate import migrations
from tests.faults.strace import FILE_CALLS, inject, needs_strace
from tests.faults.verifier import ROOT
from tests.store.sqlite.test_fixtures import unpack
from tests.support.plain_ranking import PlainRanking

pytestmark = [pytest.mark.anyio, pytest.mark.faults, needs_strace]


def migrate_and_kill(directory: Path, call_number: int) -> None:
    command = [sys.executable, "-m", "tests.faults.migrating_child", str(directory)]
    wrapper = inject(FILE_CALLS, f"signal=KILL:when={call_number}")
    subprocess.run([*wrapper, *command], cwd=ROOT, capture_output=True, check=False)


@pytest.mark.parametrize("call_number", [1, 2, 3, 5, 8, 12, 17, 23, 30, 38, 47, 57])
async def test_a_migration_killed_at_the_nth_system_call_loses_nothing(
    tmp_path: Path, call_number: int
) -> None:
    directory = tmp_path / "data"
    unpack("bank1-catalogue1", directory)

    migrate_and_kill(directory, call_number)

    async with open_engine(directory, ranking=PlainRanking) as engine:
        assert (await engine.recent("fixture")).total == 5
        assert (await engine.check("fixture")).problems == ()
        async with engine._registry.use("fixture") as opened:
            version = await opened.database.read(
                lambda connection: connection.execute("PRAGMA user_version").fetchone()
            )
        assert version == (len(migrations("bank")),)
