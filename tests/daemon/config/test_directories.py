"""The locations of recalld's files."""

from pathlib import Path

from daemon.config import load
from daemon.config.directories import LONGEST_SOCKET_PATH


def test_directories_follow_xdg(tmp_path: Path) -> None:
    found = load({}, {"HOME": "/home/x"}).directories
    assert found.data == Path("/home/x/.local/share/recalld")
    assert found.runtime == Path("/home/x/.local/state/recalld/run")
    xdg = {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r", "XDG_STATE_HOME": "rel"}
    found = load({}, xdg).directories
    assert (found.data, found.runtime) == (Path("/d/recalld"), Path("/r/recalld"))
    assert found.state == Path("/h/.local/state/recalld")


def test_a_socket_path_that_is_too_long_moves_to_a_short_directory(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    settings = load({}, {"RECALLD_HOME": str(deep)})
    assert len(str(settings.socket)) <= LONGEST_SOCKET_PATH
    assert settings.socket == load({}, {"RECALLD_HOME": str(deep)}).socket
    assert settings.socket != load({}, {"RECALLD_HOME": str(deep) + "y"}).socket
    assert load({"server.socket": "/s"}, {}).socket == Path("/s")
