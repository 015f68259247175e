"""Output of `recalld source` for people: result lines and a progress line.

Results are the same objects that `--json` prints. Standard library only.
"""

import json
import sys
import time
from typing import Any

from daemon.commands.progress_bar import StatusLine

Result = dict[str, Any]


class SyncLine:
    """Progress of a sync: a line with rate and remaining time, JSON lines, or nothing."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._line = StatusLine()
        self._phase = ""
        self._began = 0.0
        self._first = 0

    def update(self, done: int, total: int, message: str) -> None:
        """Show the latest counts; `message` is such as `12 of 2400 files read`."""
        if self._form == "json":
            report = {"done": done, "total": total, "message": message}
            sys.stderr.write(json.dumps(report) + "\n")
            sys.stderr.flush()
        elif self._form == "line":
            self._line.show(f"{message}{self._rate(done, total, message)}")

    def clear(self) -> None:
        self._line.clear()

    def _rate(self, done: int, total: int, message: str) -> str:
        """The rate since the phase began, and the time that the rest will take."""
        now, phase = time.monotonic(), message.lstrip("0123456789 of")
        if phase != self._phase:
            self._phase, self._began, self._first = phase, now, done
        seconds = now - self._began
        if seconds < 1 or done <= self._first:
            return ""
        rate = (done - self._first) / seconds
        rest = f", {_duration((total - done) / rate)} left" if total > done else ""
        return f" ({rate:.0f}/s{rest})"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def lines(verb: str, result: Result) -> list[str]:
    """Return the lines that describe the result of a command."""
    match verb:
        case "list":
            return _list(result)
        case "add" | "show" | "watch":
            return _show(result)
        case "sync":
            return _sync(result)
        case "test":
            note = "" if result["complete"] else "; some parts could not be listed"
            return [f"{result['name']}: can be read; {result['files']} files{note}"]
        case "cancel":
            done = "its sync was cancelled" if result["cancelled"] else "no sync is running"
            return [f"{result['name']}: {done}"]
        case _:
            return [f"{result['name']}: removed; {result['documents_deleted']} documents deleted"]


def _list(result: Result) -> list[str]:
    if not result["sources"]:
        return ["there are no sources; `recalld source add NAME FOLDER` adds one"]
    found: list[str] = []
    for source in result["sources"]:
        state = "healthy" if source["healthy"] else f"not healthy: {source['last_error']}"
        watched = ", watched" if source["watch"] else ""
        synced = source["last_sync"] or "never"
        found.append(
            f"{source['name']}  {source['kind']}  {source['place']}  bank {source['bank']}"
            f"  last sync {synced}  {state}{watched}{_running(source)}"
        )
    return found


def _running(source: Result) -> str:
    run = source["running"]
    return f", {run['phase']} {run['done']} of {run['total'] or '?'}" if run else ""


def _show(source: Result) -> list[str]:
    found = [f"{name}: {source[name]}" for name in ("name", "kind", "place", "bank", "healthy")]
    found += [
        f"watch: {source['watch']}",
        f"last sync: {source['last_sync'] or 'never'}{_running(source)}",
    ]
    if source["last_error"]:
        found.append(f"last error: {source['last_error']}")
    if source["outcome"]:
        found += _counts(source["outcome"])
    return found


def _sync(result: Result) -> list[str]:
    would = "dry run: nothing was changed; it would be: " if result["dry_run"] else ""
    first, *rest = _counts(result)
    return [f"{result['name']}: {would}{first}", *rest, *result["changes"][: _shown(result)]]


def _shown(result: Result) -> int:
    """Changes are listed by a dry run only."""
    return len(result["changes"]) if result["dry_run"] else 0


def _counts(result: Result) -> list[str]:
    names = ("added", "changed", "moved", "deleted", "unchanged", "skipped", "failed")
    counted = ", ".join(f"{result[name]} {name}" for name in names)
    found = [f"{result['files']} files: {counted} ({result['seconds']:.1f} s)"]
    if not result["complete"]:
        found.append("the source could not be listed completely, so nothing was deleted")
    if result["withheld_deletions"]:
        found.append(
            f"{result['withheld_deletions']} deletions were withheld: {result['withheld_reason']};"
            " `--allow-deletions` applies them"
        )
    found += [f"  {each['source_id']}: {each['reason']}" for each in result["problems"]]
    return found
