"""`recalld import`: brings memories of other programs into a bank.

This process reads the foreign files, which nothing else touches, and writes a private file in the
export format. The daemon, or this process if none runs, imports that file as `recalld bank import`
does. The readers and the engine are imported only when the command runs.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from daemon.commands.bank_report import pending_note
from daemon.commands.execution import LocalRunner, execute
from daemon.commands.output import print_lines
from daemon.commands.progress_bar import ProgressBar
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, OK, USAGE, Exit

if TYPE_CHECKING:
    import argparse

    from daemon.importing.record import ForeignKind

STREAM: Final = "-"
DEFAULT_BANK: Final = "default"


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    from daemon.importing.kinds import BY_NAME

    parser.description = (
        "Import memories of another program. Its files are only read. A repeated import adds"
        " nothing."
    )
    parser.epilog = f"kinds: {', '.join(BY_NAME)}"
    parser.add_argument(
        "path", metavar="PATH", nargs="?", help="file or folder; - for stdin; the usual place"
    )
    parser.add_argument(
        "--from", metavar="KIND", dest="kind", help="kind of the data; detected by default"
    )
    parser.add_argument("--bank", metavar="NAME", help="bank to import into")
    parser.add_argument(
        "--dry-run", action="store_true", help="report what would be imported; change nothing"
    )
    parser.add_argument(
        "--secrets",
        metavar="POLICY",
        default="skip",
        help="entries with a detected secret: skip (default), redact or keep",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")


def run(chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner) -> int:
    """Import, and print the report; returns the exit code."""
    from daemon.importing.secrets import POLICIES

    if chosen.secrets not in POLICIES:
        raise Exit(USAGE, f"--secrets {chosen.secrets}: is not one of {', '.join(POLICIES)}")
    name = settings.bank or DEFAULT_BANK
    if chosen.path != STREAM:
        report = _import(chosen, settings, run_locally, name)
    else:
        with tempfile.TemporaryDirectory(prefix="recalld-") as directory:
            copy = Path(directory) / "stdin"
            _copy_stdin(copy)
            from_file = SimpleNamespace(**{**vars(chosen), "path": str(copy)})
            try:
                report = _import(from_file, settings, run_locally, name)
            except Exit as exit:
                message = exit.message.replace(str(copy), "standard input")
                raise Exit(exit.code, message) from None
            report["path"] = STREAM
    from daemon.importing.report import lines

    print_lines([json.dumps(report)] if chosen.json else lines(report))
    if not chosen.json:
        sys.stderr.write(pending_note(report))
    return OK


def _copy_stdin(path: Path) -> None:
    import shutil

    try:
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"standard input: {error.strerror}") from None


def _import(
    chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner, name: str
) -> dict[str, Any]:
    from daemon.importing.preparing import prepare
    from daemon.importing.record import WrongKind

    kind, path = _resolve(chosen.kind, chosen.path)
    is_shown = sys.stderr.isatty() and not chosen.json
    reading = ProgressBar("import: reading", is_shown=is_shown, unit="entries")
    try:
        with tempfile.TemporaryDirectory(prefix="recalld-import-") as directory:
            prepared = prepare(
                path,
                None if kind is None else kind.name,
                Path(directory),
                bank=name,
                policy=chosen.secrets,
                now=time.time_ns() // 1_000_000,
                progress=reading.update,
            )
            reading.clear()
            progress = ProgressBar("import", is_shown=is_shown)
            try:
                result = _execute(prepared.file, chosen, settings, run_locally, name, progress)
            finally:
                progress.clear()
    except WrongKind as wrong:
        raise Exit(USAGE, f"{path}: {_with_flag(str(wrong))}; nothing was imported") from None
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{error.filename or path}: {error.strerror}") from None
    finally:
        reading.clear()
    return prepared.report(result)


def _with_flag(message: str) -> str:
    """A message about the kind of a file in the words of the command line."""
    return message.replace("name the kind", "name the kind with --from").replace(
        "leave out the kind", "leave out --from"
    )


def _resolve(name: str | None, path: str | None) -> "tuple[ForeignKind | None, Path]":
    """The kind and the path, from the flags or from the usual place of the kind."""
    from daemon.importing import detection
    from daemon.importing.kinds import BY_NAME

    if name is not None and name not in BY_NAME:
        raise Exit(USAGE, f"--from {name}: is not one of {', '.join(BY_NAME)}")
    kind = None if name is None else BY_NAME[name]
    if path is not None:
        given = detection.absolute(path)
        if not given.exists():
            raise Exit(USAGE, f"{given}: there is no such file or folder; nothing was imported")
        if not (given.is_file() or given.is_dir()):
            raise Exit(USAGE, f"{given}: is neither a file nor a folder; nothing was imported")
        return kind, given
    if kind is None:
        raise Exit(
            USAGE, "name a file or folder, or a kind with --from (see recalld import --help)"
        )
    place = detection.usual_place(kind, os.environ)
    if place is not None:
        return kind, place
    places = ", ".join(str(each) for each in detection.usual_places(kind, os.environ))
    looked = f"; looked at {places}" if places else ""
    raise Exit(USAGE, f"--from {kind.name}: name the file or folder to import{looked}")


def _execute(
    file: Path,
    chosen: SimpleNamespace,
    settings: Settings,
    run_locally: LocalRunner,
    name: str,
    progress: ProgressBar,
) -> dict[str, Any]:
    verb = "preview" if chosen.dry_run else "import"
    request = {"verb": verb, "bank": name, "path": str(file)}
    return execute("bank", request, settings, run_locally, progress.update)
