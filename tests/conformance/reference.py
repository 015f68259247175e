"""The reference server for tests: on a socket in this process, or as a child process."""

from __future__ import annotations

import os
import socket
import sys
import threading
from pathlib import Path
from typing import Literal

from conformance import revisions
from conformance.broken import defects
from conformance.broken.__main__ import accept, listen
from conformance.broken.defects.registry import DEFECTS, NO_DEFECT, Defect
from conformance.broken.http_server import HttpReferenceServer
from conformance.broken.http_sessions import IDLE_SECONDS
from conformance.broken.reference import Server
from conformance.check import load_suites
from conformance.client.stdio import StdioEndpoint
from conformance.client.unix_socket import UnixEndpoint
from conformance.client.wire import Endpoint
from conformance.context import Settings
from conformance.requirements import Requirement, requirements
from conformance.runner import Report, run

defects.load()
load_suites()

Transport = Literal["unix", "stdio", "http"]
KNOWN = frozenset(revisions.ALL)
QUICK = Settings(
    timeout=1.0,
    quiet_seconds=0.12,
    keep_alive_seconds=2.0,
    dribble_seconds=5.0,
    idle_seconds=IDLE_SECONDS,
    spoken=KNOWN,
)
PATIENT = Settings(timeout=5.0, idle_seconds=IDLE_SECONDS, spoken=KNOWN)


class SocketReferenceServer(UnixEndpoint):
    """A reference server on a unix socket in this process; `close` stops it."""

    def __init__(self, path: Path, defect: Defect = NO_DEFECT) -> None:
        super().__init__(str(path))
        server = Server(defect)
        self._listener = listen(str(path), server)
        self._thread = threading.Thread(target=accept, args=(self._listener, server), daemon=True)
        self._thread.start()

    def close(self) -> None:
        # close() alone does not wake a thread that is blocked in accept().
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._listener.close()


def child(defect: str, lock: Path, *, spares: int = 0) -> StdioEndpoint:
    """The reference server as a child process."""
    command = [sys.executable, "-m", "conformance.broken", "--defect", defect]
    return StdioEndpoint(command, {**os.environ, "CONFORM_LOCK": str(lock)}, spares=spares)


def revision_for(defect: Defect, row: Requirement) -> str:
    """The revision to try a case in; one revision is enough as a proof."""
    if defect.revision is not None:
        return defect.revision
    if row.once == "run":
        return max(row.revisions)  # the runner tries the case only in this one
    legacy = [revision for revision in row.revisions if revision in revisions.LEGACY]
    return max(legacy or row.revisions)


def prove(defect: Defect, directory: Path) -> dict[str, str]:
    """Try the cases of a defect on a server with that defect; return the results."""
    groups: dict[tuple[str, Transport], list[Requirement]] = {}
    for name in defect.cases:
        row = requirements()[name]
        ways: tuple[Transport, ...] = ("unix", "stdio", "http")
        way = next(way for way in ways if way in row.transports)
        groups.setdefault((revision_for(defect, row), way), []).append(row)
    outcome: dict[str, str] = {}
    for (revision, way), rows in groups.items():
        endpoint: Endpoint
        if way == "unix":
            endpoint, settings = SocketReferenceServer(directory / "s", defect), QUICK
        elif way == "http":
            endpoint, settings = HttpReferenceServer(defect), QUICK
        else:
            endpoint, settings = child(defect.name, directory / "lock"), PATIENT
        report = run(endpoint, rows, wanted=[revision], settings=settings, jobs=1)
        outcome.update(outcomes(report))
    return outcome


def outcomes(report: Report) -> dict[str, str]:
    return {
        case: "; ".join(f"{t.revision} {t.status} {t.reason}" for t in report.of(case))
        for case in report.cases()
    }


__all__ = ["DEFECTS", "SocketReferenceServer", "child", "prove"]
