"""Loading settings: precedence of the sources, unknown keys, unreadable files."""

from pathlib import Path

import pytest

from daemon.config import SETTINGS, load, unknown_variables
from daemon.exit_codes import Exit


def test_flags_override_variables_and_variables_override_the_file(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("[limits]\nrequests_per_minute = 1\nin_flight = 7\n")
    home = {"RECALLD_HOME": str(tmp_path)}
    assert load({}, home).requests_per_minute == 1
    assert load({}, {**home, "RECALLD_RATE_LIMIT": "2"}).requests_per_minute == 2
    flags = {"limits.requests_per_minute": 3}
    assert load(flags, {**home, "RECALLD_RATE_LIMIT": "2"}).requests_per_minute == 3
    assert load({}, home).in_flight == 7


def test_the_recalld_variable_overrides_the_one_of_claude_recall(
    tmp_path: Path,
) -> None:
    home = {"RECALLD_HOME": str(tmp_path), "CLAUDE_RECALL_RATE_LIMIT": "5"}
    assert load({}, home).requests_per_minute == 5
    assert load({}, {**home, "RECALLD_RATE_LIMIT": "0"}).requests_per_minute == 0


def test_fixtures_disable_the_rate_limiter_unless_a_limit_is_set(tmp_path: Path) -> None:
    home = {"RECALLD_HOME": str(tmp_path)}
    fixtures = {"server.fixtures": True}
    assert load({}, home).requests_per_minute == 100
    assert load(fixtures, home).requests_per_minute == 0
    assert load({}, {**home, "RECALLD_FIXTURES": "1"}).requests_per_minute == 0
    assert load(fixtures, {**home, "CLAUDE_RECALL_RATE_LIMIT": "5"}).requests_per_minute == 5
    (tmp_path / "config.toml").write_text("[limits]\nrequests_per_minute = 100\n")
    assert load(fixtures, home).requests_per_minute == 100


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
def test_the_error_for_a_bad_file_is_one_line_with_its_path(
    tmp_path: Path, text: str, words: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(Exit) as raised:
        load({}, {"RECALLD_HOME": str(tmp_path)})
    assert words in raised.value.message
    assert raised.value.message.startswith(f"config file {path}: ")
    assert "\n" not in raised.value.message


def test_the_error_for_an_unreadable_file_names_it(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()
    with pytest.raises(Exit, match=r"config\.toml: cannot be read"):
        load({}, {"RECALLD_HOME": str(tmp_path)})


def test_an_unknown_recalld_variable_gets_a_warning() -> None:
    known = {variable: "" for setting in SETTINGS for variable in setting.variables}
    assert unknown_variables({**known, "RECALLD_HOME": "/x", "PATH": "/y"}) == []
    (near, far) = unknown_variables({"RECALLD_RATELIMIT": "5", "RECALLD_ZZZ": "1"})
    assert near.startswith("RECALLD_RATELIMIT: ")
    assert near.endswith("did you mean RECALLD_RATE_LIMIT?")
    assert "did you mean" not in far
