"""Run the reference server, whole or with a flaw: `python -m conformance.broken [--flaw NAME]`.

On stdio, or with `--unix PATH` on a socket. `--list` names the flaws.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from conformance.broken.flaw import FLAWS, SOUND, Flaw
from conformance.broken.reference import Connection, Server, write_all


def serve_stdio(flaw: Flaw) -> int:
    """Serve descriptors 0 and 1; whatever else is printed goes to stderr."""
    server = Server(flaw)
    quirk = server.quirk
    if quirk("exits_late"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if quirk("dies_of_pipe"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    out = os.dup(1)
    if not quirk("prints"):
        os.dup2(2, 1) if _is_open(2) else os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if quirk("banner"):
        os.write(out, b"Welcome to the reference server!\n")
    if quirk("needs_stderr") and not _is_open(2):
        return 3
    if quirk("noisy_stderr"):
        threading.Thread(target=_chatter, daemon=True).start()
    if quirk("binary_stderr"):
        os.write(2, b"\xff\xfe not text\n" * 3)
    connection = Connection(server, write_all(out))
    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        if number in (quirk("deaf_to") or ()):
            return
        if not quirk("dies_abruptly"):
            connection.end_subscriptions()
        if quirk("half_line"):
            os.write(out, b'{"jsonrpc":')
        stopped.set()
        os._exit(quirk("signal_status") or 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if quirk("orphan"):
        _orphan()
    if quirk("one_start") and os.path.exists("/proc/self/cwd/.conform-started"):
        return 4
    try:
        connection.serve(_reader(quirk("late_answers")))
    except (BrokenPipeError, OSError):
        if quirk("complains"):
            for _ in range(20_000):
                os.write(2, b"broken pipe! broken pipe!\n")
        if quirk("goes_on"):
            time.sleep(60)
    if quirk("lingers") and (connection.in_flight or quirk("lingers") == "always"):
        time.sleep(60)
    if quirk("drops_last") is None:
        _finish(connection)
    return int(quirk("status") or 0)


def _finish(connection: Connection) -> None:
    """Let quick calls end; everything else is cut off with the process."""
    for call in list(connection.in_flight.values()):
        call.cancelled.wait(0.05)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _chatter() -> None:
    while True:
        os.write(2, b"x" * 4096)
        time.sleep(0.001)


def _orphan() -> None:
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)


def _reader(late: bool | None) -> object:
    def read() -> bytes:
        return os.read(0, 65536)

    return read


def serve_unix(path: str, flaw: Flaw, *, ready: threading.Event | None = None) -> None:
    """Serve a socket, a thread for each connection, until the process ends."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    server = Server(flaw)
    Path(path).chmod(0o666 if server.quirk("open_socket") else 0o600)
    listener.listen(128)
    if ready is not None:
        ready.set()
    while True:
        accepted, _ = listener.accept()
        threading.Thread(target=serve_socket, args=(server, accepted), daemon=True).start()


def serve_socket(server: Server, accepted: socket.socket) -> None:
    with accepted, contextlib.suppress(OSError):
        connection = Connection(server, accepted.sendall)
        connection.serve(lambda: accepted.recv(65536))
        if not server.quirk("hasty_close"):
            for call in list(connection.in_flight.values()):
                call.cancelled.wait(1)


def main() -> int:
    from conformance.broken import flaws

    flaws.load()
    parser = argparse.ArgumentParser(prog="conformance.broken", description=__doc__)
    parser.add_argument("--flaw", default="none", metavar="NAME")
    parser.add_argument("--unix", metavar="PATH")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for flaw in FLAWS.values():
            print(f"{flaw.name:<28} {' '.join(flaw.cases):<40} {flaw.about}")
        return 0
    flaw = SOUND if options.flaw == "none" else FLAWS.get(options.flaw)
    if flaw is None:
        print(f"no flaw called {options.flaw!r}; --list names them", file=sys.stderr)
        return 2
    if options.unix:
        serve_unix(options.unix, flaw)
    return serve_stdio(flaw)


if __name__ == "__main__":
    raise SystemExit(main())
