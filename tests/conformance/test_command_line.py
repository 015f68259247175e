"""The command line of mcp-conform: exit status, misbehaving servers, clean-up and reports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from conformance.__main__ import main
from tests.conformance.reference import SocketReferenceServer

REFERENCE = [sys.executable, "-m", "conformance.broken"]


def script(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "server.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def conform(*arguments: str) -> int:
    return main(["--fixtures", *arguments])


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.rstrip("\n").split("\n")[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--stdio",),
        ("--stdio", "--unix", "/x", "--", "true"),
        ("--http", "http://127.0.0.1:1/mcp"),
        ("--http", "http://127.0.0.1:1/mcp", "--idle-seconds", "0"),
        ("--unix", "/x", "--token", "t"),
        ("--no-such-flag",),
        ("--unix", "/x", "--only", "NOPE"),
        ("--unix", "/x", "--revision", "1999-01-01"),
        ("--unix", "/x", "--level", "MIGHT"),
        ("--unix", "/x", "--timeout", "0"),
        ("--unix", "/x", "--env", "NOVALUE", "--stdio"),
        ("--unix", "/no/such/socket"),
        ("--unix", "/x", "--roles", "/no/such/file"),
        ("--unix", "/x", "--known-failures", "/no/such/file"),
        ("--stdio", "--", "/no/such/command"),
    ],
)
def test_invalid_arguments_and_unreachable_servers_exit_2_with_one_line(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert conform(*arguments) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("mcp-conform: ") and told.err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    [
        "import time; time.sleep(60)",
        "raise SystemExit(3)",
        "print('hello, I am not MCP', flush=True); import time; time.sleep(60)",
        "while True: print('x' * 1000)",
        "while True: print('{}')",
        "import sys\nwhile True: sys.stdout.write('x' * 100000)",
        "import os\nwhile True: os.write(1, os.urandom(4000))",
    ],
    ids=["hangs", "dies", "chats", "floods", "floods-json", "endless-line", "noise"],
)
def test_a_program_that_is_not_an_mcp_server_ends_the_run_in_time(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.monotonic()

    status = conform(
        *("--timeout", "0.3", "--case-timeout", "2", "--start-seconds", "2"),
        *("--revision", "2025-11-25", "--stdio", "--"),
        *script(tmp_path, text),
    )

    assert status == 2
    assert time.monotonic() - began < 25
    assert capsys.readouterr().err.startswith("mcp-conform: ")


def test_a_server_that_hangs_after_the_handshake_fails_its_cases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "import json, sys, time\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if message.get('method') == 'initialize':\n"
        "        result = {'protocolVersion': message['params']['protocolVersion'],\n"
        "                  'capabilities': {}, 'serverInfo': {'name': 'x', 'version': '1'}}\n"
        "        answer = {'jsonrpc': '2.0', 'id': message['id'], 'result': result}\n"
        "        print(json.dumps(answer), flush=True)\n"
        "    elif 'id' in message:\n"
        "        time.sleep(60)\n"
    )
    status = conform(
        *("--timeout", "0.3", "--revision", "2025-11-25", "--only", "L01,L08,J02a", "--stdio"),
        *("--", *script(tmp_path, text)),
    )

    assert status == 1
    assert last_line(capsys) == "7 cases, 2 passed, 5 failed, 0 not applicable"


def test_no_child_process_outlives_the_run(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import os, time\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "if os.fork() == 0:\n"
        f"    open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "time.sleep(60)\n"
    )
    command = script(tmp_path, text)
    short = ("--timeout", "0.3", "--start-seconds", "1")
    conform(*short, "--revision", "2025-11-25", "--stdio", "--", *command)

    assert_gone(pids, at_least=2)


def assert_gone(pids: Path, *, at_least: int) -> None:
    started = {int(line) for line in pids.read_text().split()}
    assert len(started) >= at_least
    until = time.monotonic() + 5
    while any(alive(pid) for pid in started) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(alive(pid) for pid in started)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_stopped_by_a_signal_leaves_no_child_process(number: int, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    text = (
        "import os\n"
        f"open({str(pids)!r}, 'a').write(str(os.getpid()) + ' ')\n"
        "from conformance.broken.__main__ import main\n"
        "raise SystemExit(main())\n"
    )
    command = [sys.executable, "-m", "conformance", "--verbose", "--stdio", "--"]
    with subprocess.Popen(
        [*command, *script(tmp_path, text)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as run:
        assert run.stdout is not None
        run.stdout.readline()  # the first case has ended
        run.send_signal(number)
        run.stdout.read()
        status = run.wait(timeout=20)

    assert status in (2, 128 + number)
    assert_gone(pids, at_least=2)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def test_a_correct_server_exits_0_and_prints_the_summary_last(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert conform("--only", "B", "--stdio", "--", *REFERENCE) == 0

    assert last_line(capsys) == "16 cases, 16 passed, 0 failed, 0 not applicable"


def test_a_failed_must_exits_1_and_a_failed_should_only_when_strict() -> None:
    options = ("--revision", "2025-11-25", "--stdio")
    must = [*REFERENCE, "--defect", "unknown-methods-succeed"]
    should = [*REFERENCE, "--defect", "odd-prompt-code"]

    assert conform("--only", "J18", *options, "--", *must) == 1
    assert conform("--only", "P01c", *options, "--", *should) == 0
    assert conform("--only", "P01c", "--strict", *options, "--", *should) == 1


def known_file(tmp_path: Path, case: str) -> str:
    path = tmp_path / "known.toml"
    path.write_text(f'[[failure]]\ncase = "{case}"\nreason = "we know"\n')
    return str(path)


def test_a_known_failure_is_reported_as_such_and_does_not_count_as_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = conform(
        *("--only", "J06", "--revision", "2025-11-25", "--known-failures"),
        *(known_file(tmp_path, "J06"), "--stdio", "--", *REFERENCE),
        *("--defect", "silent-on-broken-json"),
    )

    out = capsys.readouterr().out
    assert status == 0
    assert "known: we know" in out
    assert out.endswith("1 cases, 0 passed, 1 failed, 0 not applicable\n")


def test_a_known_failure_that_passes_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = known_file(tmp_path, "J06")

    assert conform("--only", "J06", "--known-failures", known, "--stdio", "--", *REFERENCE) == 1
    assert "known failure J06 passes now" in capsys.readouterr().out


def test_a_known_failure_that_occurs_sometimes_may_pass(tmp_path: Path) -> None:
    path = tmp_path / "known.toml"
    path.write_text('[[failure]]\ncase = "B01"\nreason = "timing"\nsometimes = true\n')
    options = ("--only", "B01", "--known-failures", str(path), "--stdio", "--")

    assert conform(*options, *REFERENCE) == 0


def test_a_known_failure_of_an_unknown_case_is_rejected(tmp_path: Path) -> None:
    known = known_file(tmp_path, "J999")

    assert conform("--known-failures", known, "--stdio", "--", *REFERENCE) == 2


def test_a_server_with_one_revision_is_tested_in_that_revision_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "import sys\n"
        "from conformance import revisions\n"
        "revisions.LEGACY = (revisions.D,)\n"
        "from conformance.broken import methods\n"
        "methods.LEGACY_DATES = (revisions.D,)\n"
        "methods.MODERN.clear()\n"
        "from conformance.broken.__main__ import main\n"
        "raise SystemExit(main())\n"
    )
    status = conform("--only", "J18,V01,B", "--stdio", "--", *script(tmp_path, text))

    out = capsys.readouterr().out
    assert status == 0, out
    assert "2025-03-26  not spoken: offered 2025-03-26, the server chose '2025-11-25'" in out
    assert out.endswith("20 cases, 3 passed, 0 failed, 17 not applicable\n")


def test_roles_can_be_given_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles = tmp_path / "roles.toml"
    roles.write_text('[echo]\ntool = "nobody"\n')

    conform(
        *("--only", "F21a", "--revision", "modern", "--roles", str(roles)),
        *("--stdio", "--", *REFERENCE),
    )

    assert "no tool of this server plays the role 'echo': F21a" in capsys.readouterr().out


def test_list_names_every_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert conform("--list", "--only", "J06,Q") == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 12
    assert re.match(r"J06 +ours +stdio/unix/http +A line that is not JSON", lines[0])


def test_each_child_gets_its_own_directory_which_is_removed_afterwards(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    text = (
        "import os\n"
        f"open({str(seen)!r}, 'a').write(os.environ['HERE'] + '\\n')\n"
        "assert os.listdir(os.environ['HERE']) == []\n"
    )
    conform(
        "--env", "HERE={tmpdir}", "--revision", "legacy", "--stdio", "--", *script(tmp_path, text)
    )

    directories = seen.read_text().split()
    assert len(set(directories)) == len(directories) >= 4
    assert not any(Path(directory).exists() for directory in directories)


def test_a_successful_run_leaves_nothing_in_the_temporary_directory(
    tmp_path: Path,
) -> None:
    server = [sys.executable, "-P", "-m", "daemon", "stdio", "--embedded", "--fixtures"]
    options = ["--env", "RECALLD_HOME={tmpdir}", "--only", "J06"]
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *options, "--stdio", "--", *server],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


# -- reports ------------------------------------------------------------------------------------

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\u0000\ud800 & \"'"


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The three reports of a run against a server that sends hostile bytes and fails."""
    directory = tmp_path_factory.mktemp("reports")
    from conformance.broken.defects.registry import Defect

    def spoil(connection: Any, request: Any, reply: Any) -> Any:
        if reply.get("error", {}).get("code") == -32601:
            return {**reply, "error": {"code": HOSTILE, "message": HOSTILE}}
        return reply

    files = {kind: directory / f"report.{kind}" for kind in ("json", "junit", "html")}
    path = directory / "s"
    hosted = SocketReferenceServer(path, Defect("hostile", (), HOSTILE, reply=spoil))
    try:
        status = main(
            [
                *(part for kind, file in files.items() for part in (f"--{kind}", str(file))),
                *("--only", "J,W,Z01", "--revision", "2025-11-25,modern", "--unix", str(path)),
            ]
        )
    finally:
        hosted.close()
    assert status == 1
    return {kind: file.read_text("utf-8") for kind, file in files.items()}


