"""Third-party MCP clients work with recalld in each of their modes (tests/clients/matrix.py)."""

from collections.abc import Iterator

import pytest

from scripts.kit.recalld import Home, fresh_home
from tests.clients import matrix

pytestmark = pytest.mark.clients

CI_CASES = [case for case in matrix.cases() if case.in_ci]


@pytest.fixture(scope="module")
def daemon() -> Iterator[tuple[Home, str, str]]:
    with fresh_home() as home:
        served = home.serve(bind="127.0.0.1:0")
        yield home, str(served["socket"]), str(served["http"])


@pytest.fixture(scope="module")
def absent() -> dict[str, str]:
    """Clients that could not be installed (no Node.js or no registry), with the reason."""
    return matrix.install(CI_CASES)


@pytest.mark.parametrize("case", CI_CASES, ids=str)
def test_the_client_lists_and_calls_tools_gets_progress_cancels_and_exits(
    case: matrix.Case, daemon: tuple[Home, str, str], absent: dict[str, str]
) -> None:
    if case.peer in absent:
        pytest.skip(f"{case.client} cannot be installed here: {absent[case.peer]}")

    outcome = matrix.run(case, *daemon)

    assert outcome.fault is None
