"""Output of the memory commands: plain lines in a pipe, colours on a terminal.

In a pipe a memory is one line with tabs between its fields: score (of a search), id, date, source,
text. On a terminal `rich` renders the same fields; it is imported only there, because the import
takes longer than a search.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from daemon.commands.bank_report import size
from daemon.commands.output import print_lines

Result = dict[str, Any]

#: The parts of a score, in the words of `--explain`.
_PARTS: Final = (
    ("keyword", "words"),
    ("vector", "meaning"),
    ("context", "neighbours"),
    ("boosts", "boosts"),
)


def write(verb: str, result: Result) -> None:
    """Print the result of an operation for people."""
    note = _NOTES[verb](result) if verb in _NOTES else ""
    if verb in ("search", "items", "show"):
        entries: list[Result] = result["hits"] if verb == "search" else result["items"]
        is_whole = verb == "show"
        if entries and is_coloured():
            from daemon.commands.memories import coloured

            coloured.write(entries, is_whole=is_whole)
        elif is_whole:
            print_plain(_separated([_whole(entry) for entry in entries]))
        else:
            print_plain([text for entry in entries for text in _row(entry)])
    else:
        print_plain(_FORMATTERS[verb](result))
    if note:
        sys.stderr.write(f"recalld: {note}\n")


def is_coloured() -> bool:
    """Whether stdout is a terminal that may show colours (NO_COLOR, TERM=dumb)."""
    return (
        os.isatty(1) and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
    )


def print_plain(lines: Sequence[str]) -> None:
    print_lines(lines)


def one_line(entry: Result) -> str:
    """Title and text of a memory in one line."""
    title, text = entry["title"], " ".join(entry["text"].split())
    return f"{title}: {text}" if title and title not in text else text or title


def local_time(moment: str) -> str:
    """A UTC time as local date and time."""
    from datetime import datetime  # imported late: only a terminal shows local times

    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M}"


def explanation(parts: Result) -> str:
    """Why a hit matched, in one line."""
    shown = [f"{label} {parts[name]:.2f}" for name, label in _PARTS if parts.get(name)]
    details: list[str] = []
    if parts.get("cover"):
        details.append(f"covers {min(1.0, parts['cover']):.0%} of the query's words")
    if parts.get("cosine") is not None:
        details.append(f"cosine {parts['cosine']:.2f}")
    return " + ".join(shown) + (f" ({', '.join(details)})" if details else "")


def details_of(entry: Result) -> list[tuple[str, str]]:
    """The fields of a whole memory, besides its text."""
    fields = [
        ("id", entry["id"]),
        ("kind", entry["kind"]),
        ("date", entry["date"]),
        ("source", entry["source"]),
        ("tags", ", ".join(entry["tags"])),
        ("title", entry["title"]),
    ]
    others = ("category", "context", "status", "document", "session", "client", "dialect")
    fields += [(name, str(entry[name])) for name in others if entry.get(name)]
    metadata: Result = entry.get("metadata") or {}
    fields += [(f"metadata.{name}", str(value)) for name, value in metadata.items()]
    for name in ("stored", "changed"):
        if entry.get(name) and entry[name] != entry["date"]:
            fields.append((name, entry[name]))
    return [(name, value) for name, value in fields if value]


def _row(entry: Result) -> list[str]:
    fields = [entry["id"], entry["date"], entry["source"], one_line(entry)]
    if "score" in entry:
        fields.insert(0, f"{entry['score']:.2f}")
    if entry["tags"]:
        fields.append(" ".join(f"#{tag}" for tag in entry["tags"]))
    lines = ["\t".join(field.replace("\t", " ") for field in fields)]
    if "parts" in entry:
        lines.append(f"  {explanation(entry['parts'])}")
    return lines


def _whole(entry: Result) -> list[str]:
    return [*(f"{name}: {value}" for name, value in details_of(entry)), "", entry["text"]]


def _separated(blocks: Sequence[Sequence[str]]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        lines += ["", *block] if lines else list(block)
    return lines


def _search_note(result: Result) -> str:
    parts: list[str] = []
    if not result["hits"]:
        how = "keywords" if result["mode"] == "keyword" else "keywords and meaning"
        parts.append(
            f"no memory matched; bank {result['bank']!r} with {result['searched']} entries was"
            f" searched by {how}"
        )
    if not result["hits"] and result["below"]:
        parts.append(f"{result['below']} with a low score were withheld (--min-score 0 shows them)")
    if "vectors-pending" in result["degraded"]:
        parts.append("new entries are still being indexed and match by keyword only")
    return "; ".join(parts)


def _items_note(result: Result) -> str:
    if not result["items"]:
        return f"bank {result['bank']!r} has no such memories"
    return f"{result['total']} in all; --offset {result['next']} goes on" if result["next"] else ""


_NOTES: Final[dict[str, Callable[[Result], str]]] = {"search": _search_note, "items": _items_note}


def _added(result: Result) -> list[str]:
    return [str(id) for id in result["ids"]]


def _added_note(result: Result) -> str:
    count, known = len(result["ids"]), result["known"]
    stored = "stored" if count == 1 else f"{count} memories stored"
    if known:
        stored = "known already" if count == 1 else f"{stored}, {known} of them known already"
    return f"{stored} in bank {result['bank']!r}"


_NOTES["add"] = _added_note


def _forgotten(result: Result) -> list[str]:
    return [str(result["undo"])] if result["undo"] else []


def _forgotten_note(result: Result) -> str:
    bank = "" if result["bank"] == "default" else f" --bank {result['bank']}"
    count = result["items"]
    return (
        f"{count} {'memory' if count == 1 else 'memories'} forgotten; until {result['undoUntil']}"
        f" `recalld undo {result['undo']}{bank}` restores {'it' if count == 1 else 'them'}"
    )


_NOTES["forget"] = _forgotten_note


def _statistics(result: Result) -> list[str]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(result["kinds"].items()))
    sources = ", ".join(f"{name} {count}" for name, count in sorted(result["sources"].items()))
    rows = [
        ("bank", result["bank"]),
        ("entries", f"{result['items']}" + (f" ({kinds})" if kinds else "")),
        ("documents", result["documents"]),
        ("forgotten", result["forgotten"]),
        ("sessions", result["sessions"]),
        ("sources", sources or "none"),
        ("oldest", result["oldest"] or "none"),
        ("newest", result["newest"] or "none"),
        ("size", size(result["bytes"])),
        ("pending vectors", result["pendingVectors"]),
        ("model", result["model"] or "none yet"),
    ]
    return [f"{name:16}{value}" for name, value in rows]


_FORMATTERS: Final[dict[str, Callable[[Result], list[str]]]] = {
    "add": _added,
    "change": lambda result: [f"{result['id']}: changed"],
    "forget": _forgotten,
    "undo": lambda result: [f"{result['bank']}: {result['items']} brought back"],
    "statistics": _statistics,
}
