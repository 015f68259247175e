"""Engines for tests, with a clock that tests advance.

A test module with `BOTH_ENGINES = True` runs its tests with every engine, except for tests marked
`embedded`, which are about files. Each test gets a fresh directory or a fresh database.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from store.postgres.engine import open_postgres_engine
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.store.postgres.cluster import Cluster, cluster
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

ENGINES = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    is_embedded = any(metafunc.definition.iter_markers("embedded"))
    if (
        "engine" in metafunc.fixturenames
        and getattr(metafunc.module, "BOTH_ENGINES", False)
        and not is_embedded
    ):
        metafunc.parametrize("engine", ENGINES, indirect=True)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def server() -> Iterator[Cluster]:
    """A server for all tests of this process."""
    with cluster() as running:
        yield running


@pytest.fixture
def url(server: Cluster) -> Iterator[str]:
    """The address of a fresh database."""
    url = server.new_database()
    yield url
    server.drop_database(url)


@pytest.fixture
async def engine(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock
) -> AsyncIterator[EmbeddedEngine]:
    """An engine. Its type is that of the embedded one, which most tests use."""
    if getattr(request, "param", "sqlite") == "postgres":
        url: str = request.getfixturevalue("url")
        async with open_postgres_engine(url, ranking=PlainRanking, now=clock) as engine:
            yield engine  # type: ignore[misc]
    else:
        async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
            yield engine
