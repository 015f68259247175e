"""Staging: foreign memories become a private file in recalld's export format.

The engine imports that file as it imports an export: it verifies every line before it writes,
writes in batches, and skips the records that the bank has. The public id of an item is the original
id if that is unique, else a hash of the program and the original id. So a repeated import adds
nothing.
"""

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, BinaryIO, Final

from msgspec import Struct
from msgspec.structs import replace

from daemon.importing.record import ForeignDocument, ForeignKind, Found, Memory, Own, Rejected
from daemon.importing.secrets import Policy, names_in_value, redacted_value, secrets_in
from store.errors import InvalidInput
from store.exporting.export_writer import ExportWriter, document_records, item_record
from store.model import NewDocument, NewMemory, Provenance

#: How many entries a report names for one reason.
EXAMPLES: Final = 5
_PROVENANCE: Final = Provenance(client="recalld", transport="import")
_PROGRESS_EVERY: Final = 1_000


class Reason(Struct, kw_only=True):
    """Entries that share a reason: how many, and the ids of the first ones."""

    count: int = 0
    examples: list[str] = []

    def add(self, where: str) -> None:
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(where[:200])


class Staged(Struct, kw_only=True):
    """The counts of a staging. `found` includes rejected and repeated entries."""

    found: int = 0
    staged: int = 0
    repeated: int = 0
    rejected: dict[str, Reason] = {}
    secrets: dict[str, Reason] = {}
    secret_entries: int = 0
    kinds: dict[str, int] = {}

    def reject(self, where: str, reason: str) -> None:
        self.rejected.setdefault(reason, Reason()).add(where)


class Stager:
    """Writes the entries of one foreign kind to an open file."""

    def __init__(
        self, kind: ForeignKind, file: BinaryIO, bank: str, *, policy: Policy, now: int
    ) -> None:
        self._kind = kind
        self._policy: Policy = policy
        self._now = now
        self._writer = ExportWriter(file, bank)
        self._ids: set[str] = set()
        self.result = Staged()

    def stage(self, found: Iterable[Found], progress: Callable[[int, int], None]) -> Staged:
        """Write everything; rejected entries are counted with their reasons."""
        for entry in found:
            self._take(entry)
            if self.result.found % _PROGRESS_EVERY == 0:
                progress(self.result.found, 0)
        self._writer.finish()
        return self.result

    def _take(self, entry: Found) -> None:
        self.result.found += 1
        where = ""
        try:
            match entry:
                case Rejected():
                    self.result.reject(entry.where, entry.reason)
                case Own():
                    where = str(entry.record.get("public_id"))
                    self._write(where, [entry.record], str(entry.record.get("kind")))
                case Memory():
                    where = entry.original_id
                    self._take_memory(entry)
                case ForeignDocument():
                    where = entry.original_id
                    self._take_document(entry)
        except InvalidInput as error:
            self.result.reject(where, str(error))

    def _take_memory(self, memory: Memory) -> None:
        searched = (memory.title, memory.text, memory.context or "", memory.metadata)
        names = self._secrets(searched)
        if names:
            self._count_secrets(memory.original_id, names)
            if self._policy == "skip":
                self.result.reject(memory.original_id, "contains a secret")
                return
            if self._policy == "redact":
                memory = replace(
                    memory,
                    title=redacted_value(memory.title),
                    text=redacted_value(memory.text),
                    context=redacted_value(memory.context),
                    metadata=redacted_value(memory.metadata),
                )
        id = self._public_id(memory.original_id)
        record = item_record(
            self._new(memory, id),
            self._now,
            created_at=memory.created_at,
            updated_at=memory.updated_at,
            superseded_by=(
                None if memory.replaced_by is None else self._public_id(memory.replaced_by)
            ),
        )
        self._write(id, [record], memory.kind)

    def _new(self, memory: Memory, id: str) -> NewMemory:
        return NewMemory(
            id=id,
            text=memory.text,
            kind=memory.kind,
            title=memory.title,
            context=memory.context,
            category=memory.category,
            status=memory.status,
            level=memory.level,
            confidence=memory.confidence,
            session=memory.session,
            source=self._kind.name,
            user=memory.user,
            role=memory.role,
            actor=memory.actor,
            event_type=memory.event_type,
            tags=memory.tags,
            metadata={
                **memory.metadata,
                "origin": {"system": self._kind.name, "id": memory.original_id},
            },
            details=memory.details,
            provenance=_PROVENANCE,
            occurred_at=memory.created_at,
            allow_duplicate=True,  # the origin tells two entries with the same text apart
        )

    def _take_document(self, document: ForeignDocument) -> None:
        names = self._secrets((document.title, document.body, document.metadata))
        if names:
            self._count_secrets(document.original_id, names)
            if self._policy == "skip":
                self.result.reject(document.original_id, "contains a secret")
                return
            if self._policy == "redact":
                document = replace(
                    document,
                    title=redacted_value(document.title),
                    body=redacted_value(document.body),
                    metadata=redacted_value(document.metadata),
                )
        if not document.body.strip():
            raise InvalidInput("body", "must not be empty")
        id = self._public_id(document.original_id)
        new = NewDocument(
            id=id,
            source=document.source,
            source_id=document.source_id,
            body=document.body,
            title=document.title,
            author=document.author,
            url=document.url,
            content_type=document.content_type,
            metadata={
                **document.metadata,
                "origin": {"system": self._kind.name, "id": document.original_id},
            },
            created_at=document.created_at,
            updated_at=document.updated_at,
            provenance=_PROVENANCE,
        )
        self._write(id, document_records(new, id, self._now), "document")

    def _secrets(self, values: tuple[Any, ...]) -> set[str]:
        names: set[str] = set()
        for value in values:
            if value:
                found = secrets_in(value) if isinstance(value, str) else None
                if found:
                    names |= {secret.name for secret in found}
                elif found is None:
                    names |= names_in_value(value)
        return names

    def _count_secrets(self, where: str, names: set[str]) -> None:
        self.result.secret_entries += 1
        for name in sorted(names):
            self.result.secrets.setdefault(name, Reason()).add(where)

    def _public_id(self, original_id: str) -> str:
        if self._kind.keeps_ids:
            return original_id
        return derived_id(self._kind.name, original_id)

    def _write(self, id: str, records: list[dict[str, Any]], kind: str) -> None:
        if id in self._ids:
            self.result.repeated += 1
            return
        self._ids.add(id)
        for record in records:
            self._writer.write(record)
        self.result.staged += 1
        self.result.kinds[kind] = self.result.kinds.get(kind, 0) + 1


def derived_id(system: str, original_id: str) -> str:
    """The id of an item whose original id is unique only within its program."""
    content = f"{system}\0{original_id}".encode("utf-8", "replace")
    return f"imp_{blake2b(content, digest_size=16).hexdigest()}"
