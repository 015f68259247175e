"""scripts/prose.py finds free relative clauses and leaves ordinary English alone."""

from pathlib import Path

import pytest

from scripts.prose import LIMIT, files, main, measure, prose_of

FREE = [
    "What is read is checked.",
    "Every row that is read, and what it says, is checked.",
    "Who asks is told.",
    "It depends on who asks.",
    "It says who holds the lock.",
    "Whoever asks gets an answer.",
    "The same for stdio, whatever the transport.",
    "Two clients; who comes first wins.",
    "The call (who made it and when) is logged.",
    "Nobody knows whose session it is.",
    "**Who may write** is decided here.",
]
ORDINARY = [
    "A client who asks gets an answer.",
    "Those who wait get an answer.",
    "The bank, whose name is known, is opened.",
    "Users, some of whom have tokens, may write.",
    "Every row is verified when it is read.",
    "It is somewhat slower.",
    "What is a bank?",
    "How does it start, and what happens when it dies?",
    "The prompt is `what_do_we_know`, or `what is this`.",
    'It answers "what do we know about this" with passages.',
    "See https://example.org/what/who for more.",
    "See [the page](docs/what.md).",
]


def markdown(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


@pytest.mark.parametrize("sentence", FREE)
def test_a_free_relative_clause_is_found(sentence: str, tmp_path: Path) -> None:
    assert len(measure([markdown(tmp_path, sentence)]).clauses) == 1


@pytest.mark.parametrize("sentence", ORDINARY)
def test_ordinary_sentences_questions_and_code_are_ignored(sentence: str, tmp_path: Path) -> None:
    assert measure([markdown(tmp_path, sentence)]).clauses == []


def test_fenced_code_is_neither_searched_nor_counted(tmp_path: Path) -> None:
    path = markdown(tmp_path, "One two.\n\n```\nwhat is this\n```\n\nThree.\n")
    assert measure([path]) == (3, [], [])


def test_inline_code_does_not_count_as_words(tmp_path: Path) -> None:
    assert measure([markdown(tmp_path, "Run `scripts/prose.py --list` now.")]).words == 2


def test_a_lone_quotation_mark_does_not_hide_the_rest(tmp_path: Path) -> None:
    text = 'A 5" disk. ' + "Plain words follow. " * 15 + 'What is read is checked. A 3" disk.'
    assert len(measure([markdown(tmp_path, text)]).clauses) == 1


def test_the_cells_of_a_table_are_separate_sentences(tmp_path: Path) -> None:
    path = markdown(tmp_path, "| What is a bank? | who knows |\n|---|---|\n| a | b |\n")
    assert [found.text for found in measure([path]).clauses] == ["who knows"]


def test_docstrings_and_comments_of_python_are_measured_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        '"""What it is.\n\n    what_code(does)\n"""\n'
        "\n"
        "text = 'what is not prose'\n"
        "# A comment that goes on and says\n"
        "# who asked.\n"
        "def run() -> None:\n"
        '    """Whoever runs it."""\n'
    )
    found = measure([path]).clauses
    assert [(each.line, each.text) for each in found] == [
        (1, "What it is."),
        (10, "Whoever runs it."),
        (7, "A comment that goes on and says who asked."),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.sql", "SELECT 1; -- what is read\n"),
        ("a.mjs", "const url = 'http://what'; // what is sent\n"),
        ("a.toml", "key = 1  # what it is\n"),
    ],
)
def test_comments_of_other_languages_are_measured(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert len(measure([path]).clauses) == 1


def test_idioms_are_counted_apart(tmp_path: Path) -> None:
    path = markdown(tmp_path, "Nobody is told. Vectors are made anew behind your back.")
    found = measure([path])
    assert len(found.idioms) == 4
    assert found.clauses == []


def test_the_files_include_scripts_without_a_suffix_and_no_data() -> None:
    names = {path.name for path in files([])}
    assert {"README.md", "prose.py", "check", "run", "pyproject.toml"} <= names
    assert "vocab.txt" not in names
    assert "LICENSE" not in names


def test_the_run_prints_both_figures_and_passes_below_the_limit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["docs/errors.md"]) == 0
    printed = capsys.readouterr().out
    assert "free relative clauses: 0.00 per 1,000 words (at most 1)" in printed
    assert "idioms: " in printed
    # This module quotes clauses in strings, which are not prose; its docstring has none.
    assert main(["tests/scripts/test_prose.py"]) == 0


def test_the_rate_is_clauses_per_1000_words(tmp_path: Path) -> None:
    found = measure([markdown(tmp_path, "What is read is checked. " + "Plain words follow. " * 65)])
    assert found.words == 200
    assert found.rate == 5.0
    assert found.rate > LIMIT


def test_prose_is_read_paragraph_by_paragraph(tmp_path: Path) -> None:
    path = markdown(tmp_path, "# One\n\nTwo\nthree.\n\nFour.\n")
    assert [(line, text.strip()) for line, text in prose_of(path)] == [
        (1, "# One"),
        (3, "Two\nthree."),
        (6, "Four."),
    ]
