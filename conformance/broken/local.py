"""The reference server for proofs: on a socket or over HTTP in this process, or as a child."""

from __future__ import annotations

import os
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Literal

from conformance import revisions, roles
from conformance.broken import defects
from conformance.broken.__main__ import accept, listen
from conformance.broken.defects.registry import NO_DEFECT, Defect
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
FIXTURES = roles.Vouched(fixtures=True)
QUICK = Settings(
    timeout=1.0,
    quiet_seconds=0.12,
    keep_alive_seconds=2.0,
    dribble_seconds=5.0,
    idle_seconds=IDLE_SECONDS,
    spoken=KNOWN,
    vouched=FIXTURES,
    repeat=False,
)
PATIENT = Settings(timeout=5.0, idle_seconds=IDLE_SECONDS, spoken=KNOWN, vouched=FIXTURES)


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


MODERN_ONLY = frozenset(("V03a", "V09", "H25a", "H25b", "H26"))
"""Cases for servers that support only the modern revision."""


def revision_for(defect: Defect, row: Requirement) -> str:
    """The revision to try a case in; one revision is enough as a proof."""
    if defect.revision is not None:
        return defect.revision
    if row.once == "run":
        return max(row.revisions)  # the runner tries the case only in this one
    legacy = [revision for revision in row.revisions if revision in revisions.LEGACY]
    return max(legacy or row.revisions)


def way_for(row: Requirement) -> Transport:
    """The fastest transport of a requirement."""
    ways: tuple[Transport, ...] = ("unix", "stdio", "http")
    return next(way for way in ways if way in row.transports)


def serve(way: Transport, defect: Defect, directory: Path) -> tuple[Endpoint, Settings]:
    """A reference server with a defect, and the settings to test it with."""
    if way == "unix":
        return SocketReferenceServer(directory / "s", defect), QUICK
    if way == "http":
        return HttpReferenceServer(defect), QUICK
    return child(defect.name, directory / "lock"), PATIENT


def prove(defect: Defect, directory: Path) -> Report:
    """Try the cases of a defect on a server with that defect."""
    groups: dict[tuple[str, Transport, bool], list[Requirement]] = {}
    for name in defect.cases:
        row = requirements()[name]
        group = revision_for(defect, row), way_for(row), name in MODERN_ONLY
        groups.setdefault(group, []).append(row)
    whole = Report(defect.name, "")
    for (revision, way, modern_only), rows in groups.items():
        endpoint, settings = serve(way, defect, directory)
        if modern_only:
            settings = replace(settings, spoken=frozenset())
        report = run(endpoint, rows, wanted=[revision], settings=settings, jobs=1)
        whole.trials += report.trials
    return whole


def outcomes(report: Report) -> dict[str, str]:
    return {
        case: "; ".join(f"{t.revision} {t.status} {t.reason}" for t in report.of(case))
        for case in report.cases()
    }
