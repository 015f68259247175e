"""ARCHITECTURE.md agrees with the tree: packages, purposes and imports."""

import re

import pytest

from scripts.import_graph import ROOT, TOP_LEVEL, below, read
from scripts.tables import TABLES

PAGE = (ROOT / "ARCHITECTURE.md").read_text()
GRAPH = read()


def rows(table: str) -> dict[str, list[str]]:
    """The other cells of each row, by package."""
    text = PAGE.partition(TABLES[table].header)[2].partition("\n\n")[0]
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        assert name.strip("`") not in found, f"{name} is listed twice"
        found[name.strip("`")] = cells
    return found


def names(cell: str) -> set[str]:
    return set(re.findall(r"`([\w.]+)`", cell))


def test_the_map_lists_every_package_once() -> None:
    assert set(rows("packages")) == set(GRAPH.packages)
    assert list(rows("top-level")) == list(TOP_LEVEL)


@pytest.mark.parametrize("package", sorted(rows("packages")))
def test_a_package_is_described_in_one_sentence(package: str) -> None:
    purpose = rows("packages")[package][0]
    assert re.fullmatch(r"[A-Z`][^.]{10,}\.", purpose), purpose


@pytest.mark.parametrize("package", sorted(rows("packages")))
def test_the_arrows_of_a_package_are_its_imports(package: str) -> None:
    assert names(rows("packages")[package][1]) == GRAPH.internal[package], (
        "if the new dependency is intended, run scripts/tables.py --write"
    )


@pytest.mark.parametrize("top", TOP_LEVEL)
def test_the_arrows_of_a_top_level_package_are_its_imports(top: str) -> None:
    purpose, internal, external = rows("top-level")[top]
    inside = below(GRAPH, top)
    found = {name.partition(".")[0] for each in inside for name in GRAPH.internal[each]} - {top}
    assert purpose.endswith(".")
    assert names(internal) == found
    assert names(external) == {name for each in inside for name in GRAPH.external[each]}
