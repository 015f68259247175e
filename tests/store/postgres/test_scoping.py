"""Every statement is limited to one bank, wherever it names a table."""

import pytest

from store.postgres.scoping import BANK_TABLES, Scoped, ScopingRefused, scoped


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT id FROM items WHERE kind = ? AND id IN (SELECT item FROM vectors"
            " WHERE model = ?)",
            "SELECT id FROM (SELECT * FROM items WHERE bank = $1) AS items WHERE kind = $2"
            " AND id IN ( SELECT item FROM (SELECT * FROM vectors WHERE bank = $1) AS vectors"
            " WHERE model = $3 )",
        ),
        (
            "SELECT 1 FROM items AS near LEFT JOIN turns ON turns.item = near.id",
            "SELECT 1 FROM (SELECT * FROM items WHERE bank = $1) AS near LEFT JOIN"
            " (SELECT * FROM turns WHERE bank = $1) AS turns ON turns . item = near . id",
        ),
        (
            "INSERT INTO put_keys (key, item) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
            "INSERT INTO put_keys ( bank, key , item ) VALUES ( $1, $2 , $3 ) ON CONFLICT"
            " ( bank, key ) DO NOTHING",
        ),
        (
            "INSERT INTO vectors (item, change) SELECT id, ? FROM items",
            "INSERT INTO vectors ( bank, item , change ) SELECT $1::bigint, id , $2 FROM"
            " (SELECT * FROM items WHERE bank = $1) AS items",
        ),
        ("UPDATE state SET model = ?", "UPDATE state SET model = $2 WHERE state.bank = $1"),
        (
            "DELETE FROM vectors WHERE item = ? OR model IS NULL",
            "DELETE FROM vectors WHERE vectors.bank = $1 AND ( item = $2 OR model IS NULL )",
        ),
        (
            "SELECT count(*) FROM items INDEXED BY items_by_time",
            "SELECT count ( * ) FROM (SELECT * FROM items WHERE bank = $1) AS items",
        ),
    ],
)
def test_every_table_of_a_bank_is_limited_to_the_bank(sql: str, expected: str) -> None:
    assert scoped(sql) == Scoped(expected, names_bank=True)


def test_tables_beside_the_banks_are_not_limited() -> None:
    sql = "SELECT name, state FROM sources WHERE name = ?"
    assert scoped(sql) == Scoped("SELECT name , state FROM sources WHERE name = $1", False)


def test_a_question_mark_in_a_text_is_no_parameter_and_user_is_the_column() -> None:
    found = scoped("SELECT user FROM items WHERE title = 'why?' AND key = ?").sql
    assert found.startswith('SELECT "user" FROM')
    assert found.endswith("title = 'why?' AND key = $2")


def test_an_empty_list_matches_nothing() -> None:
    assert scoped("SELECT id FROM items WHERE id IN ()").sql.endswith("id IN ( NULL )")


@pytest.mark.parametrize(
    "sql",
    [
        "VACUUM items",
        "SELECT 1 FROM items, vectors",
        "INSERT INTO items VALUES (?)",
        "PRAGMA page_count",
    ],
)
def test_a_statement_outside_the_subset_is_refused(sql: str) -> None:
    with pytest.raises(ScopingRefused):
        scoped(sql)


@pytest.mark.parametrize("table", BANK_TABLES)
def test_deleting_all_rows_of_a_table_deletes_those_of_the_bank(table: str) -> None:
    assert scoped(f"DELETE FROM {table}").sql == f"DELETE FROM {table} WHERE {table}.bank = $1"
