"""A daemon, and a client for every way in and every revision, made when first needed."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.contracts.client import REVISIONS, WAYS, Client, Home

_banks = itertools.count(1)


@pytest.fixture(scope="session")
def daemon() -> Iterator[Home]:
    home = Home()
    home.serve()
    yield home
    home.close()


@pytest.fixture(scope="session")
def clients(daemon: Home) -> Iterator[Callable[[str, str], Client]]:
    """The client of a way and a revision, with a bank of its own; the same one every time."""
    made: dict[tuple[str, str], Client] = {}
    homes: list[Home] = []

    def client(way: str, revision: str) -> Client:
        found = made.get((way, revision))
        if found is None:
            home = daemon
            if way == "embedded":
                home = Home()
                homes.append(home)
            found = made[way, revision] = connect(home, way, revision)
        return found

    yield client
    for each in made.values():
        each.close()
    for home in homes:
        home.close()


def connect(home: Home, way: str, revision: str = "2025-11-25", bank: str = "") -> Client:
    """A client whose default bank nobody else has."""
    bank = bank or f"bank-{next(_banks)}"
    if way == "unix":
        return Client(way, revision, home, bank=bank)
    return Client(way, revision, home, "--bank", bank)


Join = Callable[..., Client]


@pytest.fixture
def join(daemon: Home) -> Iterator[Join]:
    """Connects to the daemon (`way`, `revision`, `bank`) for the length of one test."""
    made: list[Client] = []

    def one(way: str = "unix", revision: str = "2025-11-25", bank: str = "") -> Client:
        made.append(connect(daemon, way, revision, bank))
        return made[-1]

    yield one
    for client in made:
        client.close()


@pytest.fixture
def memory(daemon: Home) -> Iterator[Client]:
    """A client on the socket whose default memory is new."""
    client = connect(daemon, "unix")
    yield client
    client.close()


@pytest.fixture(params=REVISIONS)
def revision(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def client(clients: Callable[[str, str], Client], way: str, revision: str) -> Client:
    return clients(way, revision)
