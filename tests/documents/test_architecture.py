"""ARCHITECTURE.md agrees with the tree: packages, purposes, imports, and sizes."""

import re
from pathlib import Path

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


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_graph_sees_imports_of_every_form(tmp_path: Path) -> None:
    write(tmp_path / "one" / "__init__.py", "")
    write(tmp_path / "one" / "inner" / "__init__.py", "")
    write(tmp_path / "one" / "inner" / "leaf.py", "import os\nimport numpy.linalg\n")
    write(tmp_path / "one" / "user.py", "from one.inner import leaf\n")
    write(tmp_path / "two" / "__init__.py", "")
    write(
        tmp_path / "two" / "lazy.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from one.user import X\n"
        "def load():\n    import one.inner.leaf\n",
    )

    graph = read(tmp_path, ("one", "two"))

    assert graph.packages == {"one", "one.inner", "two"}
    assert graph.internal == {
        "one": {"one.inner"},
        "one.inner": frozenset(),
        "two": {"one", "one.inner"},
    }
    assert graph.external["one.inner"] == {"numpy"}
