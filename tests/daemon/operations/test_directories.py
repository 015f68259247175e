"""Directories: new ones are private, existing ones are not changed."""

import os
import stat
from pathlib import Path

import pytest

from daemon.exit_codes import Exit
from daemon.operations import directories
from tests.support.processes import PATIENCE, child, recalld


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def chosen(tmp_path: Path, bits: int) -> Path:
    place = tmp_path / "chosen"
    place.mkdir()
    place.chmod(bits)
    return place


@pytest.mark.parametrize("bits", [0o1777, 0o755, 0o700])
def test_a_chosen_directory_for_the_socket_keeps_its_mode(tmp_path: Path, bits: int) -> None:
    place = chosen(tmp_path, bits)
    path = str(place / "r.sock")
    home = tmp_path / "home"
    with child(home, "serve", "--no-http", "--socket", path) as started:
        while recalld(home, "health", "--socket", path).returncode == 2:
            assert started.process.poll() is None, started.errors()
        assert mode(place) == bits
        assert mode(place / "r.sock") == 0o600
        assert recalld(home, "stop", "--socket", path).returncode == 0
        assert started.wait(PATIENCE) == 0
    assert mode(place) == bits


@pytest.mark.parametrize("bits", [0o777, 0o775])
def test_the_error_for_a_directory_that_others_can_write_to_is_one_line(
    tmp_path: Path, bits: int
) -> None:
    place = chosen(tmp_path, bits)
    home = tmp_path / "home"
    done = recalld(home, "serve", "--no-http", "--socket", str(place / "r.sock"))
    assert done.returncode == 73
    assert done.stderr.count("\n") == 1
    assert f"{place}: others can write to it" in done.stderr
    assert mode(place) == bits
    assert list(place.iterdir()) == []


def test_a_path_that_is_too_long_changes_nothing(tmp_path: Path) -> None:
    place = chosen(tmp_path, 0o755)
    home = tmp_path / "home"
    for path in (place / ("x" * 100), place / ("y" * 100) / "r.sock"):
        done = recalld(home, "serve", "--no-http", "--socket", str(path))
        assert done.returncode == 73
        assert "a socket's path has 107" in done.stderr
    assert mode(place) == 0o755
    assert list(place.iterdir()) == []
    assert not home.exists()


def test_a_directory_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = chosen(tmp_path, 0o755)
    if os.geteuid() == 0:
        os.chown(place, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Exit, match="belongs to another user"):
        directories.accept(place)


@pytest.mark.parametrize("command", ["serve", "stdio"])
def test_a_new_home_and_its_content_are_private(tmp_path: Path, command: str) -> None:
    home = tmp_path / "new" / "home"
    arguments = ("serve", "--no-http") if command == "serve" else ("stdio",)
    with child(home, *arguments) as started:
        while recalld(home, "health").returncode == 2:
            assert started.process.poll() is None, started.errors()
        assert recalld(home, "stop").returncode == 0
    found = [home.parent, home, *(path for path in home.rglob("*") if path.is_dir())]
    assert {str(path): oct(mode(path)) for path in found} == {str(p): oct(0o700) for p in found}


def test_an_existing_home_keeps_its_mode_and_its_subdirectories_become_private(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    for path in (home, home / "data", home / "run"):
        path.mkdir()
        path.chmod(0o755)
    with child(home, "serve", "--no-http") as started:
        while recalld(home, "health").returncode == 2:
            assert started.process.poll() is None, started.errors()
        assert [oct(mode(home / name)) for name in (".", "data", "run")] == [
            oct(0o755),
            oct(0o700),
            oct(0o700),
        ]
