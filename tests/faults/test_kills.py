"""Acknowledged writes survive SIGKILL at any time and at any system call."""

import random
from pathlib import Path

import pytest

from tests.faults.strace import FILE_CALLS, inject, needs_strace
from tests.faults.verifier import run_child, verify

pytestmark = [pytest.mark.anyio, pytest.mark.faults]

ROUNDS = 8
# The system calls at which to kill: dense at first (opening, migrations), then sparse.
CALL_NUMBERS = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233]


async def test_acknowledged_writes_survive_kills_at_random_times(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")
    rng = random.Random(seed)
    total = 0
    for n in range(ROUNDS):
        report = run_child(
            tmp_path / "data",
            seed + n,
            kill_after_lines=rng.randrange(2, 200),
            pause=rng.random() * 0.01,
        )
        total += report.acknowledged_count
        await verify(tmp_path / "data", report)

    assert total > 10 * ROUNDS  # otherwise the kills came before the first writes


@needs_strace
@pytest.mark.parametrize("call_number", CALL_NUMBERS)
async def test_acknowledged_writes_survive_a_kill_at_the_nth_system_call(
    tmp_path: Path, call_number: int
) -> None:
    report = run_child(
        tmp_path / "data",
        call_number,
        operations=40,
        wrapper=inject(FILE_CALLS, f"signal=KILL:when={call_number}"),
    )

    assert not report.is_finished
    await verify(tmp_path / "data", report)


@needs_strace
@pytest.mark.parametrize("call_number", [25, 32, 41])  # earlier calls belong to opening the engine
async def test_a_write_whose_sync_fails_is_not_acknowledged_and_later_writes_succeed(
    tmp_path: Path, call_number: int
) -> None:
    report = run_child(
        tmp_path / "data",
        call_number,
        operations=40,
        wrapper=inject("fsync,fdatasync", f"error=EIO:when={call_number}+9"),
    )

    assert report.is_finished
    assert set(report.errors) == {"StorageFailed"}
    assert report.acknowledged_count > 20
    await verify(tmp_path / "data", report)


@needs_strace
async def test_a_failed_write_is_an_error_and_leaves_no_partial_data(tmp_path: Path) -> None:
    report = run_child(
        tmp_path / "data",
        7,
        operations=40,
        wrapper=inject("pwrite64", "error=EIO:when=120+97"),
    )

    assert report.is_finished
    assert report.errors
    await verify(tmp_path / "data", report)
