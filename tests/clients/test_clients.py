"""Other people's clients work with recalld, in every mode they have (tests/clients/matrix.py)."""

import shutil
from collections.abc import Iterator

import pytest

from scripts.kit import caches
from scripts.kit.ours import Home, fresh_home
from tests.clients import matrix

pytestmark = pytest.mark.clients

EVERYDAY = [case for case in matrix.cases() if case.everyday]


@pytest.fixture(scope="module")
def daemon() -> Iterator[tuple[Home, str]]:
    with fresh_home() as home:
        yield home, str(home.serve()["socket"])


@pytest.mark.parametrize("case", EVERYDAY, ids=str)
def test_the_client_lists_calls_follows_cancels_and_leaves(
    case: matrix.Case, daemon: tuple[Home, str]
) -> None:
    if not case.peer.startswith("mcp-") and not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("Node and npm are not on this machine")
    try:
        matrix.prepare(case)
    except caches.Unavailable as reason:
        pytest.skip(f"{case.client} cannot be installed here: {reason}")

    outcome = matrix.run(case, *daemon)

    assert outcome.fault is None
