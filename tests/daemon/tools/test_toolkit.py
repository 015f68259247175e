"""Times as dialects show them."""

import pytest

from daemon.tools.toolkit import iso


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_736_937_000_000, "2025-01-15T10:30:00.000Z"),
        (1_736_937_000_001, "2025-01-15T10:30:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ],
)
def test_times_are_shown_in_utc_to_the_millisecond(milliseconds: int, shown: str) -> None:
    assert iso(milliseconds) == shown
