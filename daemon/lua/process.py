"""One script process, from the daemon's side: start, exchange of messages, end.

The process is started with the isolated mode of Python, an empty environment, and the paths of the
few packages that it imports. Its only open descriptor besides /dev/null is one end of a socket
pair.
"""

import asyncio
import importlib.util
import resource
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import msgspec

from daemon.lua.sandbox.messages import (
    HEAD,
    MOST_BYTES,
    Ask,
    Failed,
    Finished,
    FromChild,
    MessageTooLarge,
    Note,
    Ready,
    Reply,
    Run,
    encode,
    from_child,
)

START_SECONDS: Final = 20.0
#: A process is replaced after this many runs, so that a leak cannot grow.
MOST_RUNS: Final = 1_000
_CPU_GRACE_SECONDS: Final = 2

_START: Final = """
import sys
sys.path[1:1] = sys.argv[3:]
from daemon.lua.sandbox.child import main
main(int(sys.argv[1]), int(sys.argv[2]))
"""


class ProcessLost(Exception):
    """The script process ended without an answer, or sent something that is not a message."""


class LuaMissing(Exception):
    """lupa, the Lua interpreter, is not installed."""

    def __init__(self) -> None:
        super().__init__("Lua scripts need the package lupa: pip install 'lupa>=2.4,<3'")


def _import_paths() -> list[str]:
    """The folders from which the process imports its packages."""
    found: list[str] = []
    for name in ("daemon", "msgspec", "lupa"):
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            raise LuaMissing
        folder = str(Path(next(iter(spec.submodule_search_locations))).parent)
        if folder not in found:
            found.append(folder)
    return found


def _spawn(memory_bytes: int) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    paths = _import_paths()
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            command = [sys.executable, "-I", "-S", "-c", _START]
            process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(memory_bytes), *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                cwd="/",
                env={},
            )
    except BaseException:
        ours.close()
        raise
    ours.setblocking(False)
    return process, ours


Answer = Finished | Failed
#: Performs a host call of a script.
Host = Callable[[Ask], Awaitable[Reply]]
#: Takes a log line of a script.
Listen = Callable[[Note], None]


class ScriptProcess:
    """A running process. It performs one run at a time."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._cpu_seconds = 0.0
        self._runs = 0
        self.is_filtered = False

    @classmethod
    async def start(cls, memory_bytes: int) -> "ScriptProcess":
        """Start a process and wait until it is ready."""
        started = await cls._open(memory_bytes)
        try:
            with anyio.fail_after(START_SECONDS):
                message = await started._receive()
                if not isinstance(message, Ready):
                    raise ProcessLost("the script process did not start")
                started.is_filtered = message.is_filtered
        except BaseException:
            await started.end()
            raise
        return started

    @classmethod
    async def _open(cls, memory_bytes: int) -> "ScriptProcess":
        """Not cancelled halfway, so that a started process always has an owner."""
        scope = anyio.CancelScope(shield=True)
        scope.__enter__()
        try:
            process, link = await anyio.to_thread.run_sync(_spawn, memory_bytes)
            reader, writer = await asyncio.open_connection(sock=link, limit=1024 * 1024)
            return cls(process, reader, writer)
        finally:
            scope.__exit__(None, None, None)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def is_worn(self) -> bool:
        return self._runs >= MOST_RUNS

    async def perform(self, run: Run, host: Host, listen: Listen) -> Answer:
        """Send a run and return its answer; the caller ends the process if this raises."""
        self._runs += 1
        self._limit_cpu(run.seconds)
        await self._send(run)
        while True:
            match await self._receive():
                case Ask() as ask:
                    await self._send(await host(ask))
                case Note() as note:
                    listen(note)
                case Finished() | Failed() as answer:
                    self._cpu_seconds = answer.cpu_seconds
                    return answer
                case Ready():
                    raise ProcessLost("the script process sent a message out of order")

    def _limit_cpu(self, seconds: float) -> None:
        """The kernel ends the process if it computes longer than the run may take."""
        most = int(self._cpu_seconds + seconds) + _CPU_GRACE_SECONDS
        try:
            resource.prlimit(self.pid, resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))
        except ProcessLookupError:
            raise ProcessLost("the script process has ended") from None

    async def _send(self, message: Run | Reply) -> None:
        try:
            data = encode(message)
        except MessageTooLarge as error:
            if isinstance(message, Run):
                raise
            data = encode(Reply(error=str(error)))
        try:
            self._writer.write(data)
            await self._writer.drain()
        except (ConnectionError, OSError):
            raise ProcessLost("the script process has ended") from None

    async def _receive(self) -> FromChild:
        try:
            (length,) = HEAD.unpack(await self._reader.readexactly(HEAD.size))
            if length > MOST_BYTES:
                raise ProcessLost("the script process sent a message that is too large")
            message: FromChild = from_child.decode(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            raise ProcessLost("the script process has ended") from None
        except msgspec.MsgspecError:
            raise ProcessLost("the script process sent an invalid message") from None
        return message

    async def end(self) -> None:
        """End the process at once, whatever it is doing, and release its resources."""
        with anyio.CancelScope(shield=True):
            self._process.kill()
            self._writer.close()
            await anyio.to_thread.run_sync(partial(self._process.wait, START_SECONDS))
            try:
                await self._writer.wait_closed()
            except OSError:
                return
