"""`recalld stdio`: the thin child process that a client starts.

It carries lines between the client's pipes and the daemon's socket, byte for byte. It is cheap on
purpose: standard library only, no event loop, no engine. What it adds is patience: when the daemon
dies it starts another, makes the client's handshake again without a word, hands on what a legacy
client follows and its log level, sends what had not left yet, and answers what had with a clear
error (see `daemon.bridge.pending`). A request is never sent twice.

Flow control: each direction holds at most `BUFFER` bytes; past that the sender is not read.
"""

import json
import os
import select
import signal
import socket
import stat
import time
from collections import deque
from types import FrameType
from typing import Any, Final

from daemon.bridge import attach
from daemon.bridge.pending import REPLAY_ID, Pending
from daemon.config import Settings
from daemon.exit_codes import OK, UNAVAILABLE, Exit
from daemon.version import VERSION

BUFFER: Final = 1024 * 1024
CHUNK: Final = 256 * 1024
#: After end of input: time for answers under way, well inside the 2 s clients wait.
GRACE_SECONDS: Final = 1.3
ATTACH_SECONDS: Final = 10.0
PARENT_CHECK_MS: Final = 2000
QUICK_DEATH_SECONDS: Final = 1.0

IN, OUT, GONE = select.POLLIN, select.POLLOUT, select.POLLHUP | select.POLLERR | select.POLLNVAL


