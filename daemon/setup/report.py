"""The output of `recalld setup`: a table for people, JSON for programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from daemon.setup.handshake import Proof
from daemon.setup.plan import DONE, Plan

_WORDS: Final = {"current": "already up to date", "absent": "nothing to remove"}
_FUTURE: Final = {"add": "would add", "update": "would update", "remove": "would remove"}


class Line(Struct, kw_only=True):
    """The result for one part of one client, with the proof that its entry works."""

    plan: Plan
    is_done: bool
    proof: Proof | None = None
    notes: Sequence[str] = ()

    @property
    def is_fault(self) -> bool:
        has_failed = self.plan.status in ("conflict", "refused", "failed")
        return has_failed or (self.proof is not None and bool(self.proof.fault))

    @property
    def words(self) -> str:
        status = self.plan.status
        verb = DONE.get(status) if self.is_done else _FUTURE.get(status)
        text = verb or _WORDS.get(status, status)
        if status in ("conflict", "refused", "failed", "unsupported"):
            text = f"{status}: {self.plan.detail}"
        if self.proof is not None:
            text += f"; {proof_words(self.proof)}"
        return text


def proof_words(proof: Proof) -> str:
    if proof.fault:
        return f"does not work: {proof.fault}"
    return f"answers in {proof.seconds:.2f} s with {proof.tools} tools"


def table(lines: Sequence[Line], home: Path) -> list[str]:
    """One row for each part: client, part, file, result. Notes follow."""
    rows = [("CLIENT", "PART", "FILE", "RESULT")]
    rows += [
        (each.plan.client, each.plan.part, shorten(each.plan.path, home), each.words)
        for each in lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    shown = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[3]])
        for row in rows
    ]
    backups = [each.plan.backup for each in lines if each.plan.backup is not None]
    shown += [f"backup: {shorten(backup, home)}" for backup in backups]
    notes = dict.fromkeys(note for each in lines for note in each.notes)
    return shown + [f"note: {note}" for note in notes]


def as_data(lines: Sequence[Line]) -> list[dict[str, Any]]:
    return [
        {
            "client": each.plan.client,
            "part": each.plan.part,
            "file": str(each.plan.path),
            "status": each.plan.status,
            "done": each.is_done and each.plan.is_change,
            "detail": each.plan.detail or None,
            "backup": str(each.plan.backup) if each.plan.backup else None,
            "works": None if each.proof is None else not each.proof.fault,
            "seconds": None if each.proof is None else round(each.proof.seconds, 3),
            "tools": None if each.proof is None else each.proof.tools,
            "fault": each.proof.fault if each.proof and each.proof.fault else None,
        }
        for each in lines
    ]


def shorten(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
