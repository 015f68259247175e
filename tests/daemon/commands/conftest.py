"""Fixtures of the tests of `recalld bank`."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tests.daemon.commands.bank_home import BankHome, placed, seeded


@pytest.fixture(params=["daemon", "alone"])
def bank_home(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[BankHome]:
    with placed(tmp_path, is_served=request.param == "daemon") as made:
        yield made


@pytest.fixture
def stopped_home(tmp_path: Path) -> BankHome:
    return BankHome(tmp_path, tmp_path, seeded(tmp_path))
