"""`recalld export`: writes a bank as JSON lines, Markdown or CSV.

The daemon, or this process if none runs, writes JSON lines to a private file. This process converts
it and moves it into place, so an export appears whole or not at all. Only a regular file is ever
replaced, and only with --force.
"""

import json
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, TextIO

from daemon.commands import bank
from daemon.commands.execution import LocalRunner, execute
from daemon.commands.output import print_lines
from daemon.commands.progress_bar import ProgressBar
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, OK, USAGE, Exit

if TYPE_CHECKING:
    import argparse

STREAM: Final = "-"
DEFAULT_BANK: Final = "default"
FORMATS: Final = ("jsonl", "markdown", "csv")
SPLITS: Final = ("memory", "day")
_SUFFIXES: Final = {".csv": "csv", ".jsonl": "jsonl", ".json": "jsonl", ".md": "markdown"}


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    parser.description = "Write a bank as JSON lines, Markdown or CSV."
    parser.add_argument(
        "path", metavar="PATH", nargs="?", default=STREAM,
        help="file to create, or a folder for Markdown; - (default) for stdout",
    )  # fmt: skip
    parser.add_argument("--bank", metavar="NAME", help="bank to export")
    parser.add_argument(
        "--format", metavar="FORMAT", help="jsonl, markdown or csv; by default from the file name"
    )
    parser.add_argument(
        "--by", metavar="UNIT", default="memory", help="Markdown files: one per memory or day"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing regular file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")


def run(chosen: SimpleNamespace, settings: Settings, run_locally: LocalRunner) -> int:
    """Export, and print the result; returns the exit code."""
    format = _format(chosen)
    if chosen.by not in SPLITS:
        raise Exit(USAGE, f"--by {chosen.by}: is not one of {', '.join(SPLITS)}")
    is_stream = chosen.path == STREAM
    if is_stream and chosen.json:
        raise Exit(USAGE, "--json: name a file, because stdout is the export itself")
    target = Path(os.path.abspath(chosen.path))  # noqa: PTH100  (without following links)
    is_folder = format == "markdown" and not is_stream
    if not is_stream:
        check = _check_folder if is_folder else bank.check_target
        check(target, settings, is_forced=chosen.force)
    name = settings.bank or DEFAULT_BANK
    progress = ProgressBar("export", is_shown=sys.stderr.isatty() and not chosen.json)
    with tempfile.TemporaryDirectory(prefix="recalld-export-") as directory:
        exported = Path(directory) / "bank.jsonl"
        try:
            request = {"verb": "export", "bank": name, "path": str(exported)}
            execute("bank", request, settings, run_locally, progress.update)
            bank.check_visible(str(exported), settings)
        finally:
            progress.clear()
        if is_stream:
            return _to_stdout(exported, format)
        result: dict[str, Any] = {"bank": name, "path": str(target), "format": format}
        try:
            if is_folder:
                result |= _to_folder(exported, target, chosen.by)
            else:
                result |= _to_file(exported, target, format)
        except OSError as error:
            raise Exit(CANNOT_CREATE, f"{error.filename or target}: {error.strerror}") from None
    print_lines([json.dumps(result)] if chosen.json else [_line(result)])
    return OK


def _format(chosen: SimpleNamespace) -> str:
    if chosen.format is None:
        path = Path(chosen.path)
        if path.is_dir() or chosen.path.endswith("/"):
            return "markdown"
        return _SUFFIXES.get(path.suffix.lower(), "jsonl")
    if chosen.format not in FORMATS:
        raise Exit(USAGE, f"--format {chosen.format}: is not one of {', '.join(FORMATS)}")
    return str(chosen.format)


def _check_folder(path: Path, settings: Settings, *, is_forced: bool) -> None:
    data = settings.directories.data.resolve()
    if path.resolve().is_relative_to(data):
        raise Exit(USAGE, f"{path}: is among recalld's own files; choose another directory")
    if not path.parent.is_dir():
        raise Exit(CANNOT_CREATE, f"{path}: there is no directory {path.parent}")
    if not os.path.lexists(path):
        return
    if not path.is_dir():
        raise Exit(USAGE, f"{path}: is not a folder; Markdown is written to a folder")
    if any(path.iterdir()) and not is_forced:
        raise Exit(USAGE, f"{path}: is not empty; --force replaces the files of the same names")


def _to_stdout(exported: Path, format: str) -> int:
    try:
        if format == "jsonl":
            with exported.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
            return OK
        sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr]
        _convert(exported, sys.stdout, format)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has enough. Flushing again at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"standard output: {error.strerror}") from None
    return OK


def _convert(exported: Path, file: TextIO, format: str) -> dict[str, int]:
    from daemon.importing.files import writing

    skipped = writing.Skipped()
    write: Callable[[Any, TextIO], int] = (
        writing.write_csv if format == "csv" else writing.write_markdown_stream
    )
    count = write(writing.items(exported, skipped), file)
    return {"items": count, "leftOut": skipped.records}


def _to_file(exported: Path, target: Path, format: str) -> dict[str, int]:
    """Move a finished file into place."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.")
    try:
        if format == "jsonl":
            with os.fdopen(descriptor, "wb") as file, exported.open("rb") as source:
                shutil.copyfileobj(source, file)
                _sync(file.fileno(), file.flush)
            with exported.open("rb") as source:
                counts = {"records": sum(1 for _ in source) - 2}
        else:
            with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as text:
                counts = _convert(exported, text, format)
                _sync(text.fileno(), text.flush)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return counts


def _sync(descriptor: int, flush: Callable[[], None]) -> None:
    flush()
    os.fsync(descriptor)


def _to_folder(exported: Path, target: Path, split: str) -> dict[str, int]:
    """Write the files to a new folder beside the target, then move them into place."""
    from daemon.importing.files import writing

    skipped = writing.Skipped()
    made = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name[:100]}."))
    try:
        records = writing.items(exported, skipped)
        count = writing.write_markdown(records, made, split)  # type: ignore[arg-type]
        if not os.path.lexists(target):
            made.rename(target)
        else:
            for file in sorted(made.iterdir()):
                place = target / file.name
                if os.path.lexists(place) and not stat.S_ISREG(place.lstat().st_mode):
                    raise Exit(USAGE, f"{place}: is not a regular file; it was not replaced")
                file.replace(place)
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return {"items": count, "leftOut": skipped.records}


def _line(result: dict[str, Any]) -> str:
    if "records" in result:
        return f"{result['bank']}: {result['records']} records in {result['path']}"
    left = result["leftOut"]
    more = f"; {left} other records are only in a JSON lines export" if left else ""
    return f"{result['bank']}: {result['items']} items in {result['path']}{more}"
