"""A legacy HTTP client keeps its session when the daemon restarts."""

import json
import subprocess

import pytest

from scripts.kit import peer_packages
from scripts.kit.recalld import fresh_home
from tests.clients.matrix import DRIVERS

pytestmark = pytest.mark.clients


def test_a_legacy_http_session_continues_after_a_daemon_restart() -> None:
    try:
        python = peer_packages.python_peer("mcp-2")
    except peer_packages.Unavailable as reason:
        pytest.skip(f"mcp 2.x cannot be installed here: {reason}")
    with fresh_home() as home:
        served = home.serve(bind="127.0.0.1:0")
        address = str(served["http"]).removeprefix("http://")
        with subprocess.Popen(
            [str(python), str(DRIVERS / "python_2_restart.py"), f"http://{address}/mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            assert json.loads(client.stdout.readline()) == {"before": "before"}
            assert home.run("stop").returncode == 0
            again = home.serve(bind=address)
            assert again["pid"] != served["pid"]
            client.stdin.write("\n")
            client.stdin.flush()
            told = json.loads(client.stdout.readline())
            assert told["after"] == "after"
            assert told["tools"] > 10
            assert client.wait(20) == 0
