"""`recalld source`: manages document sources, with or without a running daemon.

A command becomes a JSON request for `daemon.sources.administration`, which `execution` passes to
the daemon or executes in this process. Standard library only.
"""

import json
import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from daemon.commands import source_report
from daemon.commands.execution import LocalRunner, Request, execute
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import DEGRADED, OK, UNAVAILABLE, USAGE, Exit

if TYPE_CHECKING:
    import argparse

#: Options of `source add` that become keys of the definition.
_KEYS: Final = ("kind", "root", "url", "branch", "path", "endpoint", "region", "bank", "interval")


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, about: str, *, named: bool = True) -> "argparse.ArgumentParser":
        added = verbs.add_parser(name, help=about, description=about)
        if named:
            added.add_argument("name", metavar="NAME", help="name of the source")
        added.add_argument("--json", action="store_true", help="print JSON")
        added.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")
        return added

    add = verb("add", "add a source; its files are indexed by the next sync")
    add.add_argument("place", metavar="FOLDER|URL", nargs="?", help="folder, repository or bucket")
    add.add_argument(
        "--kind", choices=("filesystem", "git", "s3", "script"), help="kind of the source"
    )
    for key in _KEYS[1:]:
        kind = int if key == "interval" else str
        add.add_argument(f"--{key}", type=kind, help=f"`{key}` of the definition")
    add.add_argument("--include", action="append", metavar="PATTERN", help="files to index")
    add.add_argument("--exclude", action="append", metavar="PATTERN", help="files to leave out")
    add.add_argument("--watch", action="store_true", help="keep the index up to date")
    add.add_argument("--follow-symlinks", action="store_true", help="follow links out of the root")
    verb("list", "list the sources with their state", named=False)
    verb("show", "show one source, the outcome of its last run and problems with files")
    sync = verb("sync", "compare a source with the index and apply the differences")
    sync.add_argument("--dry-run", action="store_true", help="list the changes, apply none")
    sync.add_argument("--full", action="store_true", help="read every file, also unchanged ones")
    sync.add_argument(
        "--allow-deletions",
        action="store_true",
        help="apply deletions that the last sync withheld, up to the number it reported",
    )
    sync.add_argument("--no-vectors", action="store_true", help="leave the vectors for later")
    sync.add_argument(
        "--progress", choices=("auto", "json", "none"), default="auto", help="form of progress"
    )
    for name, which in (("since", "at or after"), ("until", "at or before")):
        sync.add_argument(
            f"--{name}", type=moment, metavar="TIME", help=f"only files changed {which} TIME"
        )
    sync.add_argument("--limit", type=int, metavar="N", help="at most N changed files")
    verb("cancel", "cancel the running sync of a source")
    watch = verb("watch", "keep a source up to date while the daemon runs")
    watch.add_argument("--off", action="store_true", help="stop watching it")
    verb("test", "check that a source can be read; changes nothing")
    remove = verb("remove", "remove a source and its documents from the index")
    remove.add_argument("--keep", action="store_true", help="keep the documents")


def moment(text: str) -> int:
    """A date or time such as 2026-11-16 or 2026-11-16T10:30:00Z, as unix milliseconds."""
    from datetime import UTC, datetime

    found = datetime.fromisoformat(text)  # a ValueError becomes a usage error
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def run(chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner) -> int:
    """Run one command and print its result; returns the exit code."""
    request = _build_request(chosen)
    line = source_report.SyncLine(_form(chosen))
    try:
        result = execute("source", request, settings, run_locally, line.update)
    finally:
        line.clear()
    try:
        lines = source_report.lines(chosen.verb, result)
    except (KeyError, TypeError):
        message = f"the daemon at {settings.socket} does not answer as recalld does"
        raise Exit(UNAVAILABLE, message) from None
    print_lines([json.dumps(result)] if chosen.json else lines)
    is_partial = chosen.verb == "sync" and (
        result["failed"] or not result["complete"] or result["withheld_deletions"]
    )
    return DEGRADED if is_partial else OK


def _form(chosen: SimpleNamespace) -> str:
    form = getattr(chosen, "progress", "auto")
    if form == "auto":
        return "line" if sys.stderr.isatty() and not chosen.json else "none"
    return str(form)


def _build_request(chosen: SimpleNamespace) -> Request:
    given: dict[str, Any] = vars(chosen)
    request: Request = {"verb": chosen.verb}
    if given.get("name") is not None:
        request["name"] = given["name"]
    match chosen.verb:
        case "add":
            request["definition"] = _definition(chosen)
        case "sync":
            for name in ("dry_run", "full", "allow_deletions"):
                request[name] = given[name]
            request["vectors"] = not given["no_vectors"]
            for name in ("since", "until", "limit"):
                if given.get(name) is not None:
                    request[name] = given[name]
        case "watch":
            request["off"] = given["off"]
        case "remove":
            request["keep"] = given["keep"]
        case _:
            pass
    return request


def _definition(chosen: SimpleNamespace) -> dict[str, Any]:
    """The definition that the options describe; the daemon checks it."""
    given: dict[str, Any] = vars(chosen)
    definition = {key: given[key] for key in _KEYS if given.get(key) is not None}
    place: str | None = given["place"]
    kind = definition["kind"] = definition.get("kind") or _guess(place)
    if place is not None:
        key = {"filesystem": "root", "script": "path"}.get(kind, "url")
        if key in definition:
            raise Exit(USAGE, f"the place is given twice: as an argument and as --{key}")
        definition[key] = place
    for key in ("root", "path"):
        if key in definition and kind in ("filesystem", "script"):
            # A relative path is relative to this process, not to the daemon.
            definition[key] = os.path.abspath(os.path.expanduser(definition[key]))  # noqa: PTH100, PTH111
    for key in ("include", "exclude"):
        if given.get(key):
            definition[key] = given[key]
    for key in ("watch", "follow_symlinks"):
        if given.get(key):
            definition[key] = True
    return definition


def _guess(place: str | None) -> str:
    if place is None:
        raise Exit(USAGE, "name the folder, the repository or the bucket, or use --kind")
    if place.startswith("s3://"):
        return "s3"
    is_remote = "://" in place or place.endswith(".git") or place.startswith("git@")
    return "git" if is_remote else "script" if place.endswith(".lua") else "filesystem"
