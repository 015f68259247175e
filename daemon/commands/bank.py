"""`recalld bank`: manages banks, with or without a running daemon.

A command becomes a JSON request for `daemon.memory.bank_administration`, which `execution` passes
to the daemon or executes in this process. Standard library only.
"""

import json
import os
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from daemon.commands import bank_report
from daemon.commands.execution import LocalRunner, Request, execute
from daemon.commands.output import print_lines
from daemon.commands.progress_bar import ProgressBar
from daemon.config import Settings
from daemon.config.parsers import parse_size
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, UNAVAILABLE, USAGE, Exit

if TYPE_CHECKING:
    import argparse

#: The file name that means stdin or stdout.
STREAM: Final = "-"

#: Operations whose progress counts steps of different kinds: pages, rows, checks.
IN_PERCENT: Final = frozenset({"backup", "restore", "check", "rebuild"})
IRREVERSIBLE: Final = {
    "erase": (
        "Erasing leaves no copy of them in recalld's files: not in the bank, its indexes or its"
        " log; backups that hold them are deleted whole. Exports and copies made elsewhere are"
        " not affected."
    ),
    "delete": "The bank is deleted with its content and backups. Exports of it are not affected.",
}


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, about: str, *, bank: bool = True) -> "argparse.ArgumentParser":
        added = verbs.add_parser(name, help=about, description=about)
        if bank:
            added.add_argument("bank", metavar="BANK", help="name of the bank")
        added.add_argument("--json", action="store_true", help="print JSON")
        added.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")
        return added

    verb("list", "list all banks with items, size, quota and creation date", bank=False)
    verb("recover", "list banks again that are on disk but not in the catalogue", bank=False)
    create = verb("create", "create an empty bank")
    create.add_argument("--quota", metavar="SIZE", help="maximum size, such as 5GB")
    verb("rename", "rename a bank").add_argument("new", metavar="NEW", help="new name")
    quota = verb("quota", "set or remove the maximum size of a bank")
    quota.add_argument("quota", metavar="SIZE|none", help="maximum size, such as 5GB")
    delete = verb("delete", "delete a bank with its content and its backups")
    verb("backup", "create a verified backup of a bank; the last five are kept")
    verb("backups", "list the backups of a bank")
    restore = verb("restore", "replace a bank by a backup; the bank is backed up first")
    restore.add_argument("backup", metavar="BACKUP", help="name that `backups` shows")
    export = verb("export", "write a bank to a file of JSON lines")
    export.add_argument("path", metavar="FILE", help="file to create; - for stdout")
    export.add_argument("--force", action="store_true", help="replace FILE if it exists")
    import_ = verb(
        "import", "add the records of an exported file to a bank; creates the bank if necessary"
    )
    import_.add_argument("path", metavar="FILE", help="exported file; - for stdin")
    forget = verb("forget", "hide items; can be undone for a day")
    undo = verb("undo", "restore forgotten items")
    undo.add_argument("undo", metavar="TOKEN", help="token that `forget` printed")
    erase = verb("erase", "delete items or documents and every copy in recalld's files")
    for command in (forget, erase):
        command.add_argument("ids", metavar="ID", nargs="+", help="id of an item; - for stdin")
    for command in (erase, delete):
        command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    check = verb("check", "verify every row, word and vector; exit code 1 when there are problems")
    check.add_argument("--repair", action="store_true", help="repair problems, then check again")
    move = verb("move", "copy a bank to another store and verify the copy", bank=False)
    move.add_argument("bank", metavar="BANK", nargs="?", help="name of the bank")
    move.add_argument(
        "--to", metavar="URL", required=True, help="postgresql://… or a data directory"
    )
    move.add_argument("--all", action="store_true", dest="is_all", help="copy every bank")
    verb("index", "compute the pending vectors now and wait for them")
    verb("rebuild", "rebuild the word index and the vectors from the rows")


def run(chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner) -> int:
    """Run one command and print its result; returns the exit code."""
    if vars(chosen).get("path") == STREAM:
        return _run_with_stream(chosen, settings, run_locally)
    result = _run(chosen, settings, run_locally)
    if result is None:
        sys.stderr.write("recalld: nothing was changed\n")
        return DEGRADED
    return _print_result(chosen, settings, result)


