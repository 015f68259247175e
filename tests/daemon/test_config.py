"""Settings: where they come from, and what bad ones are told."""

from pathlib import Path

import pytest

from daemon.config import LONGEST_SOCKET_PATH, SETTINGS, load, unknown_variables
from daemon.exit_codes import CONFIG, Exit


def test_flags_win_over_environment_over_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[limits]\nrequests_per_minute = 1\nin_flight = 7\n")
    home = {"RECALLD_HOME": str(tmp_path)}
    assert load({}, home).requests_per_minute == 1
    assert load({}, {**home, "RECALLD_RATE_LIMIT": "2"}).requests_per_minute == 2
    flags = {"limits.requests_per_minute": 3}
    assert load(flags, {**home, "RECALLD_RATE_LIMIT": "2"}).requests_per_minute == 3
    assert load({}, home).in_flight == 7


def test_the_seeds_own_variable_is_honoured_and_ours_wins(tmp_path: Path) -> None:
    home = {"RECALLD_HOME": str(tmp_path), "CLAUDE_RECALL_RATE_LIMIT": "5"}
    assert load({}, home).requests_per_minute == 5
    assert load({}, {**home, "RECALLD_RATE_LIMIT": "0"}).requests_per_minute == 0


def test_fixtures_have_no_rate_limit_unless_one_is_set(tmp_path: Path) -> None:
    home = {"RECALLD_HOME": str(tmp_path)}
    fixtures = {"server.fixtures": True}
    assert load({}, home).requests_per_minute == 100
    assert load(fixtures, home).requests_per_minute == 0
    assert load({}, {**home, "RECALLD_FIXTURES": "1"}).requests_per_minute == 0
    assert load(fixtures, {**home, "CLAUDE_RECALL_RATE_LIMIT": "5"}).requests_per_minute == 5
    (tmp_path / "config.toml").write_text("[limits]\nrequests_per_minute = 100\n")
    assert load(fixtures, home).requests_per_minute == 100


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("RECALLD_RATE_LIMIT", "many", "whole number"),
        ("RECALLD_RATE_LIMIT", "-1", "from 0"),
        ("RECALLD_RATE_LIMIT", "1.5", "whole number"),
        ("RECALLD_IDLE_SECONDS", "soon", "number"),
        ("RECALLD_IDLE_SECONDS", "nan", "number"),
        ("RECALLD_LOG_LEVEL", "loud", "debug, info"),
        ("RECALLD_FIXTURES", "maybe", "true nor false"),
        ("RECALLD_SOCKET", "a\0b", "not text"),
    ],
)
def test_a_bad_value_is_named_with_its_rule(variable: str, value: str, words: str) -> None:
    with pytest.raises(Exit) as raised:
        load({}, {variable: value})
    assert raised.value.code == CONFIG
    assert variable in raised.value.message
    assert words in raised.value.message


@pytest.mark.parametrize(
    ("embedding", "words"),
    [
        ({"URL": "http://127.0.0.1/v1"}, "embedding.model: required"),
        ({"URL": "http://127.0.0.1/v1", "MODEL": "m"}, "embedding.dims: required"),
        ({"MODEL": "m"}, "embedding.model: of no use without embedding.url"),
        ({"KEY": "k"}, "embedding.key: of no use"),
        ({"FILE": "/m.onnx", "HASHED": "1"}, "embedding.file and embedding.hashed: choose one"),
    ],
)
def test_half_an_embedder_is_refused(embedding: dict[str, str], words: str) -> None:
    with pytest.raises(Exit) as raised:
        load({}, {f"RECALLD_EMBEDDING_{name}": value for name, value in embedding.items()})
    assert raised.value.code == CONFIG and words in raised.value.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[limit]\nrequests_per_minute = 1\n", "did you mean limits.requests_per_minute"),
        ("limits = 3\n", "unknown setting limits"),
        ("[limits]\nzzz = 1\n", "unknown setting limits.zzz"),
        ("[limits\n", "not TOML"),
        ("[limits]\nrequests_per_minute = true\n", "config.toml: limits.requests_per_minute"),
        ("\udcff", "not TOML"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(Exit) as raised:
        load({}, {"RECALLD_HOME": str(tmp_path)})
    assert words in raised.value.message
    assert raised.value.message.startswith(f"config file {path}: ")
    assert "\n" not in raised.value.message


def test_an_unreadable_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(Exit, match=r"config\.toml: cannot be read"):
        load({}, {"RECALLD_HOME": str(tmp_path)})


def test_a_wrong_dialect_is_refused_with_where_it_was_named() -> None:
    for flags, variables, where in (
        ({"server.dialects": "recall,foo"}, {}, "--dialects"),
        ({}, {"RECALLD_DIALECTS": "recall,foo"}, "RECALLD_DIALECTS"),
    ):
        with pytest.raises(Exit, match=f"{where}: 'foo' is not one of hindsight") as raised:
            load(flags, variables)
        assert raised.value.code == CONFIG


def test_a_variable_that_is_none_of_ours_is_remarked_on() -> None:
    known = {variable: "" for setting in SETTINGS for variable in setting.variables}
    assert unknown_variables({**known, "RECALLD_HOME": "/x", "PATH": "/y"}) == []
    (near, far) = unknown_variables({"RECALLD_RATELIMIT": "5", "RECALLD_ZZZ": "1"})
    assert near.startswith("RECALLD_RATELIMIT: ")
    assert near.endswith("did you mean RECALLD_RATE_LIMIT?")
    assert "did you mean" not in far


def test_directories_follow_xdg(tmp_path: Path) -> None:
    found = load({}, {"HOME": "/home/x"}).directories
    assert found.data == Path("/home/x/.local/share/recalld")
    assert found.runtime == Path("/home/x/.local/state/recalld/run")
    xdg = {"HOME": "/h", "XDG_DATA_HOME": "/d", "XDG_RUNTIME_DIR": "/r", "XDG_STATE_HOME": "rel"}
    found = load({}, xdg).directories
    assert (found.data, found.runtime) == (Path("/d/recalld"), Path("/r/recalld"))
    assert found.state == Path("/h/.local/state/recalld")


def test_a_socket_path_that_is_too_long_moves_somewhere_short(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    settings = load({}, {"RECALLD_HOME": str(deep)})
    assert len(str(settings.socket)) <= LONGEST_SOCKET_PATH
    assert settings.socket == load({}, {"RECALLD_HOME": str(deep)}).socket
    assert settings.socket != load({}, {"RECALLD_HOME": str(deep) + "y"}).socket
    assert load({"server.socket": "/s"}, {}).socket == Path("/s")


def test_every_setting_has_a_default_its_own_reader_accepts() -> None:
    for setting in SETTINGS:
        assert setting.read("default", setting.default) == setting.default
        assert setting.about
