"""Preparation of an import: the kind of a path, and the file that the engine imports.

The command line prepares in its own process, the REST API on a worker thread of the daemon. Both
then let the engine import the prepared file.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from daemon.importing import detection, foreign_files, report
from daemon.importing.files import jsonl
from daemon.importing.kinds import BY_NAME
from daemon.importing.record import ForeignKind, WrongKind
from daemon.importing.secrets import Policy
from daemon.importing.staging import Staged, Stager
from daemon.importing.values import object_of

#: Called with the entries that were read; their total is not known.
Reading = Callable[[int, int], None]


class Prepared(Struct, frozen=True, kw_only=True):
    """A file in the export format. `staged` is None if the path itself is an export of recalld."""

    kind: ForeignKind
    path: Path
    file: Path
    policy: str
    is_detected: bool
    staged: Staged | None = None

    def report(self, result: Mapping[str, Any]) -> report.Report:
        """The report of the import; `result` is the outcome that the bank operation reports."""
        staged = self.staged
        policy = self.policy
        if staged is None:
            counts = result["createdByType"], result["knownByType"]
            staged = Staged(found=sum(report.entries(each) for each in counts))
            policy = "keep"  # recalld's own items are taken as they are
        built = report.build(
            self.kind, str(self.path), staged, result, policy=policy, is_detected=self.is_detected
        )
        if result["edited"]:
            built["warnings"].append(
                "its lines do not fit its digest: it was edited, or damaged in transport"
            )
        return built


def prepare(
    path: Path,
    name: str | None,
    directory: Path,
    *,
    bank: str,
    policy: Policy,
    now: int,
    progress: Reading,
) -> Prepared:
    """Read the data at a path and write the file to import into a private directory.

    Raises `WrongKind` if the path holds no such data; its message says what it looks like.
    """
    kind = None if name is None else BY_NAME[name]
    if _is_exported(path):
        if kind not in (None, jsonl.KIND):
            raise WrongKind(
                f"is not data of {kind.name}: it is an export of recalld; leave out the kind"
            )
        return Prepared(
            kind=jsonl.KIND, path=path, file=path, policy=policy, is_detected=name is None
        )
    if kind is None:
        kind = detection.detect(path)
    if kind is None:
        raise WrongKind(
            f"is of no known kind; it looks like {detection.describe(path)}; name the kind"
        )
    why = detection.refusal(kind, path)
    if why is not None:
        raise WrongKind(why)
    file = directory / "staged.jsonl"
    descriptor = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb", buffering=1 << 20) as target:
        staged = Stager(kind, target, bank, policy=policy, now=now).stage(kind.read(path), progress)
    return Prepared(
        kind=kind,
        path=path,
        file=file,
        policy=policy,
        is_detected=name is None,
        staged=staged,
    )


def _is_exported(path: Path) -> bool:
    """Whether a file is one that `recalld export` wrote as JSON lines."""
    first = foreign_files.first_line(path) if path.is_file() else None
    return object_of(first).get("format") == "recalld-bank"
