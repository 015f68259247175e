"""`recalld token`: its output, its file and its exit codes."""

import http.client
import json
import socket
import time
from pathlib import Path

import pytest

from tests.support.processes import child, recalld, status


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(f'[server]\ntoken_file = "{tmp_path}/tokens.toml"\n')
    return tmp_path


def test_a_token_is_printed_only_once(home: Path) -> None:
    added = recalld(home, "token", "add", "ci", "--bank", "a", "--bank", "b", "--read-only")
    assert added.returncode == 0, added.stderr
    token = added.stdout.strip()
    assert added.stdout.count("\n") == 1
    assert token.startswith("recalld_")
    assert len(token) == 51
    assert recalld(home, "token", "add", "laptop").stdout.strip() != token
    listed = recalld(home, "token", "list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["ci", "laptop"]
    first, second = listed.stdout.splitlines()
    assert "read  " in first
    assert "a, b" in first
    assert "read, write" in second
    assert "all banks" in second
    kept = (home / "tokens.toml").read_text()
    for said in (listed.stdout, listed.stderr, kept, added.stderr):
        assert token not in said
        assert token.removeprefix("recalld_") not in said


def test_before_the_first_token_the_list_is_empty(home: Path) -> None:
    listed = recalld(home, "token", "list")
    assert (listed.returncode, listed.stdout) == (0, "")
    assert "there are no tokens" in listed.stderr
    assert not (home / "tokens.toml").exists()


@pytest.mark.parametrize("command", [("token", "list"), ("token", "add", "x"), ("serve",)])
def test_the_error_for_a_bad_token_file_names_the_file_and_the_line(
    home: Path, command: tuple[str, ...]
) -> None:
    path = home / "tokens.toml"
    path.write_text("# mine\n[[token\nsecret = 'do not tell'\n")
    path.chmod(0o600)
    done = recalld(home, *command)
    assert done.returncode == 78
    assert f"token file {path}: is not TOML (at line 2, column 8)" in done.stderr
    assert "do not tell" not in done.stderr
    path.chmod(0o644)
    assert f"token file {path}: must be readable" in recalld(home, *command).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("add", "taken"), 64, "called 'taken' already"),
        (("add", "owner"), 64, "cannot be the name"),
        (("add", " "), 64, "cannot be the name"),
        (("add", "x", "--bank", "a\nb"), 64, "--bank"),
        (("add",), 64, "NAME"),
        ((), 64, "VERB"),
        (("revoke", "nobody-has-it"), 64, "no token called 'nobody-has-it'"),
        (("list", "--file", "/dev/null"), 78, "regular file"),
        (("add", "x", "--file", "/nowhere/at/all.toml"), 73, "No such file"),
    ],
)
def test_errors_have_the_documented_exit_codes(
    home: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    assert recalld(home, "token", "add", "taken").returncode == 0
    before = (home / "tokens.toml").read_bytes()
    done = recalld(home, "token", *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert (home / "tokens.toml").read_bytes() == before


def test_the_error_without_a_token_file_explains_how_to_set_one(tmp_path: Path) -> None:
    done = recalld(tmp_path, "token", "list")
    assert done.returncode == 78
    assert f'token_file = "{tmp_path}/tokens.toml" under [server]' in done.stderr


def test_a_running_daemon_applies_changes_of_the_token_file(home: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = recalld(home, "token", "add", "one").stdout.strip()
    with child(home, "serve", "--fixtures", "--bind", f"127.0.0.1:{port}") as daemon:
        deadline = time.monotonic() + 20
        while recalld(home, "health").returncode == 2:
            assert daemon.process.poll() is None, daemon.errors()
            assert time.monotonic() < deadline

        def asked(bearer: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            connection.request("GET", "/tools/list", headers={"Authorization": f"Bearer {bearer}"})
            answer = connection.getresponse()
            json.loads(answer.read())
            connection.close()
            return answer.status

        assert asked(token) == 200
        second = recalld(home, "token", "add", "two").stdout.strip()
        assert (asked(token), asked(second)) == (200, 200)
        assert recalld(home, "token", "revoke", "one").returncode == 0
        assert (asked(token), asked(second)) == (401, 200)
        assert status(home)["http"] == f"http://127.0.0.1:{port}"
