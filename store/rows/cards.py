"""Cards: pieces of knowledge with evidence and a history of versions.

A new card is compared with all cards of its category. If an existing card makes the same statement,
the new one is a duplicate and only its evidence is added. If an existing card has the same title,
or a similar title and mostly the same words, the new card replaces it; the old one stays readable
as superseded. Otherwise `ranking.statements` decides by words and by the cosine of the two texts,
which is computed before the transaction. Without a model the words alone decide. A card is verified
if stored items contain at least half of its quotations.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from store.database import Connection
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
from store.ranking.similarity import same_statement, same_words, similarity, words_of
from store.ranking.statements import Statement, are_near, relation
from store.rows.items import find
from store.rows.listing import listing
from store.rows.memories import change_item, insert_row
from store.rows.prepared import prepare
from store.rows.similar import candidates, find_quoted
from store.rows.transaction import WriteTransaction
from store.validate import (
    check_choice,
    check_finite,
    check_labels,
    check_list,
    check_share,
    check_text,
    encode_json,
)

# The similarity from which one card is a new version of another. Their titles must be as similar:
# cards on two subjects often differ in one word ("the port of A is 80", "the port of B is 81").
REPLACES: Final = 0.6
COMPARED: Final = 8  # cards whose texts are compared by their vectors with a new card
MOST_TEXTS: Final = 128  # texts of one call whose vectors are computed

#: The cosine of two texts; None if it was not computed.
Closeness = Callable[[str, str], float | None]
SNIPPET_LIMIT: Final = 4_096
_QUOTED_KINDS: Final = ("event", "memory", "chunk")


def not_compared(one: str, other: str) -> float | None:
    """The closeness of texts whose vectors were not computed."""
    return None


def check(card: NewCard) -> None:
    """Refuse a card that cannot be stored, also if it is a duplicate."""
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


def put(
    transaction: WriteTransaction,
    card: NewCard,
    now: int,
    closeness: Closeness = not_compared,
) -> CardOutcome:
    """Store a card, unless it is a duplicate; a new version replaces the old one."""
    check(card)
    old, is_repeated = _predecessor(transaction.connection, card, closeness)
    if old is not None and is_repeated:
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
    """Change the status of a card. Other changes need a new version of the card."""
    item = find(transaction.connection, id, kind="card")
    if status is not None:
        check_choice("status", status, CARD_STATUSES)
        item = change_item(transaction, item, now, status=status)
    return card_of(transaction.connection, item)


def page(
    connection: Connection, filters: Filters, *, limit: int, offset: int
) -> tuple[list[Card], int]:
    """A page of cards, newest first, and the number of all cards."""
    found = listing(
        connection, kinds=("card",), filters=filters, limit=limit, offset=offset, by="arrival"
    )
    return [card_of(connection, item) for item in found.items], found.total


def history(connection: Connection, id: str) -> list[Card]:
    """A card and its earlier versions, newest first."""
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
    """The card in an item, with its evidence."""
    evidence = tuple(
        Evidence(snippet=snippet, session=session or None, item=source)
        for snippet, session, source in connection.execute(
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
    """Whether stored items contain at least half of the quotations."""
    found = sum(piece.item is not None for piece in evidence)
    return bool(evidence) and found / len(evidence) >= 0.5


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


def undecided_texts(connection: Connection | None, new: Sequence[NewCard]) -> list[str]:
    """The texts whose cosines `put` needs, because words alone do not decide.

    Without a connection (the bank does not exist yet) the cards are compared with each other only.
    """
    texts: dict[str, None] = {}
    for card in new:
        near = [
            item.text
            for item in (() if connection is None else _candidates(connection, card))
            if are_near(Statement(title=item.title, text=item.text), _statement(card))
        ]
        # The cards of one call may also repeat each other.
        near += [
            other.summary
            for other in new
            if other is not card
            and other.category == card.category
            and are_near(_statement(other), _statement(card))
        ]
        if near and len(texts) < MOST_TEXTS:
            texts |= dict.fromkeys((card.summary, *near[:COMPARED]))
    return list(texts)


def _predecessor(
    connection: Connection, card: NewCard, closeness: Closeness
) -> tuple[Item | None, bool]:
    """The card that this one repeats or replaces, if any, and whether it repeats it."""
    if card.supersedes is not None:
        old = find(connection, card.supersedes, kind="card")
        if old.superseded_by is not None:
            raise InvalidInput("supersedes", "must be a card that is not superseded already")
        return old, False
    found = _candidates(connection, card)
    closest = _closest(found, card)
    if closest is not None:
        return closest, _is_duplicate(closest, card)
    related: dict[str, Item] = {}
    for item in found:
        old_one = Statement(title=item.title, text=item.text)
        kind = relation(old_one, _statement(card), closeness(item.text, card.summary))
        if kind is not None:
            related.setdefault(kind, item)
    if "same" in related:
        return related["same"], True
    return related.get("update"), False


def _statement(card: NewCard) -> Statement:
    return Statement(title=card.title, text=card.summary)


def _candidates(connection: Connection, card: NewCard) -> list[Item]:
    """Cards of the same category, user and role with common words, best first."""
    text = f"{card.title}\n{card.summary}"
    return [
        item
        for item in candidates(connection, "card", text, category=card.category)
        if (item.user, item.role) == (card.user, card.role)
    ]


def _closest(found: Sequence[Item], card: NewCard) -> Item | None:
    """The card with the same title, or with a similar title and mostly the same words."""
    words = words_of(f"{card.title}\n{card.summary}")
    best: tuple[float, Item] | None = None
    for item in found:
        score = similarity(words, words_of(f"{item.title}\n{item.text}"))
        if same_words(item.title, card.title):
            score = max(score, REPLACES)
        elif similarity(words_of(item.title), words_of(card.title)) < REPLACES:
            continue
        if score >= REPLACES and (best is None or score > best[0]):
            best = score, item
    return None if best is None else best[1]


def _is_duplicate(old: Item, card: NewCard) -> bool:
    return same_statement(f"{old.title}\n{old.text}", f"{card.title}\n{card.summary}")


def _repeat(transaction: WriteTransaction, old: Item, card: NewCard, now: int) -> None:
    """Record a duplicate: add its evidence and tags, and keep the higher confidence."""
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
        # An item that the caller names counts only if it contains the quotation.
        source = find_quoted(connection, _QUOTED_KINDS, piece.snippet, first=piece.item)
        key = (rowid, piece.snippet, piece.session or session or "")
        known = connection.execute(
            "SELECT 1 FROM evidence WHERE card = ? AND snippet = ? AND session = ?", key
        ).fetchone()
        if known is None:
            connection.execute(
                "INSERT INTO evidence (card, snippet, session, item) VALUES (?, ?, ?, ?)",
                (*key, source),
            )
        elif source is not None:
            connection.execute(
                "UPDATE evidence SET item = ? WHERE card = ? AND snippet = ? AND session = ?",
                (source, *key),
            )
