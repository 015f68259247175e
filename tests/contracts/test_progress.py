"""Progress notifications: long calls send them on every transport, and only if asked to."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contracts.client import MODERN, Client, Home, OpenClient, connect
from tests.support.processes import child, recalld

#: Arguments of long calls, and the number of items each one stores.
LONG_CALLS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "remember_batch": (
        {"action": "remember_batch", "steps": [f"step {n} was done" for n in range(450)]},
        450,
    ),
    "backfill": (
        {"action": "backfill", "history": [f"turn {n} of the talk" for n in range(500)]},
        500,
    ),
    "ingest timeline": (
        {"action": "ingest", "content": [f"it rained on day {n}" for n in range(401)]},
        401,
    ),
    "ingest documents": (
        {
            "action": "ingest",
            "content_scope": "knowledge",
            "content": [f"# Page {n}\n\nAll about number {n}." for n in range(60)],
        },
        60,
    ),
    "submit_insights": (
        {
            "action": "submit_insights",
            "content": {
                "knowledge_cards": [
                    {"category": "decision", "title": f"Choice {n}", "summary": f"Took way {n * 7}"}
                    for n in range(120)
                ],
                "action_items": [{"title": f"Mend part {n} of it"} for n in range(80)],
            },
        },
        200,
    ),
}
#: One long document. Progress counts its passages, whose number the engine decides.
LONG_DOCUMENT: Final = {
    "action": "ingest",
    "content_scope": "knowledge",
    "content": "\n\n".join(f"# Part {n}\n\n" + f"Word{n} follows word. " * 60 for n in range(150)),
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Home]:
    """A daemon for this module alone.

    These calls store some 15,000 texts. The daemon computes no vectors before the first semantic
    search, and none happens here. In the shared daemon later searches would wait for the vectors.
    """
    home = Home()
    home.serve()
    yield home
    home.close()


def record_request(arguments: dict[str, Any], token: Any, *, modern: bool) -> dict[str, Any]:
    meta: dict[str, Any] = {} if token is None else {"progressToken": token}
    if modern:
        meta["io.modelcontextprotocol/protocolVersion"] = MODERN
        meta["io.modelcontextprotocol/clientCapabilities"] = {}
    params = {"name": "awareness_record", "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params}


def check_progress(frames: list[Any], token: Any, total: int | None) -> None:
    """Check for increasing progress up to the total, followed by the response."""
    assert frames[-1]["id"] == "long"
    assert frames[-1]["result"].get("isError") is not True, frames[-1]
    reports = [frame["params"] for frame in frames[:-1]]
    assert all(frame["method"] == "notifications/progress" for frame in frames[:-1])
    assert len(reports) >= 2
    assert all(report["progressToken"] == token for report in reports)
    assert len({report["total"] for report in reports}) == 1
    steps = [report["progress"] for report in reports]
    assert steps == sorted(set(steps))
    assert steps[-1] == reports[0]["total"]
    assert total is None or steps[-1] == total


def until_answered(client: Client) -> list[Any]:
    """Return the frames up to the response; a ping checks that none follows it."""
    frames: list[Any] = []
    while not frames or frames[-1].get("id") != "long":
        frames.append(json.loads(client.line()))
    ping: dict[str, Any] = {"jsonrpc": "2.0", "id": "after", "method": "ping"}
    if client.revision == MODERN:
        meta = {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        ping = {**ping, "method": "server/discover", "params": {"_meta": meta}}
    client.send(ping)
    assert json.loads(client.line())["id"] == "after"
    return frames


@pytest.mark.parametrize("transport", ["embedded", "bridged", "unix"])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
def test_a_long_call_reports_progress_over_stdio_and_unix_sockets(
    daemon: Home, transport: str, revision: str
) -> None:
    home = Home() if transport == "embedded" else daemon
    client = connect(home, transport, revision)
    for name, (arguments, total) in LONG_CALLS.items():
        client.send(record_request(arguments, name, modern=revision == MODERN))
        check_progress(until_answered(client), name, total)
    client.send(record_request(LONG_DOCUMENT, 7, modern=revision == MODERN))
    check_progress(until_answered(client), 7, None)
    client.close()
    if home is not daemon:
        home.close()


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_a_call_without_a_progress_token_gets_no_progress(
    open_client: OpenClient, revision: str
) -> None:
    client = open_client("unix", revision)
    for arguments in [*(given for given, _ in LONG_CALLS.values()), LONG_DOCUMENT]:
        client.send(record_request(arguments, None, modern=revision == MODERN))
        assert len(until_answered(client)) == 1


def test_a_short_call_reports_no_progress(open_client: OpenClient) -> None:
    client = open_client("unix", "2025-11-25")
    note = {"knowledge_cards": [{"category": "decision", "title": "One", "summary": "thing"}]}
    for arguments in (
        {"action": "remember", "text": "tea is ready"},
        {"action": "submit_insights", "content": note},
        {"action": "ingest", "content_scope": "knowledge", "content": "# A page\n\nwith words"},
    ):
        client.send(record_request(arguments, "p", modern=False))
        assert len(until_answered(client)) == 1


# --- HTTP ------------------------------------------------------------------------------------


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with child(tmp_path, "serve", "--bind", f"127.0.0.1:{port}") as daemon:
        while recalld(tmp_path, "health").returncode == 2:
            assert daemon.process.poll() is None, daemon.errors()
        yield f"http://127.0.0.1:{port}/mcp"


def post(url: str, message: Any, headers: dict[str, str]) -> tuple[Any, list[Any]]:
    given = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **headers,
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), given)
    with urllib.request.urlopen(request, timeout=30) as response:
        body = response.read().decode()
        if "event-stream" not in (response.headers["content-type"] or ""):
            return response.headers, [json.loads(body)] if body else []
        data = [line[5:].strip() for line in body.splitlines() if line.startswith("data:")]
        return response.headers, [json.loads(each) for each in data if each]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25", MODERN])
def test_a_long_call_reports_progress_over_http(endpoint: str, revision: str) -> None:
    modern = revision == MODERN
    headers = {"mcp-protocol-version": revision}
    if modern:
        headers |= {"mcp-method": "tools/call", "mcp-name": "awareness_record"}
    else:
        params = {
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        found, _ = post(endpoint, opening, {})
        headers["mcp-session-id"] = found["mcp-session-id"]
        post(endpoint, {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)
    for name, (arguments, total) in LONG_CALLS.items():
        _, frames = post(endpoint, record_request(arguments, name, modern=modern), headers)
        check_progress(frames, name, total)
    _, frames = post(endpoint, record_request(LONG_DOCUMENT, 0, modern=modern), headers)
    check_progress(frames, 0, None)
    again = {"action": "remember_batch", "steps": [f"and {n}" for n in range(450)]}
    _, frames = post(endpoint, record_request(again, None, modern=modern), headers)
    assert len(frames) == 1
