"""Puts prepared for writing: checked, hashed and tokenised before the transaction begins.

This work needs no connection and may take long for a large text, so it is done outside the
transaction and, for large texts, on a worker thread.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec
from msgspec import Struct

from store.errors import InvalidInput
from store.ids import fresh_id
from store.model import KINDS, Kind, NewMemory, Provenance
from store.ranking.tokenizer import index_text
from store.rows.details import check_details
from store.rows.items import ItemRow, searchable_row
from store.validate import (
    check_choice,
    check_finite,
    check_labels,
    check_list,
    check_share,
    check_text,
    check_time,
    encode_json,
)

_PREFIXES: Final[dict[Kind, str]] = {
    "memory": "mem", "event": "evt", "card": "kc", "task": "task", "risk": "risk",
    "narrative": "nar", "skill": "skill", "chunk": "chk",
}  # fmt: skip
# The kinds of which an exact repetition counts as the same item. The others have rules of their
# own; see `cards.py` and `tasks.py`.
_SAME_BY_CONTENT: Final = ("memory", "event")
_NO_PROVENANCE: Final = Provenance()

_encode: Final = msgspec.msgpack.Encoder().encode


class Prepared(Struct, frozen=True, kw_only=True):
    """A put that is ready to be written."""

    row: ItemRow  # its id is 0 until it is inserted
    tokens: str
    idempotency_key: str | None = None
    is_fresh: bool = False  # the public id was generated just now, so no other item has it


def prepare(new: NewMemory, now: int, *, of_document: bool = False) -> Prepared:
    """Check a put and compute its row and its tokens."""
    check(new)
    if new.kind == "chunk" and not of_document:
        raise InvalidInput("kind", "must not be chunk: only a document has chunks")
    row = ItemRow(
        id=0,
        public_id=new.id or fresh_id(_PREFIXES[new.kind], now),
        kind=new.kind,
        title=new.title,
        text=new.text,
        context=new.context,
        category=new.category,
        status=new.status,
        level=new.level,
        confidence=new.confidence,
        salience=new.salience,
        session=new.session,
        document=None,
        position=None,
        source=new.source,
        user=new.user,
        role=new.role,
        actor=new.actor,
        event_type=new.event_type,
        key=new.key,
        tags=encode_json("tags", new.tags),
        metadata=encode_json("metadata", new.metadata),
        details=encode_json("details", new.details),
        provenance=encode_provenance(new.provenance),
        occurred_at=now if new.occurred_at is None else new.occurred_at,
        created_at=now,
        updated_at=now,
        superseded_by=None,
        repeats=0,
        forgotten_at=None,
        forgotten_by=None,
        sameness=sameness(new),
    )
    return Prepared(
        row=row,
        tokens=tokens_of(row),
        idempotency_key=new.idempotency_key,
        is_fresh=new.id is None,
    )


def check(new: NewMemory) -> None:
    """Refuse a put that cannot be stored, naming the field and the rule."""
    check_choice("kind", new.kind, KINDS)
    check_text("text", new.text)
    check_labels(
        title=new.title, id=new.id, category=new.category, status=new.status, level=new.level,
        session=new.session, source=new.source, user=new.user, role=new.role, actor=new.actor,
        event_type=new.event_type, key=new.key, idempotency_key=new.idempotency_key,
    )  # fmt: skip
    if not new.text.strip() and not new.title.strip():
        raise InvalidInput("text", "must not be empty")
    if new.id is not None and not new.id.strip():
        raise InvalidInput("id", "must not be empty")
    check_text("context", new.context or "")
    check_list("tags", new.tags)
    check_share("confidence", new.confidence)
    check_finite("salience", new.salience)
    check_time("occurred_at", new.occurred_at)
    check_details(new.kind, new.details)


def sameness(new: NewMemory) -> bytes | None:
    """The hash of a put's content; None if a repetition of it is another item."""
    if new.kind not in _SAME_BY_CONTENT or new.allow_duplicate or new.key is not None:
        return None
    content = (
        new.kind, new.title, new.text, new.context, new.category, new.user, new.role, new.actor,
        new.event_type, new.occurred_at, tuple(new.tags), dict(new.metadata),
        new.session if new.kind == "event" else None,
    )  # fmt: skip
    return blake2b(_encode(content), digest_size=16).digest()


def tokens_of(row: ItemRow) -> str:
    """The tokens that the item in this row is found by."""
    return index_text(searchable_row(row))


def count_words(tokens: str) -> int:
    return tokens.count(" ") + 1 if tokens else 0


@lru_cache(maxsize=256)
def encode_provenance(provenance: Provenance) -> str:
    """The provenance as JSON, checked. Few clients write many items, so the results are kept."""
    if provenance == _NO_PROVENANCE:
        return "{}"
    check_labels(
        dialect=provenance.dialect,
        client=provenance.client,
        transport=provenance.transport,
        principal=provenance.principal,
    )
    check_text("explanation", provenance.explanation or "")
    return msgspec.json.encode(provenance).decode()
