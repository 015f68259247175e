"""Runs the reference server: `python -m conformance.broken [--defect NAME]`.

It serves stdio, a unix socket with `--unix PATH`, or HTTP on a free port with `--http` (the URL and
the tokens are printed first). `--list` prints the defects.
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

from conformance.broken.defects.registry import DEFECTS, NO_DEFECT, Defect
from conformance.broken.reference import Connection, Server, write_all


def serve_stdio(defect: Defect) -> int:
    """Serve descriptors 0 and 1. Other output of this process goes to stderr."""
    server = Server(defect)
    quirk = server.quirk
    has_stderr = _is_open(2)
    if not has_stderr:  # otherwise the copy of stdout below could become descriptor 2
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    out = os.dup(1)
    if not quirk("prints"):
        os.dup2(2, 1)
    if quirk("needs_stderr") and not has_stderr:
        return 3
    if quirk("dies_of_pipe"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if quirk("orphan") and os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    if quirk("banner"):
        os.write(out, b"Welcome to the reference server!\n")
    if quirk("binary_stderr"):
        os.write(2, b"fine\n\xff\xfe not text\n")
    connection = Connection(server, write_all(out))

    def stop(number: int, frame: FrameType | None) -> None:
        if number in (quirk("deaf_to") or ()):
            return
        if not quirk("dies_abruptly"):
            connection.end_subscriptions()
        os._exit(quirk("signal_status") or 0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    lock = Path(os.environ.get("CONFORM_LOCK", "/nonexistent"))
    if quirk("keeps_a_lock"):
        if lock.exists():
            return 4
        lock.touch()
    try:
        connection.serve(lambda: os.read(0, 65536))
    except OSError:
        if quirk("goes_on_alone"):
            time.sleep(20)
    if quirk("lingers") == "always" or (quirk("lingers") and connection.in_flight):
        time.sleep(20)
    connection.finish(0.3)
    return int(quirk("status") or 0)


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def listen(path: str, server: Server) -> socket.socket:
    """Listen on a socket that only its owner can open, unless a defect changes that."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    Path(path).chmod(0o666 if server.quirk("open_socket") else 0o600)
    listener.listen(128)
    return listener


def accept(listener: socket.socket, server: Server) -> None:
    """Serve each connection in its own thread until the listener is closed."""
    while True:
        try:
            accepted, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=serve_socket, args=(server, accepted), daemon=True).start()


def serve_socket(server: Server, accepted: socket.socket) -> None:
    with accepted, contextlib.suppress(OSError):
        connection = Connection(server, accepted.sendall)
        try:
            connection.serve(lambda: accepted.recv(65536))
        finally:
            connection.finish(1.0)


def main() -> int:
    from conformance.broken import defects

    defects.load()
    parser = argparse.ArgumentParser(prog="conformance.broken", description=__doc__)
    parser.add_argument("--defect", default="none", metavar="NAME")
    parser.add_argument("--unix", metavar="PATH")
    parser.add_argument("--http", action="store_true")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    if options.list:
        for defect in DEFECTS.values():
            print(f"{defect.name:<28} {' '.join(defect.cases):<40} {defect.about}")
        return 0
    defect = DEFECTS.get(options.defect, NO_DEFECT)
    if defect.name != options.defect:
        print(f"no defect is called {options.defect!r}; see --list", file=sys.stderr)
        return 2
    if options.unix:
        server = Server(defect)
        accept(listen(options.unix, server), server)
        return 0
    if options.http:
        from conformance.broken.http_server import TOKENS, HttpReferenceServer

        print(HttpReferenceServer(defect).url, *TOKENS, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()
        return 0
    return serve_stdio(defect)


if __name__ == "__main__":
    raise SystemExit(main())
