"""Rows as Structs: written with a digest, refused when they differ from it."""

import pytest
from msgspec import Struct
from msgspec.structs import astuple, replace

from store.rows.items import ITEMS, ItemRow
from store.rows.table import RowDamaged, Table, digest_of, is_sound
from store.sqlite.connection import Connection


class Fruit(Struct, frozen=True):
    id: int
    name: str
    weight: float | None


FRUITS = Table("fruits", Fruit, noun="fruit", undigested=("change",))
APPLE = Fruit(id=1, name="apple", weight=0.5)

# A row as earlier versions wrote it, and its digest.
STORED = ItemRow(
    id=0, public_id="m1", kind="memory", title="t", text="apples", context=None, category=None,
    status=None, level=None, confidence=0.5, salience=None, session=None, document=None,
    position=None, source=None, user=None, role=None, actor=None, event_type=None, key=None,
    tags='["a"]', metadata='{"big":1e22,"n":[1,2.5]}', details='{"x":1e300}',
    provenance='{"client":"c"}', occurred_at=7, created_at=5, updated_at=5, superseded_by=None,
    repeats=0, forgotten_at=None, forgotten_by=None,
    sameness=bytes.fromhex("c180f3e980afea18c73455be35afbcf9"),
)  # fmt: skip
STORED_DIGEST = bytes.fromhex("686e95ee094cf1dedc41112848129034")


@pytest.fixture
def connection() -> Connection:
    connection = Connection(":memory:")
    connection.execute(
        "CREATE TABLE fruits (id INTEGER PRIMARY KEY, name TEXT, weight REAL, change, digest BLOB)"
    )
    return connection


def test_a_written_row_is_read_back_equal(connection: Connection) -> None:
    FRUITS.insert(connection, APPLE, 7)

    (columns,) = connection.execute(FRUITS.select)

    assert FRUITS.read(columns) == APPLE
    assert connection.execute("SELECT change FROM fruits").fetchone() == (7,)


def test_an_update_replaces_the_row_with_the_same_key(connection: Connection) -> None:
    FRUITS.insert(connection, APPLE, 7)
    FRUITS.insert(connection, replace(APPLE, id=2), 8)

    FRUITS.update(connection, replace(APPLE, name="pear"), 9)

    names = [FRUITS.read(columns).name for columns in connection.execute(FRUITS.select)]
    assert names == ["pear", "apple"]


@pytest.mark.parametrize("damage", ["name = 'pear'", "weight = NULL", "name = x'ff'", "digest = 0"])
def test_a_row_that_was_changed_on_disk_is_refused_by_its_number(
    connection: Connection, damage: str
) -> None:
    FRUITS.insert(connection, APPLE, 7)
    connection.execute(f"UPDATE fruits SET {damage}")
    (columns,) = connection.execute(FRUITS.select)

    with pytest.raises(RowDamaged, match="fruit number 1") as refused:
        FRUITS.read(columns)

    assert refused.value.rowid == 1
    assert not is_sound(columns)


def test_the_digest_of_an_item_is_that_of_earlier_versions() -> None:
    assert digest_of(astuple(STORED)) == STORED_DIGEST
    assert ITEMS.read((*astuple(STORED), STORED_DIGEST)) == STORED
