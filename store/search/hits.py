"""Hits: the items behind the ranked candidates, with their snippets."""

from collections.abc import Sequence
from typing import Any

from store.database import Connection
from store.errors import NotFound
from store.model import Hit, Item
from store.ranking.candidates import Ranked
from store.ranking.snippets import Marker
from store.rows.items import fetch, find, item_of
from store.rows.table import RowDamaged


def items_of(connection: Connection, ids: Sequence[int]) -> tuple[dict[int, Item], bool]:
    """The items with these row numbers, and whether damaged ones were left out."""
    found: dict[int, Item] = {}
    has_damage = False
    for row in fetch(connection, ids):
        try:
            found[row[0]] = item_of(row)
        except RowDamaged:
            has_damage = True
    return found, has_damage


def named_item(
    connection: Connection, text: str, condition: str, values: Sequence[Any]
) -> Item | None:
    """The item whose id is the text of the query, if it passes the filter."""
    name = text.strip()
    if not name or len(name) > 256 or any(character.isspace() for character in name):
        return None
    try:
        item = find(connection, name)
    except NotFound:
        return None
    (may_answer,) = connection.execute(
        f"SELECT {condition} FROM items WHERE items.id = ?", (*values, item.rowid)
    ).fetchone()
    return item if may_answer else None


def hit_of(item: Item, entry: Ranked, marker: Marker, *, explain: bool) -> Hit:
    shown = marker.snippet(item.text)
    return Hit(
        item=item,
        score=entry.score,
        snippet=shown.text,
        matches=shown.matches,
        parts=entry.parts if explain else None,
    )
