"""Cards: pieces of knowledge, each with its evidence, that replace each other and keep the history.

A new card is compared with all cards of its category. The same words: it is known, and its
evidence is added. The same title, or mostly the same words under much the same title: it takes the
place of the older one, which stays readable as superseded. A card is verified when most of its
quotations are found in what was stored, or when two sessions speak for it.
"""

from collections.abc import Sequence
from typing import Any, Final

from store.errors import InvalidInput
from store.model import (
    CARD_STATUSES,
    Card,
    CardOutcome,
    Evidence,
    Filters,
    Item,
    NewCard,
    NewMemory,
)
from store.ranking.similarity import (
    candidates,
    likeness,
    same_substance,
    same_words,
    saying,
    words_of,
)
from store.sqlite.database import Connection
from store.sqlite.rows.items import find
from store.sqlite.rows.listing import listing
from store.sqlite.rows.memories import change_item, insert_row
from store.sqlite.rows.prepared import prepare
from store.sqlite.rows.transaction import WriteTransaction
from store.validate import (
    check_choice,
    check_finite,
    check_labels,
    check_list,
    check_share,
    check_text,
    encode_json,
)

# Likeness from which one card is a new version of another. Its title must be as like: cards on two
# subjects often say the same of both ("the port of A is 80", "the port of B is 81").
REPLACES: Final = 0.6
SNIPPET_LIMIT: Final = 4_096


def check(card: NewCard) -> None:
    """Refuse what cannot be kept, a card that is known already included."""
    check_text("title", card.title, empty=False)
    check_text("category", card.category, empty=False)
    check_text("summary", card.summary, empty=False)
    check_choice("status", card.status, CARD_STATUSES)
    check_list("methods", card.methods)
    check_list("tags", card.tags)
    check_share("confidence", card.confidence)
    check_finite("salience", card.salience)
    for position, evidence in enumerate(card.evidence):
        check_text(f"evidence[{position}].snippet", evidence.snippet, limit=SNIPPET_LIMIT)
        check_labels(session=evidence.session, item=evidence.item)


def put(transaction: WriteTransaction, card: NewCard, now: int) -> CardOutcome:
    """Keep a card, recognise it, or let it take the place of the one it renews."""
    check(card)
    old = _replaced(transaction.connection, card)
    if old is not None and card.supersedes is None and _is_duplicate(old, card):
        _repeat(transaction, old, card, now)
        return CardOutcome(id=old.id, outcome="duplicate", other=old.id)
    prepared = prepare(_item(card, old), now)
    made = insert_row(transaction, prepared, document=None, position=None)
    _add_evidence(transaction.connection, made.rowid, card.evidence, card.session)
    if old is None:
        return CardOutcome(id=made.id, outcome="created")
    change_item(transaction, old, now, superseded_by=made.id, status="superseded")
    return CardOutcome(id=made.id, outcome="superseded", other=old.id)


def change(transaction: WriteTransaction, id: str, now: int, *, status: str | None = None) -> Card:
    """Change what may change about a card without a new version of it: its status."""
    item = find(transaction.connection, id, kind="card")
    if status is not None:
        check_choice("status", status, CARD_STATUSES)
        item = change_item(transaction, item, now, status=status)
    return card_of(transaction.connection, item)


def page(
    connection: Connection, filters: Filters, *, limit: int, offset: int
) -> tuple[list[Card], int]:
    """Cards, newest first; and how many there are in all."""
    found = listing(
        connection, kinds=("card",), filters=filters, limit=limit, offset=offset, by="arrival"
    )
    return [card_of(connection, item) for item in found.items], found.total


def history(connection: Connection, id: str) -> list[Card]:
    """A card and the versions before it, newest first."""
    cards: list[Card] = []
    seen: set[str] = set()
    next_id: str | None = id
    while next_id is not None and next_id not in seen:
        seen.add(next_id)
        card = card_of(connection, find(connection, next_id, kind="card"))
        cards.append(card)
        next_id = card.supersedes
    return cards


