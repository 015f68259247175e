"""An engine in a temporary directory, with a clock that tests advance."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def engine(tmp_path: Path, clock: Clock) -> AsyncIterator[EmbeddedEngine]:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        yield engine
