"""The state of a source between runs, and the outcome of one run."""

from typing import Final, Literal

from msgspec import Struct

#: Problems of single files that are kept by name; the others are only counted.
PROBLEMS_KEPT: Final = 20
CHANGES_SHOWN: Final = 1_000

Phase = Literal["listing", "reading", "deleting", "embedding"]


class FileProblem(Struct, frozen=True, kw_only=True):
    """A file that was not indexed, and the reason."""

    source_id: str
    reason: str


class Outcome(Struct, kw_only=True):
    """The counts of one run. `is_complete` tells whether the whole source could be listed."""

    files: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    deleted: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0
    #: Changed files that `since`, `until` or `limit` left for another run.
    postponed: int = 0
    withheld: int = 0
    withheld_reason: str = ""
    is_complete: bool = True
    seconds: float = 0.0
    problems: list[FileProblem] = []
    #: With `--dry-run`: the changes by name, each `+`, `~`, `>` or `-` and a path.
    changes: list[str] = []

    @property
    def has_changed(self) -> bool:
        return bool(self.added or self.changed or self.moved or self.deleted)

    def problem(self, source_id: str, reason: str) -> None:
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(FileProblem(source_id=source_id, reason=reason))

    def change(self, mark: str, source_id: str) -> None:
        if len(self.changes) < CHANGES_SHOWN:
            self.changes.append(f"{mark} {source_id}")


class SourceState(Struct, frozen=True, kw_only=True):
    """The part of a source that the catalogue remembers."""

    bank: str = ""
    ledger: str = ""
    place: str = ""
    last_sync: int | None = None  # unix milliseconds of the last run that was complete
    last_run: int | None = None
    last_error: str | None = None
    #: The deletions that the last run withheld; the next one may apply up to this number.
    withheld: int = 0
    outcome: Outcome | None = None


class RunProgress:
    """The progress of a run, read by everything that shows it."""

    def __init__(self) -> None:
        self.phase: Phase = "listing"
        self.done = 0
        self.total = 0
        #: The steps of earlier phases, because a client expects numbers that only grow.
        self.before = 0

    def begin(self, phase: Phase, total: int = 0) -> None:
        self.before += self.done
        self.phase, self.done, self.total = phase, 0, total

    def step(self, count: int = 1) -> None:
        self.done += count
