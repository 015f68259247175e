"""scripts/tables.py replaces the rows of a generated table and nothing else."""

import pytest

from scripts.tables import TABLES, Table, main, with_table

HEADER = "| name | value |\n|---|---|\n"


def table(*rows: str) -> Table:
    return Table("page.md", HEADER, lambda: list(rows))


def test_the_rows_below_the_header_are_replaced() -> None:
    page = f"# Page\n\n{HEADER}| old | 1 |\n| older | 2 |\n\nText below.\n\n| other |\n"
    written = with_table(page, table("| new | 3 |"))
    assert written == f"# Page\n\n{HEADER}| new | 3 |\n\nText below.\n\n| other |\n"


def test_a_page_without_the_header_is_an_error() -> None:
    with pytest.raises(ValueError, match="substring not found"):
        with_table("# Page\n", table("| new | 3 |"))


@pytest.mark.parametrize("name", sorted(TABLES))
def test_a_table_is_printed_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 0
    assert capsys.readouterr().out.startswith(TABLES[name].header)


def test_an_unknown_name_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 64
    assert "scripts/tables.py --write" in capsys.readouterr().err
