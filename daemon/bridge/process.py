"""`recalld stdio`: the bridge process that an MCP client starts.

It copies lines between the client's pipes and the daemon's socket, byte for byte. It starts fast:
standard library only, no event loop, no engine. When the daemon dies, the bridge starts another one
and replays the client's handshake, subscriptions and log level, without the client noticing. It
sends the requests that had not been sent, and answers the others with an error
(`daemon.bridge.pending`). A request is never sent twice.

The bridge connects at once, so that a daemon starts early, and registers when the first message
has arrived: the name of the client in it decides which session is resumed.

Flow control: each direction buffers at most `BUFFER` bytes; then the bridge stops reading.
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
from daemon.bridge.first_message import client_name
from daemon.bridge.pending import REPLAY_ID, PendingRequests
from daemon.config import Settings
from daemon.exit_codes import OK, UNAVAILABLE, Exit
from daemon.version import VERSION

BUFFER: Final = 1024 * 1024
CHUNK: Final = 256 * 1024
#: After end of input: time for calls in flight, shorter than the 2 s that clients wait.
GRACE_SECONDS: Final = 1.3
ATTACH_SECONDS: Final = 10.0
PARENT_CHECK_MS: Final = 2000
QUICK_DEATH_SECONDS: Final = 1.0

IN, OUT, GONE = select.POLLIN, select.POLLOUT, select.POLLHUP | select.POLLERR | select.POLLNVAL


class Bridge:
    """Connects one client to the daemon; between two daemons there is no connection."""

    def __init__(self, settings: Settings, read: int, write: int) -> None:
        self._settings = settings
        self._read = read
        self._write = write
        self._pending = PendingRequests()
        self._link: socket.socket | None = None
        self._early_link: socket.socket | None = None
        self._session: str | None = None
        self._client: str | None = None
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
        """Copy traffic until the client disconnects; returns the exit code."""
        with _NonBlocking(self._read), _NonBlocking(self._write):
            self._catch_signals()
            self._early_link = attach.connect_or_start(self._settings)
            first, has_ended = self._first_message()
            self._client = client_name(first.partition(b"\n")[0])
            self._attach()
            self._take(first)
            if has_ended:
                self._finish_input()
            try:
                while self._run_once():
                    pass
            except BrokenPipeError:
                pass  # the client closed our output
            finally:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_IGN)  # we are exiting with code 0 anyway
                if self._link is not None:
                    self._link.close()
        return OK

    def _first_message(self) -> tuple[bytes, bool]:
        """Read until the first line is complete, the input ends or the client is gone.

        Also returns whether the input has ended. A terminal reports that only once.
        """
        received = b""
        poll = select.poll()
        poll.register(self._wake_read, IN)
        poll.register(self._read, IN)
        while b"\n" not in received and len(received) <= self._settings.frame_bytes:
            ready = dict(poll.poll(PARENT_CHECK_MS))
            if self._wake_read in ready or (not ready and os.getppid() != self._parent):
                self._end_input()
                break
            try:
                chunk = os.read(self._read, CHUNK) if self._read in ready else None
            except BlockingIOError:
                continue
            except OSError:
                chunk = b""
            if chunk == b"":
                return received, True
            received += chunk or b""
        return received, False

    # --- event loop --------------------------------------------------------------------------

    def _run_once(self) -> bool:
        if self._is_done():
            return False
        link = self._link
        ready = self._wait(link)
        if self._wake_read in ready:
            self._end_input()
        if self._read in ready:
            self._read_client()
        if link is not None and link.fileno() in ready:
            events = ready[link.fileno()]
            if events & (IN | GONE):
                self._read_daemon()
        if self._link is not None and self._to_daemon and not self._write_daemon():
            self._reattach("its connection broke")
        if self._to_client:
            self._write_client()
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

    def _read_client(self) -> None:
        try:
            chunk = os.read(self._read, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._finish_input()
            return
        self._take(chunk)

    def _finish_input(self) -> None:
        """The input has ended: its last line may have no newline."""
        if self._from_client:
            self._forward(self._from_client + b"\n")
            self._from_client = b""
        self._end_input()

    def _take(self, chunk: bytes) -> None:
        end = chunk.rfind(b"\n") + 1
        if end:
            self._forward(self._from_client + chunk[:end])
            self._from_client = chunk[end:]
        else:
            self._from_client += chunk
        if len(self._from_client) > self._settings.frame_bytes:
            # Longer than the daemon accepts: forward it unbuffered and let the daemon reject it.
            self._queue(self._from_client)
            self._from_client = b""
            self._is_long_line = True

    def _forward(self, lines: bytes) -> None:
        """Forward whole lines, then record their requests while the daemon works on them."""
        self._queue(lines)
        is_broken = self._link is not None and not self._write_daemon()
        sent = self._pending.sent
        for line in lines.split(b"\n"):
            if self._is_long_line:
                self._is_long_line = False  # the end of a line that was forwarded unbuffered
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
            return  # already closed; the next read reports it

    # --- to and from the daemon --------------------------------------------------------------

    def _write_daemon(self) -> bool:
        """Send as much as the socket accepts; False when the connection is broken."""
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

    def _read_daemon(self) -> None:
        assert self._link is not None
        try:
            chunk = self._link.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._connection_closed()
            return
        end = chunk.rfind(b"\n")
        if end < 0:
            self._from_daemon += chunk
            return
        whole = self._from_daemon + chunk[: end + 1]
        self._from_daemon = chunk[end + 1 :]
        self._to_client += whole
        self._write_client()
        answered = self._pending.answered
        for line in whole.split(b"\n"):
            if line:
                answered(line)

    def _write_client(self) -> None:
        try:
            sent = os.write(self._write, memoryview(self._to_client)[:CHUNK])
        except BlockingIOError:
            return
        del self._to_client[:sent]

    # --- loss of the daemon ------------------------------------------------------------------

    def _connection_closed(self) -> None:
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
        """Answer the requests in flight with errors, then connect again and send the rest."""
        self._drop_link()
        unsent = self._keep_unsent()
        self._fail(reason, keep=unsent)
        if self._input_ended_at is not None:
            self._to_daemon.clear()
            self._daemon_bytes = self._head_sent = 0
            self._fail(reason, keep=frozenset())
            return
        if time.monotonic() - self._attached_at < QUICK_DEATH_SECONDS:
            self._quick_deaths += 1
            time.sleep(min(2.0, 0.05 * 2 ** min(self._quick_deaths, 6)))
        else:
            self._quick_deaths = 0
        try:
            self._attach()
            self._to_client += self._pending.missed_updates()
        except Exit as exit:
            self._to_daemon.clear()
            self._daemon_bytes = self._head_sent = 0
            self._fail(exit.message, keep=frozenset())

    def _keep_unsent(self) -> frozenset[str]:
        """Keep the lines that were not sent at all; returns the ids of their requests."""
        if self._head_sent:
            head = self._to_daemon.popleft()
            # A line that was sent in part is lost; the next whole line is kept.
            whole = head.find(b"\n", self._head_sent - 1) + 1 or len(head)
            self._daemon_bytes -= whole - self._head_sent
            if whole < len(head):
                self._to_daemon.appendleft(head[whole:])
            self._head_sent = 0
        lines = (line for chunk in self._to_daemon for line in chunk.split(b"\n") if line)
        return self._pending.asked_by(lines)

    def _fail(self, reason: str, *, keep: frozenset[str]) -> None:
        for waiting in list(self._pending.waiting.values()):
            if self._input_ended_at is not None and waiting.method == "subscriptions/listen":
                del self._pending.waiting[
                    waiting.id
                ]  # ends with the input of the client, without an answer
            elif waiting.id not in keep:
                self._to_client += self._pending.lose(waiting, reason)

    # --- attaching ---------------------------------------------------------------------------

    def _attach(self) -> None:
        """Connect (starting a daemon if necessary), register this bridge, replay the handshake."""
        for _ in range(3):
            link = self._early_link or attach.connect_or_start(self._settings)
            self._early_link = None
            try:
                if self._register(link):
                    link.settimeout(None)
                    link.setblocking(False)
                    self._link = link
                    self._attached_at = time.monotonic()
                    return
            except OSError:
                pass  # the daemon exited during the exchange; try again
            except (ValueError, KeyError, TypeError, RecursionError):
                link.close()
                message = f"the daemon at {self._settings.socket} does not answer as recalld does"
                raise Exit(UNAVAILABLE, message) from None
            link.close()
        raise Exit(UNAVAILABLE, "the daemon does not answer")

    def _register(self, link: socket.socket) -> bool:
        link.settimeout(ATTACH_SECONDS)
        settings = self._settings
        answer = _exchange(
            link,
            "recalld/attach",
            {
                "version": VERSION,
                "session": self._session,
                "client": self._client,
                "dialects": settings.dialects,
                "bank": settings.bank,
                "fixtures": settings.fixtures,
                "rateLimit": settings.client_rate_limit,
                "logLevel": self._pending.level,
                "uris": list(self._pending.uris),
            },
        )
        if "error" in answer:
            raise Exit(
                UNAVAILABLE, f"the daemon refused the connection: {answer['error']['message']}"
            )
        result = answer["result"]
        if _version(result["version"]) < _version(VERSION):
            # This program is newer: the old daemon finishes its calls and exits.
            attach.replace(settings, link)
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
    """Send one request of our own and return the answer, before any traffic of the client."""
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


class _NonBlocking:
    """Context manager that makes a pipe or socket non-blocking; other files are left alone."""

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
