"""Import of foreign data and of exports, with a dry run."""

import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Final, Literal

import anyio
import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.api.operation import Operation, operation
from daemon.importing import detection
from daemon.importing.kinds import BY_NAME
from daemon.importing.preparing import Prepared, prepare
from daemon.importing.record import WrongKind
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments
from daemon.tools.toolkit import Toolkit

TAG: Final = "banks"
Policy = Literal["skip", "redact", "keep"]


class ImportArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file or folder on the machine of the daemon, or the text of a file.

    Without `kind` the kind is detected, for a text also by the ending of its `name`. A dry run
    reports and changes nothing.
    """

    bank: str
    path: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    name: str = ""
    kind: str | UnsetType = UNSET
    secrets: Policy = "skip"
    dry_run: bool = False


class ImportReason(Struct, frozen=True, kw_only=True):
    """Entries with the same reason: their number and the first of their ids."""

    reason: str
    count: int
    examples: list[str]


class ImportSecrets(Struct, frozen=True, kw_only=True):
    """Entries with detected secrets, by the name of the secret."""

    policy: str
    entries: int
    found: list[ImportReason]


class ImportReport(Struct, frozen=True, kw_only=True):
    """The counts of an import, with the reasons of rejected entries."""

    kind: str
    detected: bool
    path: str
    bank: str
    dry_run: bool = msgspec.field(name="dryRun")
    found: int
    imported: int
    known: int
    rejected: int
    reasons: list[ImportReason]
    secrets: ImportSecrets
    kinds: dict[str, int]
    warnings: list[str]


class ImportKind(Struct, frozen=True, kw_only=True):
    """A kind of foreign data. `places` are its usual places that exist on this machine."""

    name: str
    title: str
    places: list[str]


class ImportKinds(Struct, frozen=True, kw_only=True):
    kinds: list[ImportKind]


async def list_import_kinds(
    _toolkit: Toolkit, _arguments: NoArguments, _context: Context
) -> ImportKinds:
    """The kinds of data that can be imported, and their usual places on this machine."""
    return await anyio.to_thread.run_sync(_kinds)


async def import_memories(
    toolkit: Toolkit, arguments: ImportArguments, _context: Context
) -> ImportReport:
    """Import memories of another program, or an export. A repetition adds nothing."""
    kind = arguments.kind
    if kind is not UNSET and kind not in BY_NAME:
        raise ArgumentsRefused(f"kind: is not one of {', '.join(BY_NAME)}")
    if (arguments.path is UNSET) == (arguments.text is UNSET):
        raise ArgumentsRefused("path: give either path or text")
    directory = Path(tempfile.mkdtemp(prefix="recalld-import-"))
    try:
        prepared = await anyio.to_thread.run_sync(_prepare, arguments, directory, toolkit.now())
        done = await toolkit.engine.import_file(
            arguments.bank, prepared.file, dry_run=arguments.dry_run
        )
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(shutil.rmtree, directory, ignore_errors=True))
    report = prepared.report(
        {
            "bank": done.bank,
            "createdByType": dict(done.created_by_type),
            "knownByType": dict(done.known_by_type),
            "edited": done.is_edited,
            "dryRun": arguments.dry_run,
        }
    )
    if arguments.path is UNSET:
        report["path"] = ""
    return msgspec.convert(report, ImportReport)


def _prepare(arguments: ImportArguments, directory: Path, now: int) -> Prepared:
    field = "path" if arguments.text is UNSET else "text"
    if arguments.text is not UNSET:
        ending = Path(arguments.name).suffix
        path = directory / f"text{ending if ending[1:].isalnum() and ending.isascii() else ''}"
        path.write_bytes(arguments.text.encode("utf-8", "surrogatepass"))
    else:
        assert arguments.path is not UNSET
        if not arguments.path.strip():
            raise ArgumentsRefused("path: must not be empty")
        path = detection.absolute(arguments.path)
        if not (path.is_file() or path.is_dir()):
            raise ArgumentsRefused("path: there is no such file or folder")
    try:
        return prepare(
            path,
            None if arguments.kind is UNSET else arguments.kind,
            directory,
            bank=arguments.bank,
            policy=arguments.secrets,
            now=now,
            progress=lambda _done, _total: None,
        )
    except WrongKind as wrong:
        raise ArgumentsRefused(f"{field}: {wrong}; nothing was imported") from None
    except OSError as error:
        raise ArgumentsRefused(f"{field}: cannot be read ({error.strerror})") from None


def _kinds() -> ImportKinds:
    return ImportKinds(
        kinds=[
            ImportKind(
                name=kind.name,
                title=kind.title,
                places=[
                    str(place)
                    for place in detection.usual_places(kind, os.environ)
                    if place.exists()
                ],
            )
            for kind in BY_NAME.values()
        ]
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG, for_owner=True)
    example = {"kind": "jsonl", "text": '{"text": "We release on Fridays"}\n', "dry_run": True}
    return [
        add("GET", "/import-kinds", list_import_kinds),
        add("POST", "/banks/{bank}/import", import_memories, is_long=True, example=example),
    ]
