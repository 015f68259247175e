"""An erase killed at any step is finished by the next start, or has not begun."""

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from store.embedded import open_engine
from store.model import NewMemory
from tests.faults.judge import ROOT, all_bytes
from tests.faults.test_kills import CALLS, needs_strace, strace
from tests.support.plain_ranking import PlainRanking

pytestmark = [pytest.mark.anyio, pytest.mark.faults, needs_strace]

MARKERS = [f"marker{n:03d}qxj" for n in range(60)]
# The steps of an erase, in system calls of the thread that does them: its transaction, the merge,
# the rewriting, the checkpoint, the copies, the tombstones.
STRIKES = [*range(1, 30, 4), 35, 45, 60, 80, 110, 150, 200]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with marked memories, others among them, a backup and a snapshot."""
    directory = tmp_path_factory.mktemp("erase") / "data"

    async def fill() -> None:
        async with open_engine(directory, ranking=PlainRanking) as engine:
            for marker in MARKERS:
                await engine.put("w", NewMemory(text=f"{marker} said {'much ' * 30}"))
                await engine.put("w", NewMemory(text=f"keep {len(marker)} {marker[6:9]}"))
            await engine.back_up("w")
            place = engine._banks.directory(engine.bank("w"))
        (place / "vectors.snapshot").write_bytes(MARKERS[0].encode())

    anyio.run(fill)
    return directory


def erase_and_die(directory: Path, strike: int) -> bytes:
    eraser = [sys.executable, "-m", "tests.faults.eraser", str(directory)]
    wrapper = strace(CALLS, f"signal=KILL:when={strike}")
    return subprocess.run([*wrapper, *eraser], cwd=ROOT, capture_output=True, check=False).stdout


@pytest.mark.parametrize("strike", STRIKES)
async def test_an_erase_killed_at_the_nth_system_call(
    filled: Path, tmp_path: Path, strike: int
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(filled, directory)
    said = erase_and_die(directory, strike)

    async with open_engine(directory, ranking=PlainRanking) as engine:
        total = (await engine.recent("w")).total
        checked = await engine.check("w")
        assert checked.problems == ()
        assert engine.health().degraded == ()
    left = [marker for marker in MARKERS if marker.encode() in all_bytes(directory)]
    if total == 120:
        assert len(left) == 60, "not begun: everything is there"
        assert said == b""
    else:
        assert total == 60
        assert left == [], "begun: no byte is left"
