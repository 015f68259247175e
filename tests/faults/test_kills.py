"""kill -9 at any time, and at any system call, loses nothing that was acknowledged."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.faults.verifier import judge, run_victim

pytestmark = [pytest.mark.anyio, pytest.mark.faults]

ROUNDS = 8
CALLS = "fsync,fdatasync,pwrite64,ftruncate,unlink,rename"
# Where in the stream of system calls to strike: the first ones (opening, migrating) one by one,
# later ones farther and farther apart.
STRIKES = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]


async def test_kills_at_random_times_in_one_directory(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    dice = random.Random(seed)
    total = 0
    for n in range(ROUNDS):
        witness = run_victim(
            tmp_path / "data",
            seed + n,
            kill_after_lines=dice.randrange(2, 200),
            pause=dice.random() * 0.01,
        )
        total += witness.acknowledged
        await judge(tmp_path / "data", witness)

    assert total > 10 * ROUNDS  # or the kills came before there was anything to lose


def can_strace() -> bool:
    if shutil.which("strace") is None:
        return False
    probe = ["strace", "-f", "-qq", "-e", "inject=fsync:error=EIO:when=1", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(not can_strace(), reason="strace cannot trace here")


def strace(calls: str, effect: str) -> list[str]:
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e",
            f"inject={calls}:{effect}"]  # fmt: skip


@needs_strace
@pytest.mark.parametrize("strike", STRIKES)
async def test_a_kill_at_the_nth_system_call_of_a_thread(tmp_path: Path, strike: int) -> None:
    witness = run_victim(
        tmp_path / "data",
        strike,
        operations=40,
        wrapper=strace(CALLS, f"signal=KILL:when={strike}"),
    )

    assert not witness.is_done
    await judge(tmp_path / "data", witness)


@needs_strace
@pytest.mark.parametrize("strike", [25, 32, 41])  # earlier ones belong to opening
async def test_a_sync_that_fails_is_no_acknowledgement_and_work_goes_on(
    tmp_path: Path, strike: int
) -> None:
    witness = run_victim(
        tmp_path / "data",
        strike,
        operations=40,
        wrapper=strace("fsync,fdatasync", f"error=EIO:when={strike}+9"),
    )

    assert witness.is_done
    assert set(witness.refused) == {"StorageFailed"}
    assert witness.acknowledged > 20
    await judge(tmp_path / "data", witness)


@needs_strace
async def test_a_write_that_fails_is_an_error_and_leaves_no_part(tmp_path: Path) -> None:
    witness = run_victim(
        tmp_path / "data",
        7,
        operations=40,
        wrapper=strace("pwrite64", "error=EIO:when=120+97"),
    )

    assert witness.is_done
    assert witness.refused
    await judge(tmp_path / "data", witness)
