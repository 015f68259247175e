"""Files of `recalld bank export` and `import`: special files, `-` for stdin and stdout."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.daemon.commands.bank_home import BankHome
from tests.support.processes import RECALLD, recalld


def make_special(path: Path, kind: str) -> None:
    if kind == "link":
        target = path.with_name("target")
        target.write_text("precious")
        path.symlink_to(target)
    elif kind == "dangling link":
        path.symlink_to(path.with_name("missing"))
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    else:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 3))


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "socket", "device"])
def test_export_replaces_only_a_regular_file_even_with_force(
    stopped_home: BankHome, kind: str
) -> None:
    if kind == "device" and os.geteuid() != 0:
        pytest.skip("only root can create a device")
    path = stopped_home.cwd / "special"
    make_special(path, kind)
    before = (path.lstat().st_mode, path.lstat().st_ino)
    code, why = stopped_home.refused("export", "work", "special", "--force")
    assert code == 64
    assert "special: is not a regular file; choose another name" in why
    assert (path.lstat().st_mode, path.lstat().st_ino) == before
    if kind == "link":
        assert path.read_text() == "precious"


def test_a_dash_means_stdout_for_export_and_stdin_for_import(bank_home: BankHome) -> None:
    bank_home.ok("export", "work", "file.jsonl")
    written = (bank_home.cwd / "file.jsonl").read_bytes().splitlines()
    (bank_home.cwd / "file.jsonl").unlink()
    exported = bank_home.ok("export", "work", "-").encode()
    assert exported.splitlines()[1:-1] == written[1:-1]
    done = recalld(bank_home.home, "bank", "import", "copy", "-", input=exported.decode())
    assert (done.returncode, done.stdout) == (
        0,
        "copy: 5 records taken, 0 were there already\n",
    )
    assert bank_home.items("copy") == 4
    assert list(bank_home.cwd.iterdir()) == []


def test_errors_about_standard_input_name_it(stopped_home: BankHome) -> None:
    done = recalld(stopped_home.home, "bank", "import", "copy", "-", input="nonsense\n")
    assert done.returncode == 64
    assert "standard input" in done.stderr
    assert "/tmp" not in done.stderr


def test_an_export_to_a_closed_pipe_is_no_error(stopped_home: BankHome) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        done = subprocess.run(
            [*RECALLD, "bank", "export", "work", "-"],
            env={**os.environ, "RECALLD_HOME": str(stopped_home.home)},
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")
