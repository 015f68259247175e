"""`recalld config`, `doctor`, `logs`, `open`, `status` and `version`."""

import json
import os
import re
import socket
import subprocess
import urllib.request
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest

from daemon.commands.diagnosis import doctor
from daemon.config import load
from daemon.operations.readable_log import readable
from tests.daemon.commands.bank_home import serve
from tests.support.processes import PATIENCE, RECALLD, child, environment, recalld
from tests.support.wire import initialize


@pytest.fixture
def home(tmp_path: Path) -> Generator[Path]:
    (tmp_path / "config.toml").write_text(
        '[embedding]\nhashed = true\n[limits]\nframe_bytes = "8MiB"\n[server]\napi_key = "s3cret"\n'
    )
    yield tmp_path
    recalld(tmp_path, "stop")


def test_config_shows_values_with_their_origin_and_hides_secrets(home: Path) -> None:
    done = recalld(home, "config", "--json")
    found = {each["key"]: each for each in json.loads(done.stdout)["settings"]}

    assert found["limits.frame_bytes"]["value"] == 8 * 1024 * 1024
    assert found["limits.frame_bytes"]["origin"] == str(home / "config.toml")
    assert found["limits.requests_per_minute"]["origin"] == "RECALLD_RATE_LIMIT"
    assert found["server.bind"] == {
        "key": "server.bind",
        "value": "127.0.0.1:7331",
        "origin": "default",
    }
    assert "s3cret" not in done.stdout + recalld(home, "config").stdout
    assert recalld(home, "config", "server.bind").stdout == "127.0.0.1:7331\n"
    wrong = recalld(home, "config", "server.bnd")
    assert wrong.returncode == 64
    assert "did you mean server.bind?" in wrong.stderr


def test_version_names_the_libraries(home: Path) -> None:
    found = json.loads(recalld(home, "version", "--json").stdout)
    assert {"recalld", "python", "sqlite", "onnxruntime", "usearch"} <= set(found)
    assert "not installed" not in found.values()


def test_logs_are_readable_and_can_be_filtered(home: Path) -> None:
    missing = recalld(home, "logs")
    assert missing.returncode == 73
    assert "there is no log yet" in missing.stderr

    recalld(home, "add", "a memory")
    shown = recalld(home, "logs").stdout
    assert "info     daemon.ready  pid=" in shown
    assert "daemon.ready" not in recalld(home, "logs", "--level", "error").stdout
    raw = recalld(home, "logs", "--json", "-n", "1").stdout
    assert json.loads(raw)["event"]
    assert "a memory" not in shown


def test_a_log_line_is_rendered_with_its_fields() -> None:
    line = (
        '{"event":"call.done","level":"info","timestamp":"2026-11-16T22:14:01.5Z","ms":3,"a":"b c"}'
    )
    assert readable(line) == '22:14:01 info     call.done  ms=3 a="b c"'
    assert readable("Traceback") == "Traceback"


def test_status_shows_clients_with_banks_and_dialects(home: Path) -> None:
    with child(home, "stdio", "--bank", "work", "--dialects", "native") as client:
        client.send(initialize("2025-11-25"))
        assert "result" in client.line()
        found = json.loads(recalld(home, "status", "--json").stdout)
        text = recalld(home, "status").stdout

    (attached,) = found["clients"]
    assert (attached["bank"], attached["dialects"]) == ("work", "native")
    assert "bank work  dialects native" in text
    assert found["config"] == str(home / "config.toml")
    assert found["log"] == str(home / "state" / "daemon.log")
    assert "http         off" in text


