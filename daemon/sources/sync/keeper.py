"""The sources of a daemon: definitions, states and running syncs.

Definitions come from the configuration file and, for sources that a command or REST added, from
the catalogue. The file is read again when it has changed. Each source has one run at a time.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from daemon.config.loading import load_sources
from daemon.config.sources import Mistake, check_definition, check_name
from daemon.exit_codes import CONFIG, LOCKED, UNAVAILABLE, USAGE, Exit
from daemon.sources.connectors.connector import SourceUnavailable
from daemon.sources.connectors.factories import Connectors
from daemon.sources.definition import Definition, make_definition
from daemon.sources.parsers.process import Parser
from daemon.sources.sync.former_bank import clear_bank, leave_bank
from daemon.sources.sync.run import Run, RunOptions
from daemon.sources.sync.state import Outcome, RunProgress, SourceState
from daemon.tools.toolkit import SourceReport
from store.engine import Engine
from store.errors import StoreError
from store.model import Stage

log: Final = structlog.get_logger()

PROBE_SECONDS: Final = 1.0


class SourceStatus(Struct, frozen=True, kw_only=True):
    """A source as every surface shows it. `bank` is the bank of its documents."""

    definition: Definition
    state: SourceState
    bank: str
    is_healthy: bool
    error: str | None
    running: RunProgress | None = None


class ActiveRun:
    """A run in progress, and the scope that cancels it."""

    def __init__(self) -> None:
        self.progress = RunProgress()
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()


class Sources:
    """The sources of one daemon."""

    def __init__(
        self,
        engine: Engine,
        connectors: Connectors,
        *,
        from_file: Mapping[str, Mapping[str, Any]],
        config: Path,
        default_bank: str,
        now: Callable[[], int],
    ) -> None:
        self._engine = engine
        self._connectors = connectors
        self._from_file = _defined(from_file)
        self._config = config
        self._config_version = _version_of(config)
        self._default_bank = default_bank
        self._now = now
        self._added: dict[str, Definition] = {}
        self._states: dict[str, SourceState] = {}
        self._runs: dict[str, ActiveRun] = {}
        #: Called with the name of a bank that a run has written to.
        self.on_change: Callable[[str], None] = lambda _bank: None
        #: Called after definitions have changed, so that watchers follow them.
        self.on_definitions: Callable[[], None] = lambda: None

    async def load(self) -> None:
        """Read the records of the catalogue."""
        for record in await self._engine.source_records.all():
            self._states[record.name] = msgspec.json.decode(record.state, type=SourceState)
            if record.definition is not None:
                self._added[record.name] = msgspec.json.decode(record.definition, type=Definition)

    # --- definitions ----------------------------------------------------------------------

    def definitions(self) -> dict[str, Definition]:
        """All sources by name; the file takes precedence over a command."""
        return {**self._added, **self._from_file}

    async def refresh(self) -> None:
        """Read the configuration file again, if it has changed. `Exit` if it is invalid."""
        version = _version_of(self._config)
        if version != self._config_version:
            self._from_file = _defined(await anyio.to_thread.run_sync(load_sources, self._config))
            self._config_version = version
            self.on_definitions()

    def find(self, name: str) -> Definition:
        found = self.definitions().get(name)
        if found is None:
            known = ", ".join(sorted(self.definitions())) or "none is configured"
            raise Exit(USAGE, f"there is no source named {name!r}; known: {known}")
        return found

    def bank_of(self, definition: Definition) -> str:
        return definition.bank or self._default_bank

    def is_configured(self, name: str, bank: str) -> bool:
        """Whether the documents of this source in this bank come from a sync."""
        found = self.definitions().get(name)
        return found is not None and self.bank_of(found) == bank

    async def add(self, name: str, given: Any) -> Definition:
        await self.refresh()
        try:
            definition = make_definition(
                check_name(name), check_definition(given), is_from_file=False
            )
        except Mistake as mistake:
            raise Exit(CONFIG, f"source {name}: {mistake}") from None
        if name in self.definitions():
            raise Exit(USAGE, f"a source named {name!r} exists already; remove it first")
        state = self._states.get(name, SourceState())
        await self._save(name, definition, state)
        self._added[name] = definition
        self.on_definitions()
        return definition

    async def set_watch(self, name: str, *, is_on: bool) -> Definition:
        definition = self._require_added(name)
        changed = replace(definition, watch=is_on)
        await self._save(name, changed, self.state(name))
        self._added[name] = changed
        self.on_definitions()
        return changed

    async def remove(self, name: str, *, keep_documents: bool) -> int:
        """Remove a source, and its documents; returns their number."""
        definition = self.definitions().get(name)
        if definition is None and name not in self._states:
            self.find(name)
        if definition is not None:
            self._require_added(name)
        run = self._runs.get(name)
        if run is not None:
            run.scope.cancel()
            await run.ended.wait()
        count = 0
        # A run that was cancelled after its first batch has documents and no saved state.
        banks = {self.state(name).bank, self.bank_of(definition) if definition else ""} - {""}
        for bank in sorted(banks) if not keep_documents else ():
            count += await clear_bank(self._engine, name, bank)
            self.on_change(bank)
        await self._engine.source_records.remove(name)
        self._added.pop(name, None)
        self._states.pop(name, None)
        self.on_definitions()
        return count

    def _require_added(self, name: str) -> Definition:
        definition = self.find(name)
        if definition.is_from_file:
            raise Exit(
                USAGE,
                f"source {name!r} is defined in {self._config}; change [sources.{name}] there",
            )
        return definition

    # --- states ---------------------------------------------------------------------------

    def state(self, name: str) -> SourceState:
        return self._states.get(name, SourceState())

    async def statuses(self, bank: str | None = None) -> list[SourceStatus]:
        """The sources of a bank, or of all banks."""
        found: list[SourceStatus] = []
        for name, definition in sorted(self.definitions().items()):
            if bank is None or self.bank_of(definition) == bank:
                found.append(await self.status(name, definition))
        return found

    async def reports(self, bank: str) -> list[SourceReport]:
        """See `daemon.tools.toolkit.SourceDirectory`."""
        return [
            SourceReport(
                name=status.definition.name,
                is_healthy=status.is_healthy,
                last_sync=status.state.last_sync,
                last_error=status.error,
                withheld_deletions=status.state.withheld,
            )
            for status in await self.statuses(bank)
        ]

    async def status(self, name: str, definition: Definition) -> SourceStatus:
        state = self.state(name)
        run = self._runs.get(name)
        error = state.last_error or await _probe(definition)
        return SourceStatus(
            definition=definition,
            state=state,
            bank=self.bank_of(definition),
            is_healthy=error is None,
            error=error,
            running=run.progress if run else None,
        )

    async def _save(self, name: str, definition: Definition | None, state: SourceState) -> None:
        is_added = definition is not None and not definition.is_from_file
        await self._engine.source_records.save(
            name,
            definition=msgspec.json.encode(definition).decode() if is_added else None,
            state=msgspec.json.encode(state).decode(),
        )
        self._states[name] = state

    # --- runs -----------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        return bool(self._runs)

    def is_running(self, name: str) -> bool:
        return name in self._runs

    def cancel(self, name: str) -> bool:
        """Cancel the run of a source; False if there is none."""
        run = self._runs.get(name)
        if run is not None:
            run.scope.cancel()
        return run is not None

    async def sync(
        self,
        name: str,
        options: RunOptions,
        *,
        progress: Callable[[RunProgress], None] | None = None,
        with_vectors: bool = True,
    ) -> Outcome:
        """Run a sync and remember its outcome.

        Raises `Exit` if the source cannot be read, or if a run of it is in progress.
        """
        definition = self.find(name)
        if name in self._runs:
            raise Exit(LOCKED, f"a sync of source {name!r} is running; wait for it, or cancel it")
        run = self._runs[name] = ActiveRun()
        if progress is not None:
            progress(run.progress)
        began = time.monotonic()
        outcome: Outcome | None = None
        try:
            with run.scope:
                outcome = await self._sync(definition, options, run.progress)
                outcome.seconds = round(time.monotonic() - began, 3)
                if with_vectors and not options.dry_run and outcome.has_changed:
                    await self._embed(definition, run.progress)
        finally:
            del self._runs[name]
            run.ended.set()
        if outcome is None:
            raise Exit(UNAVAILABLE, f"the sync of source {name!r} was cancelled; nothing is lost")
        return outcome

    async def _sync(
        self, definition: Definition, options: RunOptions, progress: RunProgress
    ) -> Outcome:
        name, bank = definition.name, self.bank_of(definition)
        state = self.state(name)
        try:
            connector = await self._connectors.open(definition)
            try:
                async with Parser() as parser:
                    run = Run(
                        definition,
                        state,
                        options,
                        connector=connector,
                        engine=self._engine,
                        parser=parser,
                        bank=bank,
                        progress=progress,
                    )
                    outcome = await run.execute()
            finally:
                with anyio.CancelScope(shield=True):
                    await connector.close()
        except SourceUnavailable as error:
            await self._note_failure(definition, str(error), options)
            raise Exit(UNAVAILABLE, f"source {name!r}: {error}") from None
        except StoreError as error:
            await self._note_failure(definition, str(error), options)
            raise
        if not options.dry_run:
            await self._note_success(definition, connector.place, outcome, options)
            if outcome.has_changed:
                self.on_change(bank)
        return outcome

    async def _note_success(
        self, definition: Definition, place: str, outcome: Outcome, options: RunOptions
    ) -> None:
        now, state = self._now(), self.state(definition.name)
        is_whole = outcome.is_complete and not options.is_partial
        bank = self.bank_of(definition)
        if state.bank not in ("", bank):
            has_left = is_whole and await leave_bank(
                self._engine, definition.name, former=state.bank, present=bank
            )
            self.on_change(state.bank)
            bank = bank if has_left else state.bank
        error = None
        if not outcome.is_complete:
            error = _first_problem(outcome)
        await self._save(
            definition.name,
            definition,
            replace(
                state,
                bank=bank,
                ledger=definition.ledger,
                # A new root is accepted when nothing of the former one is waiting to be deleted.
                place=state.place if outcome.withheld and state.place else place,
                last_sync=now if is_whole else state.last_sync,
                last_run=now,
                last_error=error,
                withheld=outcome.withheld if is_whole else max(outcome.withheld, state.withheld),
                outcome=outcome if not options.is_partial else state.outcome,
            ),
        )
        log.info(
            "source.synced",
            source=definition.name,
            files=outcome.files,
            added=outcome.added,
            changed=outcome.changed,
            moved=outcome.moved,
            deleted=outcome.deleted,
            failed=outcome.failed,
            withheld=outcome.withheld,
            is_complete=outcome.is_complete,
        )

    async def _note_failure(self, definition: Definition, error: str, options: RunOptions) -> None:
        log.warning("source.failed", source=definition.name, kind=definition.kind)
        if not options.dry_run:
            state = self.state(definition.name)
            await self._save(
                definition.name, definition, replace(state, last_run=self._now(), last_error=error)
            )

    async def _embed(self, definition: Definition, progress: RunProgress) -> None:
        """Compute the vectors of the new chunks, so that searches by meaning find them."""
        progress.begin("embedding")

        def watch(stage: Stage) -> None:
            if stage.phase == "embedding":
                progress.done, progress.total = stage.done, stage.total

        await self._engine.settle(self.bank_of(definition), watch=watch)

    async def test(self, name: str) -> dict[str, Any]:
        """List the source without writing anything: whether it can be read, and its files."""
        outcome = await self._sync(self.find(name), RunOptions(dry_run=True), RunProgress())
        return {"files": outcome.files, "complete": outcome.is_complete}


def _defined(from_file: Mapping[str, Mapping[str, Any]]) -> dict[str, Definition]:
    return {
        name: make_definition(name, definition, is_from_file=True)
        for name, definition in from_file.items()
    }


def _version_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


async def _probe(definition: Definition) -> str | None:
    """Why the root of a source cannot be read; None if it can, or if asking is expensive."""
    if definition.kind != "filesystem":
        return None
    root = Path(definition.root)

    def look() -> str | None:
        try:
            next(root.iterdir(), None)
        except OSError as error:
            return f"{root}: {error.strerror}"
        return None

    with anyio.move_on_after(PROBE_SECONDS):
        return await anyio.to_thread.run_sync(look, abandon_on_cancel=True)
    return f"{root}: does not answer"


def _first_problem(outcome: Outcome) -> str:
    problem = outcome.problems[0] if outcome.problems else None
    where = f": {problem.source_id}: {problem.reason}" if problem else ""
    return f"a part of the source could not be listed{where}"
