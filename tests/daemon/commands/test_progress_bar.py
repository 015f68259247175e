"""The progress bar: a bar with counts if the size is known, else the elapsed time."""

import pytest

from daemon.commands.progress_bar import ProgressBar, line


def test_a_known_size_is_a_bar_with_counts() -> None:
    text = line("import", 5_000, 10_000, 2.4)
    assert text == "import: [############............] 50 %  5,000 of 10,000  2 s"
    assert "100 %" in line("import", 12, 10, 1)


def test_steps_of_different_kinds_are_a_percentage() -> None:
    text = line("backup", 250, 1_000, 2.4, in_percent=True)
    assert text == "backup: [######..................] 25 %  2 s"


def test_an_unknown_size_is_the_elapsed_time() -> None:
    assert line("backup", 0, 0, 3.2) == "backup: 3 s"


def test_quick_work_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    bar = ProgressBar("backup", is_shown=True)
    bar.update(0, 0)
    bar.clear()
    hidden = ProgressBar("export", is_shown=False)
    hidden.update(1, 2)
    hidden.clear()
    assert capsys.readouterr().err == ""
