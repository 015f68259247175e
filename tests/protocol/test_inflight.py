"""The table of requests in flight."""

from protocol.inflight import InFlight


def test_an_entry_leaves_the_table_exactly_once() -> None:
    table: InFlight[object] = InFlight()
    first, second = object(), object()
    assert table.begin(b"1", first)
    assert not table.begin(b"1", second)
    assert not table.finish(b"1", second)
    assert table.values() == [first]
    assert table.finish(b"1", first)
    assert not table.finish(b"1", first)
    assert len(table) == 0
    assert b"1" not in table
