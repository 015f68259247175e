"""Exact cosines of stored vectors."""

import pytest

from store.vectors.stored import scan
from tests.store.vectors.table import MODEL, Table, random_vectors


def test_a_scan_obeys_a_condition_and_says_when_it_stopped_early(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.put(random_vectors(30))
    table.connection.execute("UPDATE items SET kind = 'task' WHERE id <= 5")
    query = random_vectors(1)[0]
    found, _ = scan(table.connection, query, MODEL, 10, "items.kind = ?", ["task"])
    assert set(found) == {1, 2, 3, 4, 5}
    monkeypatch.setattr("store.vectors.stored.SCAN_LIMIT", 20)
    found, is_all = scan(table.connection, query, MODEL, 30)
    assert not is_all and min(found) >= 10