def test_json_holds_every_case_with_its_outcome(reports: dict[str, str]) -> None:
    told = json.loads(reports["json"])

    cases = {case["id"]: case for case in told["cases"]}
    assert told["summary"]["cases"] == len(cases)
    assert cases["J18"]["status"] == "failed"
    assert cases["J18"]["revisions"]["2025-11-25"]["exchange"]
    assert cases["Z01a"]["status"] == "not applicable"
    assert "J18" in told["summary"]["failedMust"]


def test_junit_is_xml_with_a_test_case_for_each_trial(reports: dict[str, str]) -> None:
    root = ElementTree.fromstring(reports["junit"])

    cases = root.findall(".//testcase")
    told = json.loads(reports["json"])
    assert len(cases) == sum(len(case["revisions"]) for case in told["cases"])
    failed = [case for case in cases if case.find("failure") is not None]
    assert sum(int(suite.attrib["failures"]) for suite in root) == len(failed) > 0


def test_html_is_one_page_without_external_resources(reports: dict[str, str]) -> None:
    page = reports["html"]

    assert page.startswith("<!doctype html>")
    for outside in ("<script", "<link", "<img", "@import", "url("):
        assert outside not in page.lower().replace("&lt;", "\x00")


def test_html_has_an_anchor_and_a_link_to_its_clause_for_each_failure(
    reports: dict[str, str],
) -> None:
    page = reports["html"]

    assert 'id="J18"' in page and 'id="finding-1"' in page
    assert '<a href="https://www.jsonrpc.org/specification#error_object">' in page
    assert "run again" in page and "--only J18" in page


def test_html_escapes_hostile_bytes(reports: dict[str, str]) -> None:
    page = reports["html"]

    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in page
    assert "alert(2)>" not in page
    assert "\x00" not in page
    page.encode("utf-8")


def test_html_names_requirement_source_and_bytes_of_each_failure(reports: dict[str, str]) -> None:
    page = reports["html"]

    assert "An unknown method gets error -32601." in page
    assert "The method does not exist / is not available." in page
    assert "no/such/method" in page
    assert "a case for stdio only" in page


def test_the_reference_server_can_be_stopped_while_it_listens(tmp_path: Path) -> None:
    before = threading.active_count()
    hosted = SocketReferenceServer(tmp_path / "s")
    hosted.close()

    assert threading.active_count() <= before
