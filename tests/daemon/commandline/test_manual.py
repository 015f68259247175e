"""The man page describes every command and is valid roff."""

import shutil
import subprocess

import pytest

from daemon.commandline.manual import page
from daemon.commandline.table import COMMANDS


def test_the_page_has_a_section_for_every_command() -> None:
    lines = page()
    assert lines[0].startswith(".TH RECALLD 1")
    for command in COMMANDS:
        assert f'.SS "recalld {command.name}"' in lines
    text = "\n".join(lines)
    assert r"\fBrecalld bank export\fR" in text
    assert r"\-\-explain" in text
    assert "spawned" not in text


def test_no_line_of_text_is_taken_for_a_request() -> None:
    requests = {".TH", ".SH", ".SS", ".TP", ".B", ".I", ".RS", ".RE"}
    for line in page():
        assert line[:1] not in (".", "'") or line.split()[0] in requests, line


def test_groff_accepts_the_page() -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww"],
        input="\n".join(page()) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
