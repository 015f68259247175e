"""The table of revisions."""

from protocol.revisions import ALL, SUPPORTED


def test_revisions_are_listed_once_and_newest_first() -> None:
    assert sorted(SUPPORTED, reverse=True) == SUPPORTED
    assert len(ALL) == 5
