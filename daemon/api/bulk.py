"""Operations on many memories at once: preview, forget, move, tag, export, and one undo."""

import shutil
import tempfile
from functools import partial
from pathlib import Path
from typing import Final, Literal

import anyio
from msgspec import UNSET, Struct, UnsetType

from daemon.api.filters import FilterArguments, is_empty
from daemon.api.operation import Operation, operation
from daemon.api.views import Memory, memory_of
from daemon.importing.files import writing
from daemon.tools.authority import authorise
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit, iso
from store.model import BulkChange, Filters, Forgotten, Kind

TAG: Final = "bulk"
#: The memories that a preview shows.
SAMPLE: Final = 10
Action = Literal["forget", "move", "tag", "untag"]
Format = Literal["jsonl", "markdown", "csv"]
_SUFFIXES: Final[dict[Format, str]] = {"jsonl": "jsonl", "markdown": "md", "csv": "csv"}
_TYPES: Final[dict[Format, str]] = {
    "jsonl": "application/jsonl",
    "markdown": "text/markdown; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}


class BulkArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memories, either `ids` or `where` with at least one condition, and what to do with them.

    A move needs `to`, the name of another bank; tagging needs `tags`. A dry run changes nothing.
    """

    bank: str
    action: Action
    ids: tuple[str, ...] = ()
    where: FilterArguments | None = None
    to: str | UnsetType = UNSET
    tags: tuple[str, ...] = ()
    dry_run: bool = False


class ExportArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole bank, or the memories with these `ids`, or those that `where` selects."""

    bank: str
    format: Format = "jsonl"
    ids: tuple[str, ...] = ()
    where: FilterArguments | None = None


class BulkDone(Struct, frozen=True, kw_only=True):
    """The number of changed memories and the token of the undo; in a dry run also a sample.

    `skipped` are ids that the target of a move has already.
    """

    count: int
    sample: list[Memory]
    skipped: tuple[str, ...]
    undo: str | None
    undo_until: str | None


class ExportFile(Struct, frozen=True, kw_only=True):
    """A file to be sent to the caller and deleted; never sent as JSON."""

    path: str
    name: str
    type: str


class Selection(Struct, frozen=True, kw_only=True):
    """The memories of an operation, in the form that the engine takes."""

    ids: tuple[str, ...]
    kinds: tuple[Kind, ...]
    filters: Filters | None


def selected(ids: tuple[str, ...], where: FilterArguments | None) -> Selection:
    """The selection of a bulk change, which must not be the whole bank by accident."""
    if bool(ids) == (where is not None):
        raise ArgumentsRefused("ids: give either ids or where")
    if where is None:
        return Selection(ids=tuple(dict.fromkeys(ids)), kinds=(), filters=None)
    if is_empty(where):
        raise ArgumentsRefused("where: give at least one condition")
    return Selection(ids=(), kinds=where.kinds, filters=where.filters())


async def change_memories(toolkit: Toolkit, arguments: BulkArguments, context: Context) -> BulkDone:
    """Forget, move, tag or untag many memories, with one undo; `dry_run` shows a preview."""
    chosen = selected(arguments.ids, arguments.where)
    to = arguments.to
    if (arguments.action == "move") != (to is not UNSET):
        raise ArgumentsRefused("to: is needed to move memories, and for nothing else")
    if (arguments.action in ("tag", "untag")) != bool(arguments.tags):
        raise ArgumentsRefused("tags: are needed to tag or untag memories, and for nothing else")
    if to is not UNSET:
        authorise(context.principal, to, writes=True)
        if to == arguments.bank:
            raise ArgumentsRefused("to: must be another bank")
    if arguments.dry_run:
        return await _preview(toolkit, arguments.bank, chosen)
    engine, bank, tags = toolkit.engine, arguments.bank, arguments.tags
    tag = partial(engine.tag, ids=chosen.ids, kinds=chosen.kinds, filters=chosen.filters)
    match arguments.action:
        case "forget":
            return _done(await _forget(toolkit, bank, chosen))
        case "tag":
            return _done(await tag(bank, add=tags))
        case "untag":
            return _done(await tag(bank, remove=tags))
        case "move":
            assert to is not UNSET
            moved = await engine.move(
                bank, to, ids=chosen.ids, kinds=chosen.kinds, filters=chosen.filters
            )
            context.changed(to)
            return _done(moved)


async def export_memories(
    toolkit: Toolkit, arguments: ExportArguments, _context: Context
) -> ExportFile:
    """The memories as a file: JSON lines, Markdown or CSV."""
    whole = not arguments.ids and arguments.where is None
    chosen = Selection(ids=(), kinds=(), filters=None)
    if not whole:
        chosen = selected(arguments.ids, arguments.where)
    directory = Path(tempfile.mkdtemp(prefix="recalld-export-"))
    path = directory / "export"
    try:
        await toolkit.engine.export(
            arguments.bank, path, ids=chosen.ids, kinds=chosen.kinds, filters=chosen.filters
        )
        if arguments.format != "jsonl":
            await anyio.to_thread.run_sync(_convert, path, arguments.format)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(partial(shutil.rmtree, directory, ignore_errors=True))
        raise
    suffix = _SUFFIXES[arguments.format]
    return ExportFile(
        path=str(path), name=f"{_file_name(arguments.bank)}.{suffix}", type=_TYPES[arguments.format]
    )


def _convert(path: Path, format: Format) -> None:
    converted = path.with_suffix(".converted")
    write = writing.write_csv if format == "csv" else writing.write_markdown_stream
    with converted.open("w", encoding="utf-8", newline="") as file:
        write(writing.items(path, writing.Skipped()), file)
    converted.replace(path)


def _file_name(bank: str) -> str:
    """The name of a bank as a file name in a header: letters, digits, dots, dashes."""
    safe = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in bank)
    return safe.strip("-")[:60] or "memories"


async def _preview(toolkit: Toolkit, bank: str, chosen: Selection) -> BulkDone:
    if chosen.filters is None:
        items = [await toolkit.engine.get(bank, id) for id in chosen.ids]
        return _previewed(len(items), [memory_of(item) for item in items[:SAMPLE]])
    page = await toolkit.engine.recent(
        bank, kinds=chosen.kinds, filters=chosen.filters, limit=SAMPLE
    )
    return _previewed(page.total, [memory_of(item) for item in page.items])


def _previewed(count: int, sample: list[Memory]) -> BulkDone:
    return BulkDone(count=count, sample=sample, skipped=(), undo=None, undo_until=None)


async def _forget(toolkit: Toolkit, bank: str, chosen: Selection) -> Forgotten:
    if chosen.filters is None:
        return await toolkit.engine.forget(bank, chosen.ids)
    return await toolkit.engine.forget_where(bank, kinds=chosen.kinds, filters=chosen.filters)


def _done(changed: BulkChange | Forgotten) -> BulkDone:
    return BulkDone(
        count=changed.count,
        sample=[],
        skipped=changed.skipped if isinstance(changed, BulkChange) else (),
        undo=changed.token,
        undo_until=None if changed.token is None else iso(changed.undo_until),
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    tagging = {"where": {"sources": ["shell"]}, "action": "tag", "tags": ["old"], "dry_run": True}
    drafts = {"format": "markdown", "where": {"tags": ["draft"]}}
    return [
        add("POST", "/banks/{bank}/bulk", change_memories, destroys=True, example=tagging),
        add(
            "POST",
            "/banks/{bank}/export",
            export_memories,
            reads=True,
            has_file=True,
            example=drafts,
        ),
    ]
