"""Units of work for missing vectors: reading their texts, and storing what the model computed.

A turn of a conversation is embedded without its label, and its tokens are stored beside its vector
(table `turns`). Both rows are written in one transaction, and the row of `turns` is deleted as soon
as the vector is missing again.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from store.database import Connection
from store.model import Item
from store.ranking.turns import Turn, traits_of, turn_of
from store.rows.items import SELECT, item_of, searchable
from store.rows.table import RowDamaged
from store.rows.transaction import counted

BATCH: Final = 128  # texts embedded between two commits: a quarter of a second
TURN_KINDS: Final = ("memory", "event")
MOST_SPEAKERS: Final = 200


class PendingVector(Struct, frozen=True):
    """An item without a vector, as it was when its text was read."""

    item: int
    change: int
    text: str
    turn: Turn | None = None  # if it is a turn of a conversation


class Computed(Struct, frozen=True):
    """The stored form of a vector, and of a turn's tokens."""

    vector: bytes
    tokens: bytes | None


def count_pending(connection: Connection, most: int) -> int:
    (count,) = connection.execute(
        "SELECT count(*) FROM (SELECT 1 FROM vectors WHERE bytes IS NULL LIMIT ?) AS pending",
        (most,),
    ).fetchone()
    return int(count)


def next_pending(connection: Connection) -> list[PendingVector]:
    """Items without a vector, newest first, because recent items are searched for most."""
    rows = connection.execute(
        "SELECT item, change FROM vectors WHERE bytes IS NULL ORDER BY item DESC LIMIT ?", (BATCH,)
    ).fetchall()
    return _read_pending(connection, dict(rows))


def stale_turns(connection: Connection) -> list[PendingVector]:
    """Turns without tokens, newest first."""
    rows = connection.execute(
        "SELECT vectors.item, vectors.change FROM turns JOIN vectors ON vectors.item = turns.item"
        " WHERE turns.tokens IS NULL ORDER BY turns.item DESC LIMIT ?",
        (BATCH,),
    ).fetchall()
    return _read_pending(connection, dict(rows))


def _read_pending(connection: Connection, changes: Mapping[int, int]) -> list[PendingVector]:
    """The texts of these items, given with the change numbers of their vectors."""
    found: list[PendingVector] = []
    marks = ",".join("?" * len(changes))
    for row in connection.execute(f"{SELECT} WHERE items.id IN ({marks})", list(changes)):
        try:
            item = item_of(row)
        except RowDamaged:
            # It cannot be found either, but must not stay pending for ever.
            found.append(PendingVector(row[0], changes[row[0]], ""))
            continue
        turn = _turn(item)
        text = searchable(item if turn is None else replace(item, text=turn.body))
        found.append(PendingVector(item.rowid, changes[item.rowid], text, turn))
    return found


def _turn(item: Item) -> Turn | None:
    """The item as a turn of a conversation; None if it is none.

    A memory in a session without a speaker is a fact that an agent stored on its own. Its
    neighbours are other facts, not the rest of a dialogue.
    """
    if item.kind not in TURN_KINDS or item.document is not None:
        return None
    turn = turn_of(item.text, in_session=item.session is not None)
    is_event = item.kind == "event" and item.session is not None
    return turn if is_event or turn.speaker else None


def store(
    connection: Connection,
    model: int,
    batch: Sequence[PendingVector],
    computed: Sequence[Computed],
) -> None:
    with counted(connection) as changes:
        for pending, content in zip(batch, computed, strict=True):
            stored = connection.execute(
                "UPDATE vectors SET model = ?, bytes = ?, change = ? WHERE item = ? AND change = ?",
                (model, content.vector, changes.next(), pending.item, pending.change),
            )
            if stored.rowcount != 1:
                continue  # the item was changed in the meantime
            if pending.turn is not None and content.tokens is not None:
                connection.execute(
                    "INSERT INTO turns (item, speaker, traits, tokens) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (item) DO UPDATE SET speaker = excluded.speaker,"
                    " traits = excluded.traits, tokens = excluded.tokens",
                    (
                        pending.item,
                        pending.turn.speaker or None,
                        traits_of(pending.turn.body),
                        content.tokens,
                    ),
                )
            else:
                connection.execute("DELETE FROM turns WHERE item = ?", (pending.item,))


def speakers(connection: Connection) -> list[str]:
    """The names that label at least two turns, at most `MOST_SPEAKERS`.

    Each name is one step in the index, so the time does not grow with the number of turns.
    """
    found: list[str] = []
    last = ""
    for _ in range(MOST_SPEAKERS):
        row = connection.execute(
            "SELECT min(speaker) FROM turns WHERE speaker > ?", (last,)
        ).fetchone()
        if row[0] is None:
            break
        last = row[0]
        again = connection.execute(
            "SELECT 1 FROM turns WHERE speaker = ? LIMIT 1 OFFSET 1", (last,)
        ).fetchone()
        if again is not None:
            found.append(last)
    return found
