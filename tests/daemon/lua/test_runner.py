"""The pool of script processes: limits, ends, replacements and isolation."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.lua.process import ProcessLost, ScriptProcess
from daemon.lua.runner import Runner, ScriptLimits, script_runner
from daemon.lua.sandbox.messages import Ask, Reply
from daemon.tools.errors import ScriptFailed, ScriptTimedOut
from tests.support.scripts import MIB, no_host, no_notes, run_of


@pytest.fixture
async def runner() -> AsyncIterator[Runner]:
    async with script_runner(ScriptLimits(memory_bytes=32 * MIB)) as made:
        yield made


async def test_a_run_returns_its_result_time_and_memory(runner: Runner) -> None:
    finished = await runner.run(run_of("return {1, 2}"), no_host, no_notes)
    assert finished.result == b"[1,2]"
    assert 0 < finished.seconds < 5
    assert 10_000 < finished.memory_bytes < MIB


async def test_a_process_that_is_killed_costs_one_answer(runner: Runner) -> None:
    async def kill(ask: Ask) -> Reply:
        [pid] = children()
        os.kill(pid, signal.SIGKILL)
        return Reply(value=[])

    assert children() == []
    with pytest.raises(ScriptFailed, match=r"test\.lua: the script process has ended"):
        await runner.run(run_of("return context.search('x')"), kill, no_notes)
    assert (await runner.run(run_of("return 1"), no_host, no_notes)).result == b"1"


async def test_a_cancelled_call_ends_its_process(runner: Runner) -> None:
    asked = anyio.Event()

    async def never(ask: Ask) -> Reply:
        asked.set()
        await anyio.sleep_forever()
        return Reply()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run, run_of("context.search('x')", seconds=60), never, no_notes)
        with anyio.fail_after(20):
            await asked.wait()
        [pid] = children()
        tasks.cancel_scope.cancel()
    assert pid not in children()


async def test_calls_beyond_the_limit_wait_for_a_process() -> None:
    running = 0
    most = 0

    async def count(ask: Ask) -> Reply:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.05)
        running -= 1
        return Reply(value=[])

    async with script_runner(ScriptLimits(memory_bytes=32 * MIB, processes=2)) as runner:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(runner.run, run_of("return context.sources()"), count, no_notes)
        assert most == 2


async def test_all_processes_end_with_the_pool() -> None:
    async with script_runner(ScriptLimits(memory_bytes=32 * MIB)) as runner:
        await runner.run(run_of("return 1"), no_host, no_notes)
        assert len(children()) >= 1
    assert children() == []


async def test_a_process_has_no_environment_no_files_and_limits() -> None:
    process = await ScriptProcess.start(32 * MIB)
    try:
        place = Path(f"/proc/{process.pid}")
        assert place.joinpath("environ").read_bytes() in (b"", b"LC_CTYPE=C.UTF-8\0")
        opened = {str(each.readlink()) for each in place.joinpath("fd").iterdir()}
        assert {name.partition(":")[0] for name in opened} == {"/dev/null", "socket"}
        limits = {
            line[:26].strip(): line[26:].split()[:2]
            for line in place.joinpath("limits").read_text().splitlines()
        }
        highest = max(int(each.name) for each in place.joinpath("fd").iterdir())
        assert limits["Max open files"] == [str(highest + 1)] * 2
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max processes"] == ["0", "0"]
        assert limits["Max core file size"] == ["0", "0"]
        assert int(limits["Max address space"][0]) < 320 * MIB
        if os.uname().machine in ("x86_64", "aarch64"):
            assert process.is_filtered
            assert "Seccomp:\t2" in place.joinpath("status").read_text()
        await process.perform(run_of("return 1", seconds=3.0), no_host, no_notes)
        limited = place.joinpath("limits").read_text()
        [line] = [line for line in limited.splitlines() if line.startswith("Max cpu time")]
        assert 3 <= int(line.split()[3]) <= 8
    finally:
        await process.end()


async def test_the_daemon_does_not_believe_what_is_no_message(tmp_path: Path) -> None:
    process = await ScriptProcess.start(32 * MIB)
    inner: Any = process
    try:
        inner._reader.feed_data(b"\x00\x00\x00\x02\xc1\xc1")
        with pytest.raises(ProcessLost, match="invalid message"):
            await process.perform(run_of("return 1"), no_host, no_notes)
    finally:
        await process.end()


async def test_a_script_that_waits_for_its_host_times_out(runner: Runner) -> None:
    async def never(ask: Ask) -> Reply:
        await anyio.sleep_forever()
        return Reply()

    with pytest.raises(ScriptTimedOut, match=r"test\.lua: timed out after 0\.3 seconds"):
        await runner.run(run_of("context.search('x')", seconds=0.3), never, no_notes)


def children() -> list[int]:
    """The script processes of this process."""
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        found += [int(pid) for pid in (task / "children").read_text().split()]
    return [pid for pid in found if b"daemon.lua.sandbox.child" in command_of(pid)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
