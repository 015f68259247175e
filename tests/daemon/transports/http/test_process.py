"""HTTP of a daemon process: endpoints by dialect, start-up errors, shutdown."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon.exit_codes import CANNOT_CREATE, CONFIG
from scripts.kit.recalld import Home, fresh_home
from tests.support.processes import recalld
from tests.support.web import BOTH, modern


@pytest.fixture
def served() -> Any:
    with fresh_home() as home:
        yield home, str(home.serve(bind="127.0.0.1:0", fixtures=False)["http"])


def tools(url: str, path: str) -> list[str]:
    message, headers = modern("tools/list")
    answer = httpx.post(url + path, json=message, headers={**headers, "accept": BOTH})
    return [tool["name"] for tool in answer.json()["result"]["tools"]]


def test_each_dialect_has_an_endpoint_and_sessions_stay_where_they_were_opened(
    served: tuple[Home, str],
) -> None:
    _home, url = served
    assert tools(url, "/mcp/hindsight") == ["hindsight_put", "hindsight_search"]
    assert tools(url, "/mcp/harness") == [
        "search",
        "get",
        "sources",
        "add_document",
        "remove_document",
    ]
    assert set(tools(url, "/mcp/hindsight")) < set(tools(url, "/mcp"))
    assert tools(url, "/") == tools(url, "/mcp")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    headers = {"accept": BOTH}
    opened = httpx.post(url + "/mcp/recall", json=opening, headers=headers)
    session = {**headers, "mcp-session-id": opened.headers["mcp-session-id"]}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert httpx.post(url + "/mcp/recall", json=ping, headers=session).status_code == 200
    assert httpx.post(url + "/mcp", json=ping, headers=session).status_code == 404


def test_open_streams_do_not_delay_the_shutdown(served: tuple[Home, str]) -> None:
    home, url = served
    message, headers = modern("subscriptions/listen", {"notifications": {}}, id="l")
    with httpx.stream(
        "POST", url + "/mcp", json=message, headers={**headers, "accept": BOTH}, timeout=20
    ) as stream:
        lines = (line for line in stream.iter_lines() if line.startswith("data: {"))
        assert "acknowledged" in next(lines)
        began = time.monotonic()
        assert home.run("stop").returncode == 0
        assert time.monotonic() - began < 5
        assert json.loads(next(lines).removeprefix("data: "))["id"] == "l"


def test_a_public_address_needs_a_token_file(tmp_path: Path) -> None:
    wildcard = recalld(tmp_path / "a", "serve", "--bind", "0.0.0.0:0")
    assert wildcard.returncode == CONFIG
    assert "server.token_file" in wildcard.stderr
    nonsense = recalld(tmp_path / "b", "serve", "--bind", "everywhere")
    assert nonsense.returncode == CONFIG


def test_a_port_in_use_is_reported_in_one_line(served: tuple[Home, str], tmp_path: Path) -> None:
    _home, url = served
    second = recalld(tmp_path / "other", "serve", "--bind", url.removeprefix("http://"))
    assert second.returncode == CANNOT_CREATE
    assert second.stderr.count("\n") == 1
    assert "cannot listen there" in second.stderr
