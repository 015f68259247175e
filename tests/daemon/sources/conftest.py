"""The fixture `docs`: a folder as a source, with an engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.daemon.sources.kit import Bench, bench


@pytest.fixture
async def docs(tmp_path: Path) -> AsyncIterator[Bench]:
    async with bench(tmp_path) as made:
        yield made
