"""`recalld stdio --embedded`: pipes, signals, shutdown, errors."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.processes import RECALLD, Child, child, environment, recalld
from tests.support.wire import call, initialize, request

EMBEDDED = ("stdio", "--embedded", "--fixtures")


def opened(started: Child) -> None:
    started.send(initialize())
    assert started.line()["id"] == 0


def test_it_answers_and_exits_when_its_input_ends(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        started.send(call(1, "echo", text="é\u2028\n"))
        assert started.line()["result"]["content"][0]["text"] == "é\u2028\n"
        started.close_input()
        began = time.monotonic()
        assert started.wait() == 0
        assert time.monotonic() - began < 2


def test_answers_under_way_are_flushed_after_the_end_of_input(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        started.send(initialize() + call(1, "slow", seconds=0.3) + call(2, "slow", seconds=60))
        started.close_input()
        assert set(started.lines(2)) == {0, 1}
        assert started.line() is None
        assert started.wait(3) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_causes_an_orderly_exit(tmp_path: Path, number: signal.Signals) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        started.send(call(1, "slow", seconds=0.3))
        started.send(request(2, "ping"))
        assert started.line()["id"] == 2
        started.process.send_signal(number)
        assert started.line()["id"] == 1
        assert started.wait(3) == 0
        assert "Traceback" not in started.errors()


def test_sighup_and_sigpipe_are_ignored(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        started.process.send_signal(signal.SIGHUP)
        started.process.send_signal(signal.SIGPIPE)
        started.send(request(1, "ping"))
        assert started.line()["id"] == 1


def test_a_client_that_closes_its_input_ends_the_process_quietly(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        assert started.process.stdout is not None
        started.process.stdout.close()
        started.send(request(1, "ping"))
        assert started.wait(5) == 0
        assert "Traceback" not in started.errors()


def test_nothing_but_frames_reaches_stdout(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        started.send(call(1, "print", text="noise") + request(2, "ping"))
        assert set(started.lines(2)) == {1, 2}
        started.close_input()
        assert started.line() is None
        assert started.errors().count("noise") == 3


def test_input_from_a_file_is_answered_to_a_file(tmp_path: Path) -> None:
    asked, answered = tmp_path / "in", tmp_path / "out"
    asked.write_bytes(initialize() + call(1, "echo", text="x") + request(2, "ping")[:-1])
    with asked.open() as reading, answered.open("w") as writing:
        finished = subprocess.run(
            [*RECALLD, *EMBEDDED],
            env=environment(tmp_path),
            stdin=reading,
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=20,
            check=False,
        )
    assert finished.returncode == 0
    assert [json.loads(line)["id"] for line in answered.read_text().splitlines()] == [0, 1, 2]


def test_empty_input_is_a_clean_end(tmp_path: Path) -> None:
    assert recalld(tmp_path, *EMBEDDED, stdin=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("mode", [("--embedded",), ()])
def test_closed_descriptors_are_a_clear_failure(tmp_path: Path, mode: tuple[str, ...]) -> None:
    command = " ".join([*RECALLD, "stdio", "--fixtures", *mode]) + " <&- >&-"
    finished = subprocess.run(
        ["/bin/sh", "-c", command],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert finished.returncode == 69
    assert finished.stderr.startswith("recalld: stdin or stdout is closed")


@pytest.mark.parametrize("locale", [{"LANG": "C", "LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}])
def test_output_is_utf8_whatever_the_locale(tmp_path: Path, locale: dict[str, str]) -> None:
    with child(tmp_path, *EMBEDDED, variables=locale) as started:
        opened(started)
        started.send(call(1, "echo", text="žluťoučký 🐎"))
        assert started.line()["result"]["content"][0]["text"] == "žluťoučký 🐎"


def test_a_folder_called_daemon_in_the_working_directory_is_not_imported(tmp_path: Path) -> None:
    trap = tmp_path / "daemon"
    trap.mkdir()
    (trap / "__init__.py").write_text("raise SystemExit('imported the wrong package')")
    finished = recalld(tmp_path / "home", *EMBEDDED, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr


def test_a_directory_has_one_owner_at_a_time(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as first:
        opened(first)
        with child(tmp_path, *EMBEDDED, variables={"RECALLD_START_SECONDS": "0.2"}) as second:
            assert second.wait() == 75
            assert f"pid {first.process.pid}" in second.errors()


def test_a_second_process_waits_until_the_first_one_exits(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as probe:
        opened(probe)
        with child(tmp_path, *EMBEDDED) as real:
            real.send(initialize())
            probe.close_input()
            assert probe.wait() == 0
            assert real.line()["id"] == 0


def test_files_are_readable_by_the_owner_only(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with child(home, *EMBEDDED) as started:
        opened(started)
    for path in [home / "data", *home.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_read_only_home_is_one_clear_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    finished = recalld(blocked / "home", *EMBEDDED, stdin=subprocess.DEVNULL)
    assert finished.returncode == 73
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("stdio", "--nonsense"), 64, "--nonsense"),
        (("fly",), 64, "fly"),
        (("stdio", "--embedded", "--dialects", "klingon"), 78, "klingon"),
    ],
)
def test_a_bad_command_line_is_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    finished = recalld(tmp_path, *arguments)
    assert finished.returncode == code
    assert words in finished.stderr
    assert finished.stderr.count("\n") == 1


def test_a_slow_log_reader_does_not_hold_up_answers(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED, variables={"RECALLD_LOG_LEVEL": "info"}) as started:
        opened(started)
        # 300 failures with a traceback each are far more than an unread pipe can hold.
        started.send(b"".join(call(n, "crash") for n in range(1, 301)))
        started.send(request("end", "ping"))
        answered = started.lines(301)
        assert "end" in answered


def test_the_log_never_contains_arguments(tmp_path: Path) -> None:
    secret = "canary-3f9a"
    with child(tmp_path, *EMBEDDED, variables={"RECALLD_LOG_LEVEL": "debug"}) as started:
        opened(started)
        started.send(call(1, "echo", text=secret) + call(2, "fail", message=secret))
        started.send(
            call(3, "structured", n=secret)
            + b'{"jsonrpc":"2.0","id":4,"x":"%s"\n' % secret.encode()
        )
        started.lines(4)
        started.send(call(5, "crash", text=secret) + call(6, "crash"))
        started.lines(2)
        started.close_input()
        assert started.wait() == 0
        log = started.errors()
        assert "call.done" in log
        assert "plain.py:" in log
        assert "on purpose" not in log
        assert secret not in log
        for line in log.splitlines():
            json.loads(line)


def test_calls_leave_no_open_files_behind(tmp_path: Path) -> None:
    with child(tmp_path, *EMBEDDED) as started:
        opened(started)
        opened_files = Path(f"/proc/{started.process.pid}/fd")
        count = len(list(opened_files.iterdir()))
        for n in range(1, 200):
            started.send(call(n, "echo", text="x"))
            started.line()
        assert len(list(opened_files.iterdir())) <= count + 2
