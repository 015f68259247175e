"""Fixtures: one daemon for all contract tests, and clients for every transport and revision."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contracts.client import REVISIONS, TRANSPORTS, Client, Home, OpenClient, connect


@pytest.fixture(scope="session")
def daemon() -> Iterator[Home]:
    home = Home()
    home.serve()
    yield home
    home.close()


@pytest.fixture(scope="session")
def clients(daemon: Home) -> Iterator[Callable[[str, str], Client]]:
    """Return the shared client of a transport and revision, opened on first use."""
    made: dict[tuple[str, str], Client] = {}
    homes: list[Home] = []

    def client(transport: str, revision: str) -> Client:
        found = made.get((transport, revision))
        if found is None:
            home = daemon
            if transport == "embedded":
                home = Home()
                homes.append(home)
            found = made[transport, revision] = connect(home, transport, revision)
        return found

    yield client
    for each in made.values():
        each.close()
    for home in homes:
        home.close()


@pytest.fixture
def open_client(daemon: Home) -> Iterator[OpenClient]:
    """Open clients of the daemon and close them after the test."""
    made: list[Client] = []

    def connect_to_daemon(
        transport: str = "unix", revision: str = "2025-11-25", bank: str = ""
    ) -> Client:
        made.append(connect(daemon, transport, revision, bank))
        return made[-1]

    yield connect_to_daemon
    for client in made:
        client.close()


@pytest.fixture
def memory(daemon: Home) -> Iterator[Client]:
    """A socket client whose default memory does not exist yet."""
    client = connect(daemon, "unix")
    yield client
    client.close()


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def client(clients: Callable[[str, str], Client], transport: str, revision: str) -> Client:
    return clients(transport, revision)
