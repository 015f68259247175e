"""The script process: receives `Run`, performs it, answers, and waits for the next one.

It is a plain loop without threads or an event loop. Everything is imported before the process
restricts itself, because nothing can be opened afterwards. The alarm of each run is a second line
of defence behind the daemon, which ends the process when a script exceeds its time: the kernel
delivers it even while the script sleeps or C code runs.
"""

import os
import signal
import sys
import time
from typing import Any, Final, NoReturn

from daemon.lua.sandbox.limits import set_limits
from daemon.lua.sandbox.machine import HostRefusedError, ScriptError, perform
from daemon.lua.sandbox.messages import (
    HEAD,
    MOST_BYTES,
    Ask,
    Failed,
    Finished,
    FromChild,
    Level,
    MessageTooLarge,
    Note,
    Ready,
    Reply,
    Run,
    ToChild,
    encode,
    to_child,
)
from daemon.lua.sandbox.system_calls import restrict

#: Seconds after which the alarm ends a process that the daemon should have ended before.
_GRACE_SECONDS: Final = 2.0
_MOST_NOTES: Final = 200
_MOST_ASKS: Final = 10_000


class DaemonLink:
    """Exchanges messages with the daemon over one descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._notes = 0
        self._asks = 0

    def begin(self) -> Run:
        """Wait for the next run."""
        self._notes = self._asks = 0
        message = self._receive()
        if not isinstance(message, Run):
            _leave()
        return message

    def ask(self, name: str, arguments: list[Any]) -> Any:
        self._asks += 1
        if self._asks > _MOST_ASKS:
            raise HostRefusedError(f"a script may call its host {_MOST_ASKS} times")
        try:
            self.send(Ask(name=name, arguments=arguments))
        except MessageTooLarge as error:
            raise HostRefusedError(str(error)) from None
        message = self._receive()
        if not isinstance(message, Reply):
            _leave()
        if message.error:
            raise HostRefusedError(message.error)
        return message.value

    def note(self, level: Level, text: str) -> None:
        self._notes += 1
        if self._notes <= _MOST_NOTES:
            self.send(Note(level=level, text=text))

    def send(self, message: FromChild) -> None:
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _receive(self) -> ToChild:
        (length,) = HEAD.unpack(self._read(HEAD.size))
        if length > MOST_BYTES:
            _leave()
        message: ToChild = to_child.decode(self._read(length))
        return message

    def _read(self, count: int) -> bytes:
        parts: list[bytes] = []
        while count:
            part = os.read(self._descriptor, min(count, 1024 * 1024))
            if not part:
                _leave()
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def _leave() -> NoReturn:
    """The daemon is gone, or speaks another version."""
    os._exit(0)


def main(descriptor: int, memory_bytes: int) -> NoReturn:
    set_limits(memory_bytes, descriptor)
    is_filtered = restrict()
    link = DaemonLink(descriptor)
    link.send(Ready(is_filtered=is_filtered))
    while True:
        run = link.begin()
        signal.setitimer(signal.ITIMER_REAL, run.seconds + _GRACE_SECONDS)
        answer = _perform(run, link)
        signal.setitimer(signal.ITIMER_REAL, 0)
        link.send(answer)


def _perform(run: Run, link: DaemonLink) -> Finished | Failed:
    started = time.monotonic()
    try:
        outcome = perform(run, link)
    except ScriptError as error:
        return Failed(message=str(error), cpu_seconds=time.process_time())
    return Finished(
        result=outcome.result,
        seconds=time.monotonic() - started,
        memory_bytes=outcome.memory_bytes,
        cpu_seconds=time.process_time(),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
