"""scripts/references.py finds references that lead nowhere and accepts those that resolve."""

from pathlib import Path

import pytest

from scripts.references import ROOT, dangling, marks_in_strings, references

DANGLING = [
    "As D14 says.",
    "See DESIGN section 6.",
    "Claude Recall (seed 003) limits the rate.",
    "For the reason in decision 39.",
    "See DECISIONS.md for the reason.",
    "The first three (a to c) hold.",
    "The case V99 covers it.",
    "See `daemon/nowhere.py`.",
    "See store/sqlite/nowhere.py for the reason.",
    "The function `store.sqlite.database.nowhere` runs it.",
    "The module `store.nowhere` has it.",
    "As `nowhere.py` says.",
    "See store/README rule 99.",
    "See [the page](nowhere.md).",
    "See [the section](README.md#nowhere).",
]
RESOLVED = [
    "See `protocol/errors.py` and `store/sqlite/`.",
    "Run `scripts/bench.py wire` or `scripts/conform --official`.",
    "The class `protocol.errors.Fault` and the method `store.sqlite.database.Database.write`.",
    "The setting `daemon.idle_seconds` and the file `daemon.log`.",
    "The cases J03 and J26c, and the stem J26.",
    "A new file `docs/<name>.md`, or `tests/**/test_*.py`, or `scripts/benches/NAME.py`.",
    "See store/README.md, rule 4.",
    "See [the map](ARCHITECTURE.md#packages), [below](#documentation) and [the web](https://x.org).",
    "RFC 9110 section 9.3.2; SHA-256; UTF-8; 2025-06-18; an A4 page.",
]


@pytest.mark.parametrize("text", DANGLING)
def test_a_dangling_reference_is_found(text: str) -> None:
    assert len(set(references(text, ROOT / "README.md"))) == 1


@pytest.mark.parametrize("text", RESOLVED)
def test_a_reference_that_resolves_is_accepted(text: str) -> None:
    assert list(references(text, ROOT / "README.md")) == []


def test_docstrings_and_comments_are_searched_and_strings_are_not(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Obeys D3."""\n\nname = "D4"  # not D5\n')
    assert [(each.line, each.reference) for each in dangling([path])] == [(1, "D3"), (3, "D5")]


def test_marks_in_string_literals_are_found_and_docstrings_are_left_to_the_prose(
    tmp_path: Path,
) -> None:
    path = tmp_path / "module.py"
    path.write_text('"""Obeys D3."""\n\nmessage = f"refused, see seed 003"\nother = "D"\n')
    assert list(marks_in_strings(path)) == [(3, "seed 003")]


def test_the_module_column_of_a_table_names_modules_near_the_page() -> None:
    page = ROOT / "protocol" / "README.md"
    table = "| noun | module |\n|---|---|\n| frame | `framing`, `jsonrpc.decode` |\n| x | `gone` |"
    assert list(references(table, page)) == ["gone"]
