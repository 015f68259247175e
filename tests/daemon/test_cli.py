"""The command line on a terminal: `recalld stdio` explains itself, `recalld serve` is readable."""

import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

from tests.support.processes import PATIENCE, RECALLD, environment, recalld


def read_until(terminal: int, text: str) -> str:
    """The output of a terminal until a text occurs in it."""
    shown = ""
    deadline = time.monotonic() + PATIENCE
    while text not in shown:
        left = deadline - time.monotonic()
        assert left > 0 and select.select([terminal], [], [], left)[0], shown
        shown += os.read(terminal, 65_536).decode()
    return shown


def start(home: Path, *arguments: str) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a command whose standard streams are a terminal."""
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [*RECALLD, *arguments],
        env=environment(home),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    return process, main


def test_stdio_on_a_terminal_explains_itself_and_ends_with_control_d(tmp_path: Path) -> None:
    process, terminal = start(tmp_path, "stdio")
    try:
        shown = read_until(terminal, "Press Ctrl-D to end.")
        assert "is started by MCP clients" in shown
        assert "recalld setup" in shown
        os.write(terminal, b"\x04")
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        recalld(tmp_path, "stop")


def test_stdio_in_a_pipe_explains_nothing(tmp_path: Path) -> None:
    done = recalld(tmp_path, "stdio", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    recalld(tmp_path, "stop")


def test_serve_on_a_terminal_prints_readable_lines(tmp_path: Path) -> None:
    process, terminal = start(tmp_path, "serve", "--no-http")
    try:
        shown = read_until(terminal, "daemon.ready")
        shown += read_until(terminal, "\n") if not shown.endswith("\n") else ""
        assert re.search(r"^\d\d:\d\d:\d\d info +daemon\.ready  .*pid=\d+", shown, re.MULTILINE)
        assert "{" not in shown
        process.terminate()
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
