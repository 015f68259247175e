"""Runs scripts in a small pool of processes.

Three idle processes are kept once scripts are in use, so that a call need not wait for a process
to start, not even after the processes of two calls had to be ended and a busy machine takes a
second to replace them. More are started while all are busy, up to a limit; further calls wait. A
process is ended when its script exceeds the time, when its caller goes away, and when it fails.
Every run gets a fresh Lua state.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import anyio
import structlog
from anyio.abc import TaskGroup
from msgspec import Struct

from daemon.lua.process import Host, Listen, LuaMissing, ProcessLost, ScriptProcess
from daemon.lua.sandbox.messages import Failed, Finished, MessageTooLarge, Run
from daemon.tools.errors import ScriptFailed, ScriptTimedOut

#: Idle processes that are kept.
KEPT: Final = 3
#: The time that a call waits for a free process.
WAIT_SECONDS: Final = 30.0

log: Final = structlog.get_logger()


class ScriptLimits(Struct, frozen=True, kw_only=True):
    """The limits of all scripts. The time limit belongs to each script."""

    memory_bytes: int = 128 * 1024 * 1024
    result_bytes: int = 4 * 1024 * 1024
    processes: int = 4


class Runner:
    """The pool; see `script_runner`."""

    def __init__(self, tasks: TaskGroup, limits: ScriptLimits) -> None:
        self.limits = limits
        self._tasks = tasks
        self._slots = anyio.Semaphore(limits.processes)
        self._idle: list[ScriptProcess] = []
        #: Processes that are being started in the background.
        self._starting = 0
        self._is_closed = False

    async def run(self, run: Run, host: Host, listen: Listen) -> Finished:
        """Perform a run; raises `ScriptFailed` or `ScriptTimedOut`.

        The time limit covers the script, not the wait for a free process.
        """
        with anyio.move_on_after(WAIT_SECONDS) as waiting:
            await self._slots.acquire()
        if waiting.cancelled_caught:
            raise ScriptTimedOut(
                f"{run.name}: all script processes were busy for {WAIT_SECONDS:g} seconds"
            )
        try:
            return await self._run(run, host, listen)
        finally:
            self._slots.release()

    async def _run(self, run: Run, host: Host, listen: Listen) -> Finished:
        process = await self._take(run.name)
        answer: Finished | Failed | None = None
        try:
            with anyio.move_on_after(run.seconds):
                answer = await process.perform(run, host, listen)
        except (ProcessLost, MessageTooLarge) as lost:
            log.warning("script.lost", script=run.name, pid=process.pid)
            raise ScriptFailed(f"{run.name}: {lost}") from None
        finally:
            await self._put_back(process, is_usable=answer is not None)
        if answer is None:
            log.warning("script.timed_out", script=run.name, seconds=run.seconds)
            raise ScriptTimedOut(f"{run.name}: timed out after {run.seconds:g} seconds")
        if isinstance(answer, Failed):
            raise ScriptFailed(answer.message)
        return answer

    async def _take(self, name: str) -> ScriptProcess:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive:
                return process
            await process.end()
        try:
            return await ScriptProcess.start(self.limits.memory_bytes)
        except (OSError, ProcessLost, LuaMissing, TimeoutError) as error:
            raise ScriptFailed(f"{name}: no script process could be started: {error}") from error

    async def _put_back(self, process: ScriptProcess, *, is_usable: bool) -> None:
        if is_usable and not process.is_worn and len(self._idle) < KEPT and not self._is_closed:
            self._idle.append(process)
        else:
            await process.end()
        for _ in range(KEPT - len(self._idle) - self._starting if not self._is_closed else 0):
            self._starting += 1
            self._tasks.start_soon(self._refill)

    async def _refill(self) -> None:
        """Start one idle process in the background."""
        try:
            process = await ScriptProcess.start(self.limits.memory_bytes)
        except (OSError, ProcessLost, LuaMissing, TimeoutError) as error:
            log.warning("script.process_failed", reason=str(error))
            return
        finally:
            self._starting -= 1
        if self._is_closed:
            await process.end()
        else:
            self._idle.append(process)

    async def close(self) -> None:
        """End the idle processes. No call may be running."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            for process in self._idle:
                await process.end()
            self._idle.clear()


@asynccontextmanager
async def script_runner(limits: ScriptLimits) -> AsyncGenerator[Runner]:
    """A pool that starts its first process when the first script runs, and ends with the block."""
    async with anyio.create_task_group() as tasks:
        runner = Runner(tasks, limits)
        try:
            yield runner
        finally:
            tasks.cancel_scope.cancel()
            await runner.close()
