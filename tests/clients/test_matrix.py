"""Other people's clients work with recalld, in every mode they have (tests/clients/matrix.py)."""

from collections.abc import Iterator

import pytest

from scripts.kit.ours import Home, fresh_home
from tests.clients import matrix

pytestmark = pytest.mark.clients

EVERYDAY = [case for case in matrix.cases() if case.everyday]


@pytest.fixture(scope="module")
def daemon() -> Iterator[tuple[Home, str, str]]:
    with fresh_home() as home:
        served = home.serve(bind="127.0.0.1:0")
        yield home, str(served["socket"]), str(served["http"])


@pytest.fixture(scope="module")
def absent() -> dict[str, str]:
    """Clients that could not be installed (no Node, no registry), and why."""
    return matrix.install(EVERYDAY)


@pytest.mark.parametrize("case", EVERYDAY, ids=str)
def test_the_client_lists_calls_follows_cancels_and_leaves(
    case: matrix.Case, daemon: tuple[Home, str, str], absent: dict[str, str]
) -> None:
    if case.peer in absent:
        pytest.skip(f"{case.client} cannot be installed here: {absent[case.peer]}")

    outcome = matrix.run(case, *daemon)

    assert outcome.fault is None
