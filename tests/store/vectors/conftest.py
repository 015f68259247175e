"""A table of vectors, without a bank around it."""

from collections.abc import Iterator

import pytest

from tests.store.vectors.table import Table


@pytest.fixture
def table() -> Iterator[Table]:
    made = Table()
    yield made
    made.connection.close()
