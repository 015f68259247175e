"""Output of `recalld bank` for people: result lines and tables.

Results are the same objects that `--json` prints. Standard library only.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

Result = dict[str, Any]


def pending_note(result: Result) -> str:
    """A note about vectors that are not computed yet; empty if there are none."""
    count = result.get("pendingVectors", 0)
    if not isinstance(count, int) or count <= 0:
        return ""
    bank = result["bank"]
    return (
        f"recalld: {count:,} vectors are computed in the background while a daemon runs; until"
        f" then search uses words. `recalld bank index {bank}` shows the progress\n"
    )


def lines(verb: str, result: Result) -> list[str]:
    """Return the lines that describe the result of a command."""
    return _FORMATTERS[verb](result)


def size(count: int | None) -> str:
    """Format a number of bytes with a unit."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Format a table; columns of numbers are right-aligned."""
    widths = [max(len(row[at]) for row in (headings, *rows)) for at in range(len(headings))]
    lines: list[str] = []
    for row in (headings, *rows):
        cells = [
            f"{cell:>{width}}" if heading in _RIGHT_ALIGNED else f"{cell:{width}}"
            for cell, width, heading in zip(row, widths, headings, strict=True)
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


_RIGHT_ALIGNED: Final = frozenset({"ITEMS", "SIZE", "QUOTA", "COUNT"})


def _list(result: Result) -> list[str]:
    if not result["banks"]:
        return ["there are no banks yet; the first stored memory creates one"]
    rows = [
        (
            bank["bank"],
            "?" if bank["items"] is None else str(bank["items"]),
            size(bank["bytes"]),
            "none" if bank["quotaBytes"] is None else size(bank["quotaBytes"]),
            bank["created"].replace("T", " "),
            bank.get("trouble", ""),
        )
        for bank in result["banks"]
    ]
    return _table(("BANK", "ITEMS", "SIZE", "QUOTA", "CREATED", ""), rows)


def _recovered(result: Result) -> list[str]:
    found = [f"{bank['bank']}: recovered" for bank in result["banks"]]
    refused = [f"banks/{each['directory']}: {each['reason']}" for each in result["refused"]]
    return [*found, *refused] or ["every bank on disk is listed already"]


def _backups(result: Result) -> list[str]:
    bank = result["bank"]
    if not result["backups"]:
        return [f"{bank}: no backups; `recalld bank backup {bank}` creates one"]
    rows = [
        (each["backup"], size(each["bytes"]), each["made"].replace("T", " "))
        for each in result["backups"]
    ]
    return _table(("BACKUP", "SIZE", "MADE"), rows)


def _backed_up(result: Result) -> list[str]:
    about = f"{_items(result)}, {size(result['bytes'])}"
    return [f"{result['bank']}: backed up as {result['backup']} ({about})"]


def _restored(result: Result) -> list[str]:
    backup = result["replaced"]
    before = (
        f"the previous content is backup {backup}"
        if backup
        else "the previous content could not be backed up"
    )
    return [f"{result['bank']}: restored {result['backup']} ({_items(result)}); {before}"]


def _forgotten(result: Result) -> list[str]:
    bank, token = result["bank"], result["undo"]
    return [
        f"{bank}: {_items(result)} forgotten; until {result['undoUntil']} "
        f"`recalld bank undo {bank} {token}` restores them"
    ]


def _erased(result: Result) -> list[str]:
    copies = result["copiesRemoved"]
    removed = _many(copies, "backup or cache file")
    also = f"; {removed} that may have contained them deleted" if copies else ""
    whole = f" and {_many(result['documents'], 'document')}" if result["documents"] else ""
    erased = f"{_items(result)}{whole}"
    if result.get("remains"):
        return [f"{result['bank']}: {erased} erased; {result['remains']}"]
    return [f"{result['bank']}: {erased} erased, no copy is left in recalld's files{also}"]


def _moved(result: Result) -> list[str]:
    found = [
        f"{bank['bank']}: {bank['records']} records are equal in {result['to']};"
        f" {bank['created']} were new there"
        for bank in result["banks"]
    ]
    return [*found, "the originals are unchanged; `recalld bank delete` removes one"]


def _checked(result: Result) -> list[str]:
    about = f"{_items(result)}, {_many(result['documents'], 'document')}"
    if not result["problems"]:
        return [f"{result['bank']}: sound ({about})"]
    rows = [
        (each["name"], each["part"], str(each["count"]), each["remedy"])
        for each in result["problems"]
    ]
    return [
        f"{result['bank']}: {_many(len(rows), 'kind')} of problem ({about})",
        *_table(("PROBLEM", "PART", "COUNT", "REMEDY"), rows),
    ]


def _quota(result: Result) -> list[str]:
    quota = result["quotaBytes"]
    return [f"{result['bank']}: {'no quota' if quota is None else f'quota {size(quota)}'}"]


def _items(result: Result) -> str:
    return _many(result["items"], "item")


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


_FORMATTERS: Final[dict[str, Callable[[Result], list[str]]]] = {
    "list": _list,
    "create": lambda result: [f"{result['bank']}: created"],
    "rename": lambda result: [f"{result['was']}: is called {result['bank']} now"],
    "quota": _quota,
    "delete": lambda result: [f"{result['bank']}: deleted, with its backups"],
    "backup": _backed_up,
    "backups": _backups,
    "restore": _restored,
    "export": lambda result: [f"{result['bank']}: {result['records']} records in {result['path']}"],
    "import": lambda result: [
        f"{result['bank']}: {result['created']} records taken, {result['known']} were there already"
        + ("; its lines do not fit its digest: it was edited or damaged" * result["edited"])
    ],
    "forget": _forgotten,
    "undo": lambda result: [f"{result['bank']}: {_items(result)} brought back"],
    "erase": _erased,
    "check": _checked,
    "rebuild": _checked,
    "index": lambda result: [f"{result['bank']}: {result['pendingVectors']} vectors are pending"],
    "recover": _recovered,
    "move": _moved,
}
