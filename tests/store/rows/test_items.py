"""Conditions on items, also on rows that earlier versions wrote."""

import pytest
from msgspec.structs import replace

from store.model import Filters, NewMemory
from store.rows.items import ITEMS, read_row
from store.rows.transaction import WriteTransaction
from store.sqlite.engine import EmbeddedEngine

pytestmark = pytest.mark.anyio
BOTH_ENGINES = True


@pytest.mark.parametrize("written", ['{"a":{"b":1e22}}', '{"a":{"b":1e+22}}'])
async def test_a_nested_large_number_is_found_whichever_library_wrote_it(
    engine: EmbeddedEngine, written: str
) -> None:
    put = await engine.put("w", NewMemory(text="far", metadata={"a": 1}))

    def rewrite(transaction: WriteTransaction) -> None:
        row = replace(read_row(transaction.connection, put.rowid), metadata=written)
        ITEMS.update(transaction.connection, row, transaction.next())

    await engine._write("w", rewrite)

    page = await engine.recent("w", filters=Filters(metadata={"a": {"b": 1e22}}))
    assert [item.metadata for item in page.items] == [{"a": {"b": 1e22}}]
