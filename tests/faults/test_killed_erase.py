"""An erase killed at any step is finished by the next start, or has not begun."""

import shutil
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from store.model import NewMemory
from store.sqlite.engine import open_engine
from tests.faults.test_kills import CALLS, needs_strace, strace
from tests.faults.verifier import ROOT, all_bytes
from tests.support.real_ranking import real_ranking, small_graphs

pytestmark = [pytest.mark.anyio, pytest.mark.faults, needs_strace]

MARKERS = [f"marker{n:03d}qxj" for n in range(200)]
# The steps of an erase, in system calls of the thread that does them: its transaction, the merge,
# the rewriting, the checkpoint, the copies, the tombstones.
STRIKES = [1, 9, 29, 80, 150, 210, 240, 260, 280, 300, 320, 350, 390, 430, 470, 520]
STRUCK: set[str] = set()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with marked memories, others among them, a backup and a snapshot."""
    directory = tmp_path_factory.mktemp("erase") / "data"

    async def fill() -> None:
        with small_graphs():
            async with open_engine(directory, ranking=real_ranking) as engine:
                for marker in MARKERS:
                    await engine.put("w", NewMemory(text=f"{marker} said {'much ' * 30}"))
                    await engine.put("w", NewMemory(text=f"keep {len(marker)} {marker[6:9]}"))
                await engine.settle("w")
                await engine.back_up("w")
                place = engine._banks.directory(engine.bank("w"))
        assert (place / "vectors.snapshot").exists()

    anyio.run(fill)
    return directory


def erase_and_die(directory: Path, strike: int) -> bytes:
    eraser = [sys.executable, "-m", "tests.faults.erasing_child", str(directory)]
    wrapper = strace(CALLS, f"signal=KILL:when={strike}")
    return subprocess.run([*wrapper, *eraser], cwd=ROOT, capture_output=True, check=False).stdout


@pytest.mark.parametrize("strike", STRIKES)
async def test_an_erase_killed_at_the_nth_system_call(
    filled: Path, tmp_path: Path, strike: int
) -> None:
    directory = tmp_path / "data"
    shutil.copytree(filled, directory)
    said = erase_and_die(directory, strike)

    async with open_engine(directory, ranking=real_ranking) as engine:
        total = (await engine.recent("w")).total
        checked = await engine.check("w")
        assert checked.problems == ()
        assert engine.health().degraded == ("embedder-without-meaning",)
    left = [marker for marker in MARKERS if marker.encode() in all_bytes(directory)]
    STRUCK.add("before" if total == 400 else "after" if said else "during")
    if total == 400:
        assert len(left) == 200, "not begun: everything is there"
        assert said == b""
    else:
        assert total == 200
        assert left == [], "begun: no byte is left"


def test_the_kills_fell_before_and_during_an_erase() -> None:
    if not STRUCK:
        pytest.skip("none of the kills was selected")
    assert {"before", "during"} <= STRUCK
