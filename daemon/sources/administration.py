"""The verbs of `recalld source`, as values that perform themselves.

The command line sends them over the daemon's socket, or performs them in its own process; REST
performs them for the owner. No dialect reaches them, so no agent can add or change a source.
"""

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final

import structlog
from anyio.abc import TaskGroup
from msgspec import Meta, Struct, to_builtins

from daemon.exit_codes import LOCKED, Exit
from daemon.sources.definition import Definition
from daemon.sources.sync.keeper import Sources, SourceStatus
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.state import Outcome, RunProgress
from daemon.tools.toolkit import iso
from store.errors import StoreError

log: Final = structlog.get_logger()

#: The result of a verb: plain JSON, as `--json` prints it.
Done = dict[str, Any]
#: Receives the progress of a run, which changes while the run goes on.
Following = Callable[[RunProgress], None]


class Verb(Struct, frozen=True, kw_only=True, tag_field="verb", tag=str.lower):
    """One operation on a source, or on all of them."""

    async def run(self, sources: Sources, following: Following) -> Done:
        raise NotImplementedError


class List(Verb, frozen=True, kw_only=True):
    async def run(self, sources: Sources, following: Following) -> Done:
        return {"sources": [describe(status) for status in await sources.statuses()]}


class Show(Verb, frozen=True, kw_only=True):
    name: str

    async def run(self, sources: Sources, following: Following) -> Done:
        return describe(await sources.status(self.name, sources.find(self.name)))


class Add(Verb, frozen=True, kw_only=True):
    name: str
    definition: dict[str, Any]

    async def run(self, sources: Sources, following: Following) -> Done:
        definition = await sources.add(self.name, self.definition)
        return describe(await sources.status(self.name, definition))


class Remove(Verb, frozen=True, kw_only=True):
    name: str
    keep: bool = False

    async def run(self, sources: Sources, following: Following) -> Done:
        count = await sources.remove(self.name, keep_documents=self.keep)
        return {"name": self.name, "removed": True, "documents_deleted": count}


class Sync(Verb, frozen=True, kw_only=True):
    name: str
    dry_run: bool = False
    full: bool = False
    allow_deletions: bool = False
    vectors: bool = True
    # Unix milliseconds: only files that were changed between them.
    since: int | None = None
    until: int | None = None
    limit: Annotated[int, Meta(ge=0)] = 0

    async def run(self, sources: Sources, following: Following) -> Done:
        options = RunOptions(
            full=self.full,
            dry_run=self.dry_run,
            allow_deletions=self.allow_deletions,
            since=self.since,
            until=self.until,
            limit=self.limit,
        )
        outcome = await sources.sync(
            self.name, options, progress=following, with_vectors=self.vectors
        )
        return {"name": self.name, "dry_run": self.dry_run, **counts(outcome)}


class Cancel(Verb, frozen=True, kw_only=True):
    name: str

    async def run(self, sources: Sources, following: Following) -> Done:
        sources.find(self.name)
        return {"name": self.name, "cancelled": sources.cancel(self.name)}


class Watch(Verb, frozen=True, kw_only=True):
    name: str
    off: bool = False

    async def run(self, sources: Sources, following: Following) -> Done:
        definition = await sources.set_watch(self.name, is_on=not self.off)
        return describe(await sources.status(self.name, definition))


class Test(Verb, frozen=True, kw_only=True):
    __test__: ClassVar[bool] = False  # the name is not a test's
    name: str

    async def run(self, sources: Sources, following: Following) -> Done:
        return {"name": self.name, **await sources.test(self.name)}


AnyVerb = List | Show | Add | Remove | Sync | Cancel | Watch | Test


async def perform(verb: AnyVerb, sources: Sources, following: Following) -> Done:
    """Perform a verb with the definitions that the configuration file has now."""
    await sources.refresh()
    return await verb.run(sources, following)


def start_sync(sources: Sources, tasks: TaskGroup, name: str, options: RunOptions) -> None:
    """Start a sync in the background; `Exit` if the source is unknown or its sync is running.

    The source remembers the outcome and the error; `Show` returns them, and the progress.
    """
    sources.find(name)
    if sources.is_running(name):
        raise Exit(LOCKED, f"a sync of source {name!r} is running; wait for it, or cancel it")
    tasks.start_soon(_run, sources, name, options)


async def _run(sources: Sources, name: str, options: RunOptions) -> None:
    try:
        await sources.sync(name, options)
    except (Exit, StoreError) as failure:
        log.info("source.sync.ended", source=name, reason=type(failure).__name__)


def describe(status: SourceStatus) -> Done:
    """A source as JSON, for the owner."""
    state, definition = status.state, status.definition
    shown: Done = {
        "name": definition.name,
        "kind": definition.kind,
        "place": _place(definition),
        "bank": status.bank,
        "configured": True,
        "healthy": status.is_healthy,
        "watch": definition.watch,
        "in_config_file": definition.is_from_file,
        "last_sync": _moment(state.last_sync),
        "last_run": _moment(state.last_run),
        "last_error": status.error,
        "withheld_deletions": state.withheld,
        "running": None,
        "outcome": counts(state.outcome) if state.outcome else None,
    }
    if status.running is not None:
        shown["running"] = {
            "phase": status.running.phase,
            "done": status.running.done,
            "total": status.running.total,
        }
    return shown


def counts(outcome: Outcome) -> Done:
    return {
        "files": outcome.files,
        "added": outcome.added,
        "changed": outcome.changed,
        "moved": outcome.moved,
        "deleted": outcome.deleted,
        "unchanged": outcome.unchanged,
        "skipped": outcome.skipped,
        "failed": outcome.failed,
        "postponed": outcome.postponed,
        "withheld_deletions": outcome.withheld,
        "withheld_reason": outcome.withheld_reason,
        "complete": outcome.is_complete,
        "seconds": outcome.seconds,
        "problems": to_builtins(outcome.problems),
        "changes": outcome.changes,
    }


def _moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso(milliseconds)


def _place(definition: Definition) -> str:
    match definition.kind:
        case "filesystem":
            return definition.root
        case "script":
            return definition.path
        case _:
            return definition.url
