"""Hindsight: an archive of a bank (ZIP or folder), or a list of memories from its REST API.

An archive has `manifest.json` and `documents/*.json`. Each fact is a memory, and the original text
of a document is kept as a document.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.record import ForeignDocument, ForeignKind, Found, Memory, Rejected
from daemon.importing.values import (
    content_id,
    first_objects,
    list_of,
    milliseconds,
    object_of,
    objects_of,
    present,
    tags_of,
    text_of,
)

_LISTS: Final = (
    "items", "memories", "facts", "results", "memory_units", "observations", "mental_models",
)  # fmt: skip


def missing(path: Path) -> str | None:
    if path.is_dir() or foreign_files.head(path, 2) == b"PK":
        with foreign_files.archive(path) as archive:
            name = archive.find("manifest.json")
            if name is None:
                return "it has no manifest.json"
            manifest = object_of(foreign_files.decode(archive.read(name)))
            if "source_bank_id" not in manifest:
                return "its manifest.json has no `source_bank_id`"
        return None
    facts = _listed(foreign_files.load(path))
    if not facts or not any("fact_type" in fact for fact in facts[:3]):
        return "it is neither an archive nor a list of facts with `text` and `fact_type`"
    return None


def read(path: Path) -> Iterator[Found]:
    if not path.is_dir() and foreign_files.head(path, 2) != b"PK":
        for fact in _listed(foreign_files.load(path)):
            yield _fact(fact, None)
        return
    with foreign_files.archive(path) as archive:
        for name in archive.names():
            folder, _, file = name.rpartition("/")
            if not file.endswith(".json"):
                continue
            if folder.rpartition("/")[2] == "documents":
                yield from _document(object_of(foreign_files.decode(archive.read(name))))
            elif file in ("observations.json", "mental_models.json"):
                whole = foreign_files.decode(archive.read(name))
                for entry in _listed(whole):
                    yield _fact(entry, None, sort=file.removesuffix("s.json"))


def _listed(whole: Any) -> list[dict[str, Any]]:
    return first_objects(whole, _LISTS)


def _document(document: dict[str, Any]) -> Iterator[Found]:
    id = text_of(document.get("id"))
    body = text_of(document.get("original_text"))
    created = milliseconds(document.get("created_at"))
    if body is not None and id is not None:
        yield ForeignDocument(
            original_id=f"document/{id}",
            source="hindsight",
            source_id=id,
            body=body,
            metadata=present({"tags": list(tags_of(document.get("tags")))}),
            created_at=created,
            updated_at=milliseconds(document.get("updated_at")),
        )
    for fact in objects_of(document.get("facts")):
        yield _fact(fact, id, created=created)


def _fact(
    fact: dict[str, Any], document: str | None, *, created: int | None = None, sort: str = ""
) -> Found:
    text = text_of(fact.get("text")) or text_of(fact.get("content"))
    id = text_of(fact.get("id"))
    if text is None:
        return Rejected(where=id or document or "a fact", reason="has no text")
    entities = [
        name
        for entity in list_of(fact.get("entities"))
        if (name := text_of(entity) or text_of(object_of(entity).get("name")))
    ]
    dates = ("event_date", "occurred_start", "mentioned_at", "created_at", "date")
    times = (milliseconds(fact.get(name)) for name in dates)
    return Memory(
        original_id=id or content_id(document or "", text, str(fact.get("event_date"))),
        text=text,
        context=text_of(fact.get("context")),
        category=text_of(fact.get("fact_type")) or text_of(fact.get("type")) or sort or None,
        tags=tags_of(fact.get("tags")),
        metadata=present(
            {
                **object_of(fact.get("metadata")),
                "entities": entities,
                "document": document or fact.get("document_id"),
                "occurred_end": fact.get("occurred_end"),
                "causal_relations": fact.get("causal_relations"),
            }
        ),
        created_at=next((time for time in times if time is not None), created),
    )


KIND: Final = ForeignKind(name="hindsight", title="Hindsight", missing=missing, read=read)