def card_of(connection: Connection, item: Item) -> Card:
    """An item of the kind card, with its evidence."""
    evidence = tuple(
        Evidence(snippet=snippet, session=session or None, item=witness)
        for snippet, session, witness in connection.execute(
            "SELECT snippet, session, item FROM evidence WHERE card = ? ORDER BY snippet, session",
            (item.rowid,),
        )
    )
    return Card(
        id=item.id,
        category=item.category or "",
        title=item.title,
        summary=item.text,
        tags=item.tags,
        status=item.status or "noted",
        confidence=item.confidence,
        salience=item.salience,
        methods=tuple(item.details.get("methods", ())),
        evidence=evidence,
        is_verified=is_verified(evidence),
        superseded_by=item.superseded_by,
        supersedes=item.details.get("supersedes"),
        item=item,
    )


def is_verified(evidence: Sequence[Evidence]) -> bool:
    """Most of what is quoted was really said, or two sessions speak for it."""
    if not evidence:
        return False
    found = sum(piece.item is not None for piece in evidence)
    sessions = {piece.session for piece in evidence if piece.session}
    return found / len(evidence) >= 0.5 or len(sessions) >= 2


def _item(card: NewCard, old: Item | None) -> NewMemory:
    details: dict[str, Any] = {"methods": list(card.methods)} if card.methods else {}
    if old is not None:
        details["supersedes"] = old.id
    return NewMemory(
        kind="card",
        title=card.title,
        text=card.summary,
        category=card.category,
        status=card.status,
        confidence=card.confidence,
        salience=card.salience,
        tags=card.tags,
        session=card.session,
        source=card.source,
        user=card.user,
        role=card.role,
        metadata=card.metadata,
        details=details,
        provenance=card.provenance,
    )


def _replaced(connection: Connection, card: NewCard) -> Item | None:
    if card.supersedes is None:
        return _closest(connection, card)
    old = find(connection, card.supersedes, kind="card")
    if old.superseded_by is not None:
        raise InvalidInput("supersedes", "must be a card that is not superseded already")
    return old


def _closest(connection: Connection, card: NewCard) -> Item | None:
    """The card this one repeats or renews, if there is one: same category, user and role."""
    said = words_of(f"{card.title}\n{card.summary}")
    best: tuple[float, Item] | None = None
    for item in candidates(
        connection, "card", f"{card.title}\n{card.summary}", category=card.category
    ):
        if (item.user, item.role) != (card.user, card.role):
            continue
        score = likeness(said, words_of(f"{item.title}\n{item.text}"))
        if same_words(item.title, card.title):
            score = max(score, REPLACES)
        elif likeness(words_of(item.title), words_of(card.title)) < REPLACES:
            continue
        if score >= REPLACES and (best is None or score > best[0]):
            best = score, item
    return None if best is None else best[1]


def _is_duplicate(old: Item, card: NewCard) -> bool:
    return same_substance(f"{old.title}\n{old.text}", f"{card.title}\n{card.summary}")


def _repeat(transaction: WriteTransaction, old: Item, card: NewCard, now: int) -> None:
    """A known card said again: more evidence, more tags, as sure as the surer of the two."""
    fields: dict[str, Any] = {"repeats": old.repeats + 1}
    tags = tuple(dict.fromkeys((*old.tags, *card.tags)))
    if tags != old.tags:
        fields["tags"] = encode_json("tags", tags)
    if card.confidence is not None:
        fields["confidence"] = max(card.confidence, old.confidence or 0.0)
    change_item(transaction, old, now, **fields)
    _add_evidence(transaction.connection, old.rowid, card.evidence, card.session)


def _add_evidence(
    connection: Connection, rowid: int, evidence: Sequence[Evidence], session: str | None
) -> None:
    for piece in evidence:
        if not piece.snippet.strip():
            continue
        witness = piece.item or saying(connection, ("event", "memory", "chunk"), piece.snippet)
        connection.execute(
            "INSERT INTO evidence (card, snippet, session, item) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET item = coalesce(excluded.item, item)",
            (rowid, piece.snippet, piece.session or session or "", witness),
        )
