"""What `recalld bank` prints: one short line, or a small table; and how far a long verb is.

Everything comes as the JSON that `--json` would print. Standard library only.
"""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

Done = dict[str, Any]

EVERY_SECONDS: Final = 0.1


class Shown:
    """One line on a terminal that says how far the work is, and is gone when it is done."""

    def __init__(self, verb: str, *, is_shown: bool) -> None:
        self._verb = verb
        self._is_shown = is_shown
        self._told_at = float("-inf")
        self._width = 0

    def count(self, done: int, total: int) -> None:
        """May be called on another thread, and often."""
        now = time.monotonic()
        if not self._is_shown or not total or now - self._told_at < EVERY_SECONDS:
            return
        self._told_at = now
        line = f"{self._verb}: {done:,} of {total:,} ({done * 100 // total} %)"
        self._width = max(self._width, len(line))
        sys.stderr.write(f"\r{line:{self._width}}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._width:
            sys.stderr.write(f"\r{'':{self._width}}\r")
            sys.stderr.flush()
            self._width = 0


def lines(verb: str, done: Done) -> list[str]:
    """What a person reads of a finished verb."""
    return _SAID[verb](done)


def size(count: int | None) -> str:
    """Bytes, as a person reads them."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns under their heads; numbers stand to the right."""
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    made: list[str] = []
    for row in (heads, *rows):
        cells = [
            f"{cell:>{width}}" if head in _RIGHT else f"{cell:{width}}"
            for cell, width, head in zip(row, widths, heads, strict=True)
        ]
        made.append("  ".join(cells).rstrip())
    return made


_RIGHT: Final = frozenset({"ITEMS", "SIZE", "QUOTA", "COUNT"})


def _list(done: Done) -> list[str]:
    if not done["banks"]:
        return ["there are no banks yet; the first thing stored makes one"]
    rows = [
        (
            bank["bank"],
            "?" if bank["items"] is None else str(bank["items"]),
            size(bank["bytes"]),
            "none" if bank["quotaBytes"] is None else size(bank["quotaBytes"]),
            bank["created"].replace("T", " "),
            bank.get("trouble", ""),
        )
        for bank in done["banks"]
    ]
    return _table(("BANK", "ITEMS", "SIZE", "QUOTA", "CREATED", ""), rows)


def _backups(done: Done) -> list[str]:
    bank = done["bank"]
    if not done["backups"]:
        return [f"{bank}: no backups; `recalld bank backup {bank}` makes one"]
    rows = [
        (each["backup"], size(each["bytes"]), each["made"].replace("T", " "))
        for each in done["backups"]
    ]
    return _table(("BACKUP", "SIZE", "MADE"), rows)


def _restored(done: Done) -> list[str]:
    kept = done["replaced"]
    before = f"what was there is backup {kept}" if kept else "what was there could not be backed up"
    return [f"{done['bank']}: restored {done['backup']} ({_items(done)}); {before}"]


def _forgotten(done: Done) -> list[str]:
    bank, token = done["bank"], done["undo"]
    return [
        f"{bank}: {_items(done)} forgotten; until {done['undoUntil']} "
        f"`recalld bank undo {bank} {token}` brings back what was"
    ]


def _erased(done: Done) -> list[str]:
    copies = done["copiesRemoved"]
    held = _many(copies, "backup or cache file")
    also = f"; {held} that may have held one went too" if copies else ""
    whole = f" and {_many(done['documents'], 'document')}" if done["documents"] else ""
    gone = f"{_items(done)}{whole}"
    return [f"{done['bank']}: {gone} erased, no copy is left in recalld's files{also}"]


def _checked(done: Done) -> list[str]:
    about = f"{_items(done)}, {_many(done['documents'], 'document')}"
    if not done["problems"]:
        return [f"{done['bank']}: sound ({about})"]
    rows = [
        (each["name"], each["part"], str(each["count"]), each["remedy"])
        for each in done["problems"]
    ]
    return [
        f"{done['bank']}: {_many(len(rows), 'kind')} of problem ({about})",
        *_table(("PROBLEM", "PART", "COUNT", "REMEDY"), rows),
    ]


def _quota(done: Done) -> list[str]:
    quota = done["quotaBytes"]
    return [f"{done['bank']}: {'no quota' if quota is None else f'quota {size(quota)}'}"]


def _items(done: Done) -> str:
    return _many(done["items"], "item")


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


_SAID: Final[dict[str, Callable[[Done], list[str]]]] = {
    "list": _list,
    "create": lambda done: [f"{done['bank']}: created"],
    "rename": lambda done: [f"{done['was']}: is called {done['bank']} now"],
    "quota": _quota,
    "delete": lambda done: [f"{done['bank']}: deleted, with its backups"],
    "backup": lambda done: [
        f"{done['bank']}: backed up as {done['backup']} ({_items(done)}, {size(done['bytes'])})"
    ],
    "backups": _backups,
    "restore": _restored,
    "export": lambda done: [f"{done['bank']}: {done['records']} records in {done['path']}"],
    "import": lambda done: [
        f"{done['bank']}: {done['created']} records taken, {done['known']} were there already"
    ],
    "forget": _forgotten,
    "undo": lambda done: [f"{done['bank']}: {_items(done)} brought back"],
    "erase": _erased,
    "check": _checked,
    "rebuild": _checked,
}
