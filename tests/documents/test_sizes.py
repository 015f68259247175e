"""Packages and modules stay small enough to read."""

import subprocess
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MOST_MODULES = 15
MOST_LINES = 450

#: Suites have one module for each part of the protocol, as many as the protocol has.
SUITES = {"conformance/suites"}

#: Still to be split. Remove an entry as soon as its test passes; both sets must become empty.
PENDING_PACKAGES: set[str] = set()
PENDING_MODULES: set[str] = set()


def modules() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [name for name in listed.stdout.split("\n") if name and (ROOT / name).is_file()]


MODULES = modules()
#: `__init__.py` names a package and is not counted as one of its modules.
PACKAGES = Counter(str(Path(name).parent) for name in MODULES if not name.endswith("/__init__.py"))
LINES = {name: len((ROOT / name).read_text().splitlines()) for name in MODULES}


@pytest.mark.parametrize("package", sorted(set(PACKAGES) - PENDING_PACKAGES - SUITES))
def test_a_package_has_at_most_15_modules(package: str) -> None:
    assert PACKAGES[package] <= MOST_MODULES


def test_no_module_exceeds_450_lines() -> None:
    long = {name: lines for name, lines in LINES.items() if lines > MOST_LINES}
    assert {name: lines for name, lines in long.items() if name not in PENDING_MODULES} == {}


def test_nothing_is_pending_that_has_been_split() -> None:
    assert [name for name in PENDING_PACKAGES if PACKAGES[name] <= MOST_MODULES] == []
    assert [name for name in PENDING_MODULES if LINES.get(name, 0) <= MOST_LINES] == []