def test_status_shows_clients_over_http(home: Path) -> None:
    with ExitStack() as stack:
        serve(home, stack, "--bind", "127.0.0.1:0")
        url = json.loads(recalld(home, "status", "--json").stdout)["http"]
        request = urllib.request.Request(
            f"{url}/mcp/native",
            data=initialize("2025-11-25").splitlines()[0],
            headers={
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
            },
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            assert response.status == 200
        (attached,) = json.loads(recalld(home, "status", "--json").stdout)["clients"]
        text = recalld(home, "status").stdout
    assert (attached["transport"], attached["dialects"]) == ("http", "native")
    assert "bank default  dialects native  over HTTP" in text


def test_pending_vectors_are_shown_and_can_be_computed(home: Path) -> None:
    recalld(home, "add", "a memory", "--bank", "work")
    assert json.loads(recalld(home, "status", "--json").stdout)["pendingVectors"] == 1
    assert "1 vectors are pending" in recalld(home, "health").stdout

    done = recalld(home, "bank", "index", "work")

    assert done.stdout == "work: 0 vectors are pending\n"
    assert "pending" not in recalld(home, "health").stdout


def test_open_says_that_no_page_is_served_or_that_http_is_off(home: Path) -> None:
    recalld(home, "add", "a memory")
    off = recalld(home, "open")
    assert off.returncode == 2
    assert "`recalld serve` takes over" in off.stderr
    recalld(home, "stop")
    with ExitStack() as stack:
        serve(home, stack, "--bind", "127.0.0.1:0")
        address = json.loads(recalld(home, "status", "--json").stdout)["http"]
        done = recalld(home, "open")
        assert done.stdout == f"{address.rstrip('/')}/\n"
        if done.returncode:  # the web page comes later
            assert done.returncode == 1
            assert "no page is served at" in done.stderr


def test_doctor_reports_a_broken_entry_of_a_client(home: Path) -> None:
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {"recalld": ')
    variables = {**environment(home), "HOME": str(home)}
    done = subprocess.run(
        [*RECALLD, "doctor", "--json"], env=variables, capture_output=True, text=True, check=False
    )
    (found,) = [each for each in json.loads(done.stdout) if each["check"] == "clients"]
    assert found["level"] == "problem"
    assert found["message"].startswith(f"cursor: {home / '.cursor' / 'mcp.json'}")
    assert done.returncode == 1


# --- doctor ----------------------------------------------------------------------------------


def findings(home: Path) -> list[doctor.Finding]:
    return doctor.findings(load({}, environment(home)))


def problems(home: Path) -> list[doctor.Finding]:
    found = [each for each in findings(home) if each.level != "ok"]
    # The command may be missing from PATH, and the clients are those of the person who tests.
    return [each for each in found if "PATH" not in each.message and each.check != "clients"]


def test_doctor_has_the_documented_remedy_for_every_reason_of_a_degraded_daemon() -> None:
    page = (Path(__file__).parents[4] / "docs" / "operations.md").read_text()
    table = page.partition("| reason | meaning | remedy |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    documented = {
        name: remedy for names, _, remedy in rows for name in re.findall(r"`([\w-]+)`", names)
    }
    assert documented == doctor.REMEDIES


def test_doctor_finds_nothing_in_a_fresh_home(home: Path) -> None:
    assert problems(home) == []
    done = recalld(home, "doctor", "--json")
    assert done.returncode == 0
    assert {each["check"] for each in json.loads(done.stdout)} >= {
        "environment",
        "versions",
        "packages",
        "directories",
        "config",
        "disk",
        "daemon",
        "locks",
        "clock",
    }


def test_every_finding_that_is_not_ok_has_a_remedy(home: Path) -> None:
    (home / "data").mkdir(mode=0o755)
    (home / "data").chmod(0o755)
    (home / "run").mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(home / "run" / "recalld.sock"))
    future = 4_000_000_000
    (home / "data" / "catalogue.db").touch()
    os.utime(home / "data" / "catalogue.db", (future, future))

    found = problems(home)

    assert all(each.remedy for each in found)
    by_check = {each.check: each for each in found}
    assert by_check["directories"].remedy == f"chmod 700 {home / 'data'}"
    assert "nothing answers" in by_check["daemon"].message
    assert "set the clock" in by_check["clock"].remedy
    assert recalld(home, "doctor").returncode == 1