def _run_with_stream(chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner) -> int:
    """Run an export to stdout or an import from stdin, by way of a private temporary file.

    The daemon reads and writes files only; it has no access to the streams of this process.
    """
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="recalld-") as directory:
        path = Path(directory) / "bank.jsonl"
        in_file = SimpleNamespace(**{**vars(chosen), "path": str(path)})
        name = "standard output" if chosen.verb == "export" else "standard input"
        try:
            if chosen.verb == "import":
                with path.open("wb") as file:
                    shutil.copyfileobj(sys.stdin.buffer, file)
            result = _run(in_file, settings, run_locally) or {}
            if chosen.verb == "export":
                with path.open("rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.flush()
                return OK
        except BrokenPipeError:
            # The reader has enough. Flushing again at exit must not fail.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return OK
        except OSError as error:
            raise Exit(CANNOT_CREATE, f"{name}: {error.strerror}") from None
        except Exit as exit:
            raise Exit(exit.code, exit.message.replace(str(path), name)) from None
    return _print_result(chosen, settings, result)


def _run(
    chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner
) -> dict[str, Any] | None:
    """Return the result of a command; None when the user did not confirm it."""
    request = _build_request(chosen, settings)
    if chosen.verb in IRREVERSIBLE and not chosen.yes and not _is_confirmed(request):
        return None
    progress = ProgressBar(
        chosen.verb,
        is_shown=sys.stderr.isatty() and not chosen.json,
        in_percent=chosen.verb in IN_PERCENT,
    )
    try:
        result = execute("bank", request, settings, run_locally, progress.update)
    finally:
        progress.clear()
    if chosen.verb == "export":
        check_visible(request["path"], settings)
    return result


def _print_result(chosen: SimpleNamespace, settings: Settings, result: dict[str, Any]) -> int:
    try:
        lines = bank_report.lines(chosen.verb, result)
    except (KeyError, TypeError):
        message = f"the daemon at {settings.socket} does not answer as recalld does"
        raise Exit(UNAVAILABLE, message) from None
    print_lines([json.dumps(result)] if chosen.json else lines)
    if chosen.verb in ("import", "rebuild") and not chosen.json:
        sys.stderr.write(bank_report.pending_note(result))
    return DEGRADED if result.get("problems") or result.get("refused") else OK


# --- the request -----------------------------------------------------------------------------


def _build_request(chosen: SimpleNamespace, settings: Settings) -> Request:
    given: dict[str, Any] = vars(chosen)
    fields = ("verb", "bank", "new", "quota", "backup", "path", "undo", "ids", "repair", "to")
    request = {name: given[name] for name in fields if given.get(name) is not None}
    if chosen.verb == "move":
        request |= _move(given)
    if "quota" in request:
        request["quota"] = _quota(request["quota"])
    if "path" in request:
        # A relative path is relative to this process, not to the daemon.
        path = Path(os.path.abspath(request["path"]))  # noqa: PTH100  (without following links)
        check = check_target if chosen.verb == "export" else _check_source
        check(path, settings, is_forced=given.get("force", False))
        request["path"] = str(path)
    if request.get("ids") == [STREAM]:
        request["ids"] = sys.stdin.buffer.read().decode(errors="replace").split()
        if not request["ids"]:
            raise Exit(USAGE, "stdin: contains no id")
    return request


def _move(given: dict[str, Any]) -> Request:
    if bool(given["is_all"]) == bool(given.get("bank")):
        raise Exit(USAGE, "name one bank, or all of them with --all")
    address: str = given["to"]
    if "://" not in address:
        # A relative path is relative to this process, not to the daemon.
        address = os.path.abspath(os.path.expanduser(address))  # noqa: PTH100, PTH111
    elif not address.startswith(("postgresql://", "postgres://", "file:///")):
        raise Exit(USAGE, "--to must be postgresql://… or a data directory")
    return {"to": address, "is_all": given["is_all"]}


def _quota(text: str) -> int | None:
    if text == "none":
        return None
    size = parse_size(text)
    if size is None or not 0 < size < 2**63:
        raise Exit(USAGE, f"{text!r} is not a size; use bytes, 500MB, 5GB, 2GiB or none")
    return size


def check_target(path: Path, settings: Settings, *, is_forced: bool) -> None:
    data = settings.directories.data.resolve()
    if path.is_dir():
        raise Exit(USAGE, f"{path}: is a directory; name a file in it")
    if path.parent.resolve().is_relative_to(data):
        raise Exit(USAGE, f"{path}: is among recalld's own files; choose another directory")
    if not path.parent.is_dir():
        raise Exit(CANNOT_CREATE, f"{path}: there is no directory {path.parent}")
    if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
        raise Exit(USAGE, f"{path}: is not a regular file; choose another name")
    if os.path.lexists(path) and not is_forced:
        raise Exit(USAGE, f"{path}: exists already; --force replaces it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Exit(CANNOT_CREATE, f"{path}: {path.parent} may not be written")


def _check_source(path: Path, _settings: Settings, *, is_forced: bool) -> None:
    try:
        if not path.is_file():
            missing = "is not a file" if path.exists() else "there is no such file"
            raise Exit(USAGE, f"{path}: {missing}; name one that `recalld bank export` wrote")
        path.open("rb").close()
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None


def check_visible(path: str, settings: Settings) -> None:
    """Fail if the daemon wrote a file that this process cannot see, as in a container."""
    if not Path(path).is_file():
        raise Exit(
            CANNOT_CREATE,
            f"{path}: the daemon at {settings.socket} wrote it where this process cannot see it;"
            " name a file that both see, or stop the daemon first",
        )


def _is_confirmed(request: Request) -> bool:
    verb = request["verb"]
    if not sys.stdin.isatty():
        raise Exit(
            USAGE,
            f"{verb} cannot be undone; confirm it with --yes, because stdin is not a terminal",
        )
    count = len(request.get("ids", ()))
    things = f"{count} thing{'s' * (count != 1)} in " if count else ""
    question = f"{verb.capitalize()} {things}bank {request['bank']!r} for good? [y/N] "
    sys.stderr.write(f"{IRREVERSIBLE[verb]}\n{question}")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