class Bridge:
    """One client, one connection to the daemon (or none, for a moment)."""

    def __init__(self, settings: Settings, read: int, write: int) -> None:
        self._settings = settings
        self._read = read
        self._write = write
        self._pending = Pending()
        self._link: socket.socket | None = None
        self._session: str | None = None
        self._from_client = b""
        self._is_long_line = False
        self._to_daemon: deque[bytes] = deque()
        self._daemon_bytes = 0
        self._head_sent = 0
        self._from_daemon = b""
        self._to_client = bytearray()
        self._input_ended_at: float | None = None
        self._attached_at = 0.0
        self._quick_deaths = 0
        self._parent = os.getppid()
        self._wake_read, self._wake_write = os.pipe()

    def run(self) -> int:
        """Carry traffic until the client leaves; the exit code."""
        with _Unblocked(self._read), _Unblocked(self._write):
            self._catch_signals()
            self._attach()
            try:
                while self._turn():
                    pass
            except BrokenPipeError:
                pass  # the client closed our output: nobody is left to talk to
            finally:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_IGN)  # leaving anyway, with code 0
                if self._link is not None:
                    self._link.close()
        return OK

    # --- one turn of the loop ----------------------------------------------------------------

    def _turn(self) -> bool:
        if self._is_done():
            return False
        link = self._link
        ready = self._wait(link)
        if self._wake_read in ready:
            self._end_input()
        if self._read in ready:
            self._take_from_client()
        if link is not None and link.fileno() in ready:
            events = ready[link.fileno()]
            if events & (IN | GONE):
                self._take_from_daemon()
        if self._link is not None and self._to_daemon and not self._give_to_daemon():
            self._reattach("its connection broke")
        if self._to_client:
            self._give_to_client()
        if not ready and os.getppid() != self._parent:
            self._end_input()
        return True

    def _wait(self, link: socket.socket | None) -> dict[int, int]:
        poll = select.poll()
        poll.register(self._wake_read, IN)
        if self._input_ended_at is None and self._daemon_bytes < BUFFER:
            poll.register(self._read, IN)
        if link is not None:
            wanted = IN if len(self._to_client) < BUFFER else 0
            poll.register(link, wanted | (OUT if self._to_daemon else 0))
        if self._to_client:
            poll.register(self._write, OUT)
        if self._input_ended_at is None:
            timeout = float(PARENT_CHECK_MS)
        else:
            timeout = max(0.0, self._input_ended_at + GRACE_SECONDS - time.monotonic()) * 1000
        return dict(poll.poll(timeout))

    def _is_done(self) -> bool:
        if self._input_ended_at is None:
            return False
        if time.monotonic() >= self._input_ended_at + GRACE_SECONDS:
            return True
        return self._link is None and not self._to_client

    # --- from the client ---------------------------------------------------------------------

    def _take_from_client(self) -> None:
        try:
            chunk = os.read(self._read, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            if self._from_client:
                self._forward(self._from_client + b"\n")
                self._from_client = b""
            self._end_input()
            return
        end = chunk.rfind(b"\n") + 1
        if end:
            self._forward(self._from_client + chunk[:end])
            self._from_client = chunk[end:]
        else:
            self._from_client += chunk
        if len(self._from_client) > self._settings.frame_bytes:
            # Longer than the daemon takes: let it say so, without our keeping any of it.
            self._queue(self._from_client)
            self._from_client = b""
            self._is_long_line = True

    def _forward(self, lines: bytes) -> None:
        """Send whole lines on; note what they ask while the daemon is busy with them already."""
        self._queue(lines)
        is_broken = self._link is not None and not self._give_to_daemon()
        sent = self._pending.sent
        for line in lines.split(b"\n"):
            if self._is_long_line:
                self._is_long_line = False  # the rest of a line that was not kept
            elif line:
                sent(line)
        if self._link is None or is_broken:
            self._reattach("its connection broke" if is_broken else "it cannot be reached")

    def _queue(self, data: bytes) -> None:
        self._to_daemon.append(data)
        self._daemon_bytes += len(data)

    def _end_input(self) -> None:
        if self._input_ended_at is None:
            self._input_ended_at = time.monotonic()
        if self._link is not None and not self._to_daemon:
            self._shut_link()

    def _shut_link(self) -> None:
        try:
            if self._link is not None:
                self._link.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it is closed already; reading will tell

    # --- to and from the daemon --------------------------------------------------------------

    def _give_to_daemon(self) -> bool:
        """Send what fits; False when the connection is broken."""
        assert self._link is not None
        try:
            while self._to_daemon:
                head = self._to_daemon[0]
                sent = self._link.send(memoryview(head)[self._head_sent :])
                self._daemon_bytes -= sent
                self._head_sent += sent
                if self._head_sent < len(head):
                    return True
                self._to_daemon.popleft()
                self._head_sent = 0
        except BlockingIOError:
            return True
        except OSError:
            return False
        if self._input_ended_at is not None:
            self._shut_link()
        return True

    def _take_from_daemon(self) -> None:
        assert self._link is not None
        try:
            chunk = self._link.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._lost()
            return
        end = chunk.rfind(b"\n")
        if end < 0:
            self._from_daemon += chunk
            return
        whole = self._from_daemon + chunk[: end + 1]
        self._from_daemon = chunk[end + 1 :]
        self._to_client += whole
        self._give_to_client()
        answered = self._pending.answered
        for line in whole.split(b"\n"):
            if line:
                answered(line)

    def _give_to_client(self) -> None:
        try:
            sent = os.write(self._write, memoryview(self._to_client)[:CHUNK])
        except BlockingIOError:
            return
        del self._to_client[:sent]

    # --- when the daemon goes ----------------------------------------------------------------

    def _lost(self) -> None:
        if self._input_ended_at is not None and not self._pending.waiting:
            self._drop_link()
            return
        self._reattach("it ended")

    def _drop_link(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        self._from_daemon = b""

    def _reattach(self, reason: str) -> None:
        """Answer what was on its way, then find or start a daemon and go on with the rest."""
        self._drop_link()
        attach.reap()
        unsent = self._keep_unsent()
        self._fail(reason, spare=unsent)
        if self._input_ended_at is not None:
            self._to_daemon.clear()
            self._daemon_bytes = self._head_sent = 0
            self._fail(reason, spare=frozenset())
            return
        if time.monotonic() - self._attached_at < QUICK_DEATH_SECONDS:
            self._quick_deaths += 1
            time.sleep(min(2.0, 0.05 * 2 ** min(self._quick_deaths, 6)))
        else:
            self._quick_deaths = 0
        try:
            self._attach()
            self._to_client += self._pending.stale()
        except Exit as exit:
            self._to_daemon.clear()
            self._daemon_bytes = self._head_sent = 0
            self._fail(exit.message, spare=frozenset())

    def _keep_unsent(self) -> frozenset[str]:
        """Keep the lines of which nothing was sent; give the ids they ask for."""
        if self._head_sent:
            head = self._to_daemon.popleft()
            # Sent up to the end of a line, or into the middle of one, which is lost then.
            whole = head.find(b"\n", self._head_sent - 1) + 1 or len(head)
            self._daemon_bytes -= whole - self._head_sent
            if whole < len(head):
                self._to_daemon.appendleft(head[whole:])
            self._head_sent = 0
        lines = (line for chunk in self._to_daemon for line in chunk.split(b"\n") if line)
        return self._pending.asked_by(lines)

    def _fail(self, reason: str, *, spare: frozenset[str]) -> None:
        for waiting in list(self._pending.waiting.values()):
            if self._input_ended_at is not None and waiting.method == "subscriptions/listen":
                del self._pending.waiting[waiting.id]  # ends with its client's input, unanswered
            elif waiting.id not in spare:
                self._to_client += self._pending.lose(waiting, reason)

    # --- saying hello ------------------------------------------------------------------------

    def _attach(self) -> None:
        """Connect (starting a daemon if need be), say who we are, make the handshake again."""
        for _ in range(3):
            link = attach.connect_or_start(self._settings)
            try:
                if self._greet(link):
                    link.settimeout(None)
                    link.setblocking(False)
                    self._link = link
                    self._attached_at = time.monotonic()
                    return
            except OSError:
                pass  # it left while we were talking; look for another
            link.close()
        raise Exit(UNAVAILABLE, "the daemon does not answer")

    def _greet(self, link: socket.socket) -> bool:
        link.settimeout(ATTACH_SECONDS)
        settings = self._settings
        hello = _exchange(
            link,
            "recalld/attach",
            {
                "version": VERSION,
                "session": self._session,
                "dialects": settings.dialects,
                "bank": settings.bank,
                "fixtures": settings.fixtures,
                "logLevel": self._pending.level,
                "uris": list(self._pending.uris),
            },
        )
        if "error" in hello:
            raise Exit(UNAVAILABLE, f"the daemon refused us: {hello['error'].get('message')}")
        result = hello["result"]
        if _version(result["version"]) < _version(VERSION):
            # Ours is newer: the old one finishes what it has and makes room.
            _exchange(link, "recalld/stop", {})
            while link.recv(CHUNK):
                pass
            return False
        self._session = result["session"]
        self._pending.retry_safe = frozenset(result["retrySafe"])
        replay = self._pending.replay()
        waiting = self._pending.waiting.values()
        if replay is not None and not any(entry.method == "initialize" for entry in waiting):
            link.sendall(replay)
            _read_line(link)
            if self._pending.initialized is not None:
                link.sendall(self._pending.initialized + b"\n")
        return True

    def _catch_signals(self) -> None:
        def wake(_number: int, _frame: FrameType | None) -> None:
            os.write(self._wake_write, b"!")

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, wake)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _exchange(link: socket.socket, method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Ask the daemon one thing, before any traffic of the client's."""
    request = {"jsonrpc": "2.0", "id": REPLAY_ID, "method": method, "params": params}
    link.sendall(json.dumps(request).encode() + b"\n")
    answer: dict[str, Any] = json.loads(_read_line(link))
    return answer


def _read_line(link: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        chunk = link.recv(CHUNK)
        if not chunk:
            raise ConnectionResetError
        line += chunk
    return line


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


class _Unblocked:
    """A pipe or socket that does not block for the block; terminals and files stay as they are."""

    def __init__(self, descriptor: int) -> None:
        mode = os.fstat(descriptor).st_mode
        self._descriptor = descriptor
        self._was_blocking = (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and os.get_blocking(
            descriptor
        )

    def __enter__(self) -> None:
        if self._was_blocking:
            os.set_blocking(self._descriptor, False)

    def __exit__(self, *_: object) -> None:
        if self._was_blocking:
            os.set_blocking(self._descriptor, True)
