"""One run of a sync: lists the source, compares it with the ledger, and writes the differences.

The listing and the ledger decide; events of a watcher only choose the part that is compared. Each
batch is one transaction with its ledger entries. So a run that is killed or cancelled loses
nothing, and the next one continues after the last batch.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from daemon.sources.connectors.connector import (
    Connector,
    FileUnreadable,
    FileVanished,
    Listed,
    Skipped,
    Unlisted,
)
from daemon.sources.definition import Definition
from daemon.sources.formats import TEXT, Format, format_of
from daemon.sources.parsers.parsed import Parsed, Unparsable
from daemon.sources.parsers.plain import title_of
from daemon.sources.parsers.process import Parser
from daemon.sources.sync.deletion_guard import judge
from daemon.sources.sync.state import Outcome, RunProgress, SourceState
from store.engine import Engine
from store.errors import BankNotFound, InvalidInput
from store.model import (
    SYNC_RUN,
    DocumentHead,
    NewDocument,
    Provenance,
    SourceBatch,
    SourceFile,
    SyncedFile,
)

BATCH_FILES: Final = 64
BATCH_CHARACTERS: Final = 512 * 1024
DELETED_AT_ONCE: Final = 200


class RunOptions(Struct, frozen=True, kw_only=True):
    """`full` reads every file; `under` limits the run to these paths.

    `since` and `until` (unix milliseconds) limit it to files that were changed between them, and
    `limit` to a number of files. Such a run deletes nothing.
    """

    full: bool = False
    dry_run: bool = False
    allow_deletions: bool = False
    under: tuple[str, ...] = ()
    since: int | None = None
    until: int | None = None
    limit: int = 0  # 0: all

    @property
    def is_selective(self) -> bool:
        """Whether some of the files that have changed are left for another run."""
        return self.since is not None or self.until is not None or self.limit > 0

    @property
    def is_partial(self) -> bool:
        """Whether the run does not bring the whole source up to date."""
        return bool(self.under) or self.is_selective

    def selects(self, updated_at: int | None) -> bool:
        """Whether a file with this date belongs to the run; one without a date always does."""
        if updated_at is None:
            return True
        is_late = self.since is None or updated_at >= self.since
        return is_late and (self.until is None or updated_at <= self.until)


class Run:
    """One run. `bank` is the bank of the documents."""

    def __init__(
        self,
        definition: Definition,
        state: SourceState,
        options: RunOptions,
        *,
        connector: Connector,
        engine: Engine,
        parser: Parser,
        bank: str,
        progress: RunProgress,
    ) -> None:
        self._definition = definition
        self._state = state
        self._options = options
        self._connector = connector
        self._engine = engine
        self._parser = parser
        self._bank = bank
        self._progress = progress
        self._ledger = definition.ledger
        self.outcome = Outcome()
        #: Files of the ledger that the listing does not contain, by path.
        self._gone: dict[str, SourceFile] = {}
        self._batch: list[SyncedFile] = []
        self._characters = 0

    async def execute(self) -> Outcome:
        """Compare and write; raises `SourceUnavailable` and `StoreError`."""
        known = {file.source_id: file for file in await self._known()}
        documents = await self._count()
        candidates = await self._compare(known)
        if not self.outcome.is_complete:
            self._gone.clear()
        if self._options.is_selective:
            candidates = self._selected(candidates)
        await self._write(candidates, known)
        if not self._options.is_selective:
            await self._delete(documents)
        return self.outcome

    async def _known(self) -> list[SourceFile]:
        try:
            return await self._engine.source_files(
                self._bank, self._definition.name, under=self._options.under
            )
        except BankNotFound:
            return []

    async def _count(self) -> int:
        try:
            return await self._engine.count_synced(self._bank, self._definition.name)
        except BankNotFound:
            return 0

    # --- comparison -----------------------------------------------------------------------

    async def _compare(self, known: dict[str, SourceFile]) -> list[Listed]:
        """The files that may have changed; also finds those that are gone."""
        self._progress.begin("listing")
        candidates: list[Listed] = []
        self._gone = dict(known)
        async for entry in self._connector.entries(self._options.under):
            match entry:
                case Unlisted():
                    self.outcome.is_complete = False
                    self.outcome.failed += 1
                    self.outcome.problem(entry.source_id, entry.reason)
                case Skipped():
                    self.outcome.skipped += 1
                    self.outcome.problem(entry.source_id, entry.reason)
                case Listed():
                    self.outcome.files += 1
                    self._progress.step()
                    self._gone.pop(entry.source_id, None)
                    if self._is_current(known.get(entry.source_id), entry):
                        self.outcome.unchanged += 1
                    else:
                        candidates.append(entry)
        return candidates

    def _is_current(self, file: SourceFile | None, listed: Listed) -> bool:
        return (
            file is not None
            and not self._options.full
            and file.ledger == self._ledger
            and file.version == listed.version != ""
        )

    def _selected(self, candidates: Sequence[Listed]) -> list[Listed]:
        chosen = [each for each in candidates if self._options.selects(each.updated_at)]
        chosen = chosen[: self._options.limit or None]
        self.outcome.postponed = len(candidates) - len(chosen)
        return chosen

    # --- reading and writing --------------------------------------------------------------

    async def _write(self, candidates: Sequence[Listed], known: dict[str, SourceFile]) -> None:
        self._progress.begin("reading", len(candidates))
        lost = {file.digest: file for file in self._gone.values() if file.document}
        for listed in candidates:
            synced = await self._read(listed, known.get(listed.source_id), lost)
            if synced is not None:
                self._batch.append(synced)
                self._characters += len(synced.document.body) if synced.document else 0
            if len(self._batch) >= BATCH_FILES or self._characters >= BATCH_CHARACTERS:
                await self._flush()
            self._progress.step()
        await self._flush()

    async def _read(
        self, listed: Listed, file: SourceFile | None, lost: dict[str, SourceFile]
    ) -> SyncedFile | None:
        """The entry to be written for a listed file; None if there is nothing to write."""
        try:
            if listed.text is not None:
                content = listed.text.encode("utf-8", "surrogatepass")
            else:
                content = await self._connector.read(listed)
        except FileVanished:
            self.outcome.files -= 1
            return None  # the next run finds it gone
        except FileUnreadable as error:
            self._fail(listed, str(error))
            return None
        entry = SourceFile(
            source_id=listed.source_id,
            version=listed.version,
            digest=blake2b(content, digest_size=16).hexdigest(),
            ledger=self._ledger,
            document=file.document if file else None,
        )
        is_same = file is not None and file.digest == entry.digest
        if is_same and (entry.document is not None or not self._options.full):
            self.outcome.unchanged += 1
            return None if entry == file else SyncedFile(file=entry, head=_head(listed))
        former = lost.pop(entry.digest, None) if file is None else None
        if self._options.dry_run:
            self._note(listed.source_id, file, former)
            return None
        try:
            document = await self._document(listed, content, former)
        except Unparsable as reason:
            self._fail(listed, str(reason))
            return SyncedFile(file=_without_document(entry), is_unusable=True)
        self._note(listed.source_id, file, former)
        return SyncedFile(
            file=entry, document=document, moved_from=former.source_id if former else None
        )

    async def _document(
        self, listed: Listed, content: bytes, former: SourceFile | None
    ) -> NewDocument:
        if listed.text is not None:
            format = Format("text", listed.content_type or "text/markdown", is_numbered=False)
            parsed = Parsed(text=listed.text)
        else:
            format = format_of(listed.source_id) or TEXT
            parsed = await self._parser.parse(format, content)
        content_type = listed.content_type or format.content_type
        title = listed.title or parsed.title or title_of(parsed.text, content_type)
        return NewDocument(
            source=self._definition.name,
            source_id=listed.source_id,
            body=parsed.text,
            title=title or listed.source_id,
            author=listed.author,
            url=listed.url,
            content_type=content_type,
            metadata=listed.metadata,
            created_at=listed.created_at,
            updated_at=listed.updated_at,
            provenance=Provenance(dialect="sources", client=self._definition.kind),
            run=SYNC_RUN,
            moved_from=former.source_id if former else None,
            is_numbered=format.is_numbered,
        )

    def _note(self, source_id: str, file: SourceFile | None, former: SourceFile | None) -> None:
        """Count a change, and claim the file that was renamed."""
        if former is not None and self._gone.pop(former.source_id, None) is not None:
            self.outcome.moved += 1
            self.outcome.change(">", f"{former.source_id} -> {source_id}")
        elif file is None or file.document is None:
            self.outcome.added += 1
            self.outcome.change("+", source_id)
        else:
            self.outcome.changed += 1
            self.outcome.change("~", source_id)

    def _fail(self, listed: Listed, reason: str) -> None:
        self.outcome.failed += 1
        self.outcome.problem(listed.source_id, reason)

    async def _flush(self) -> None:
        batch, self._batch, self._characters = self._batch, [], 0
        if not batch or self._options.dry_run:
            return
        try:
            await self._put(batch)
        except InvalidInput:
            for synced in batch:  # one file breaks a rule of the engine; find it
                try:
                    await self._put([synced])
                except InvalidInput as error:
                    self.outcome.failed += 1
                    self.outcome.problem(synced.file.source_id, str(error))

    async def _put(self, batch: Sequence[SyncedFile]) -> None:
        await self._engine.sync_documents(
            self._bank, SourceBatch(source=self._definition.name, files=tuple(batch))
        )

    # --- deletions ------------------------------------------------------------------------

    async def _delete(self, documents: int) -> None:
        gone = [file for file in self._gone.values() if file.document is not None]
        state = self._state
        verdict = judge(
            deletions=len(gone),
            documents=documents,
            is_same_place=state.place in ("", self._connector.place),
            is_same_definition=all(file.ledger == self._ledger for file in gone),
            allowed=state.withheld if self._options.allow_deletions else 0,
        )
        self.outcome.withheld, self.outcome.withheld_reason = verdict.withheld, verdict.reason
        for file in gone if self._options.dry_run else ():
            self.outcome.change("-", file.source_id)
        removed = [file.source_id for file in self._gone.values() if not file.document]
        if not verdict.withheld:
            self.outcome.deleted = len(gone)
            removed += [file.source_id for file in gone]
        if self._options.dry_run:
            return
        self._progress.begin("deleting", len(removed))
        for start in range(0, len(removed), DELETED_AT_ONCE):
            some = tuple(removed[start : start + DELETED_AT_ONCE])
            batch = SourceBatch(source=self._definition.name, removed=some)
            await self._engine.sync_documents(self._bank, batch)
            self._progress.step(len(some))


def _head(listed: Listed) -> DocumentHead | None:
    """The new head of a document whose text is unchanged, if its date is that of the content."""
    if not listed.is_dated:
        return None
    return DocumentHead(author=listed.author, url=listed.url, updated_at=listed.updated_at)


def _without_document(file: SourceFile) -> SourceFile:
    return SourceFile(
        source_id=file.source_id, version=file.version, digest=file.digest, ledger=file.ledger
    )
