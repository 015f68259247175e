"""Decisions under docs/decisions/ have the usual form and are listed in the index."""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent.parent / "docs" / "decisions"
FILES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
INDEX = (FOLDER / "README.md").read_text()
ROW = re.compile(
    r"^\| \[(\d{4})\]\(([\w-]+\.md)\) \| (.+) \| (accepted|superseded[\w ]*) \|$", re.M
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_decision_has_a_number_status_date_context_decision_and_consequences(path: Path) -> None:
    number = re.match(r"(\d{4})-[a-z0-9-]+\.md$", path.name)
    assert number, path.name
    text = path.read_text()
    form = (
        rf"# {number[1]}\. .+\n\n- Status: (accepted|superseded).*\n- Date: 20\d\d-\d\d-\d\d\n\n"
        r"## Context\n\n[^#]+\n\n## Decision\n\n[^#]+\n\n## Consequences\n\n[^#]+"
    )
    assert re.match(form, text), path.name


def test_the_numbers_have_no_gaps() -> None:
    assert [int(path.name[:4]) for path in FILES] == list(range(1, len(FILES) + 1))


def test_the_index_lists_every_decision_with_its_title_and_status() -> None:
    assert all(name.startswith(number) for number, name, _, _ in ROW.findall(INDEX))
    rows = {name: (title, status) for _, name, title, status in ROW.findall(INDEX)}
    assert sorted(rows) == [path.name for path in FILES]
    for path in FILES:
        text = path.read_text()
        title, status = rows[path.name]
        assert text.startswith(f"# {path.name[:4]}. {title}\n")
        assert f"- Status: {status}" in text
