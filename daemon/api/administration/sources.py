"""Document sources: list, add, remove and sync. They are for the owner."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
import structlog
from anyio.abc import TaskGroup
from msgspec import Struct

from daemon.api.operation import Operation, operation
from daemon.exit_codes import LOCKED, UNAVAILABLE, Exit
from daemon.sources import administration as verbs
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.reporting import followed
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.state import FileProblem, RunProgress
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused, Conflict
from daemon.tools.specification import NoArguments
from store.errors import NotFound, StoreError

TAG: Final = "sources"

log: Final = structlog.get_logger()


class SyncCounts(Struct, frozen=True, kw_only=True):
    """The outcome of a run. Withheld deletions are applied with `allow_deletions`."""

    files: int
    added: int
    changed: int
    moved: int
    deleted: int
    unchanged: int
    skipped: int
    failed: int
    withheld_deletions: int
    withheld_reason: str
    complete: bool
    seconds: float
    problems: list[FileProblem]
    changes: list[str]


class SyncProgress(Struct, frozen=True, kw_only=True):
    """The phase of a running sync, with its finished steps and their total (0 if unknown)."""

    phase: str
    done: int
    total: int


class SourceView(Struct, frozen=True, kw_only=True):
    """A source of documents."""

    name: str
    kind: str
    place: str
    bank: str
    configured: bool
    healthy: bool
    watch: bool
    in_config_file: bool
    last_sync: str | None
    last_run: str | None
    last_error: str | None
    withheld_deletions: int
    running: SyncProgress | None
    outcome: SyncCounts | None


class SourceList(Struct, frozen=True, kw_only=True):
    sources: list[SourceView]


class SourceArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str


class NewSourceArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source as in the configuration file; docs/sources.md describes `definition`."""

    name: str
    definition: dict[str, Any]


class RemoveSourceArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """With `keep`, the documents of the source stay in their bank."""

    name: str
    keep: bool = False


class SyncArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dry run compares only, and returns its outcome when it is done."""

    name: str
    full: bool = False
    allow_deletions: bool = False
    dry_run: bool = False


class SourceRemoved(Struct, frozen=True, kw_only=True):
    name: str
    removed: bool
    documents_deleted: int


class SyncStarted(Struct, frozen=True, kw_only=True):
    """A sync that goes on in the background, or the outcome of a dry run."""

    name: str
    started: bool
    outcome: SyncCounts | None = None


class SyncCancelled(Struct, frozen=True, kw_only=True):
    name: str
    cancelled: bool


#: Called with the name of a source, its progress, and whether its run goes on.
Following = Callable[[str, RunProgress, bool], None]


class SourceService:
    """The sources of a daemon, and the task group in which their syncs run."""

    def __init__(self, sources: Sources, tasks: TaskGroup, following: Following) -> None:
        self.sources = sources
        self._tasks = tasks
        self._following = following

    async def perform(self, verb: verbs.AnyVerb) -> dict[str, Any]:
        try:
            return await verbs.perform(verb, self.sources, lambda _progress: None)
        except Exit as exit:
            raise _failure(exit, verb) from None

    def start(self, name: str, options: RunOptions) -> None:
        self._tasks.start_soon(self._run, name, options)

    async def _run(self, name: str, options: RunOptions) -> None:
        """A sync in the background; the source remembers its outcome and its error."""
        seen = [RunProgress()]

        def show(_done: int, _total: int, _message: str) -> None:
            self._following(name, seen[-1], True)

        try:
            async with followed(show) as follow:

                def begin(progress: RunProgress) -> None:
                    seen.append(progress)
                    follow(progress)

                await self.sources.sync(name, options, progress=begin)
        except (Exit, StoreError) as failure:
            log.info("source.sync.ended", source=name, reason=type(failure).__name__)
        finally:
            self._following(name, seen[-1], False)


async def list_sources(
    service: SourceService, _arguments: NoArguments, _context: Context
) -> SourceList:
    """The sources with their state and their last outcome."""
    return msgspec.convert(await service.perform(verbs.List()), SourceList)


async def get_source(
    service: SourceService, arguments: SourceArguments, _context: Context
) -> SourceView:
    """A source with its state and its last outcome."""
    return msgspec.convert(await service.perform(verbs.Show(name=arguments.name)), SourceView)


async def add_source(
    service: SourceService, arguments: NewSourceArguments, _context: Context
) -> SourceView:
    """Add a source. Its first sync is started separately."""
    verb = verbs.Add(name=arguments.name, definition=arguments.definition)
    return msgspec.convert(await service.perform(verb), SourceView)


async def remove_source(
    service: SourceService, arguments: RemoveSourceArguments, _context: Context
) -> SourceRemoved:
    """Remove a source and, without `keep`, its documents."""
    verb = verbs.Remove(name=arguments.name, keep=arguments.keep)
    return msgspec.convert(await service.perform(verb), SourceRemoved)


async def sync_source(
    service: SourceService, arguments: SyncArguments, _context: Context
) -> SyncStarted:
    """Start a sync. `GET /events` reports its progress, `get_source` its outcome."""
    name, sources = arguments.name, service.sources
    _require(sources, name)
    if sources.is_running(name):
        raise Conflict(f"a sync of source {name!r} is running")
    if arguments.dry_run:
        verb = verbs.Sync(
            name=name, dry_run=True, full=arguments.full, allow_deletions=arguments.allow_deletions
        )
        done = await service.perform(verb)
        return SyncStarted(
            name=name, started=False, outcome=msgspec.convert(done, SyncCounts, strict=False)
        )
    service.start(name, RunOptions(full=arguments.full, allow_deletions=arguments.allow_deletions))
    return SyncStarted(name=name, started=True)


async def cancel_sync(
    service: SourceService, arguments: SourceArguments, _context: Context
) -> SyncCancelled:
    """Cancel the running sync of a source. Batches that are written stay."""
    return msgspec.convert(await service.perform(verbs.Cancel(name=arguments.name)), SyncCancelled)


def _require(sources: Sources, name: str) -> None:
    if name not in sources.definitions():
        raise NotFound("source", name)


def _failure(exit: Exit, verb: verbs.AnyVerb) -> Exception:
    """The error of a refused verb, as a tool reports it."""
    if "there is no source" in exit.message:
        return NotFound("source", getattr(verb, "name", ""))
    # A source that cannot be read now is a conflict with the state of its folder or server.
    if exit.code in (LOCKED, UNAVAILABLE) or "exists already" in exit.message:
        return Conflict(exit.message)
    return ArgumentsRefused(exit.message)


def operations(service: SourceService) -> list[Operation]:
    add = partial(operation, service=service, tag=TAG, for_owner=True)
    one, sync = "/sources/{name}", "/sources/{name}/sync"
    new = {"name": "notes", "definition": {"kind": "filesystem", "root": "~/notes"}}
    return [
        add("GET", "/sources", list_sources),
        add("POST", "/sources", add_source, status=201, example=new),
        add("GET", one, get_source),
        add("DELETE", one, remove_source),
        add("POST", sync, sync_source, idempotent=True, example={"full": True}),
        add("DELETE", sync, cancel_sync, destroys=False),
    ]
