"""Long calls say how far they are, on every way in; nobody who did not ask hears of it."""

import json
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contracts.client import MODERN, Client, Home
from tests.contracts.conftest import Join, connect
from tests.support.processes import child, recalld

#: What takes long, and how many things it is about.
LONG: Final[dict[str, tuple[dict[str, Any], int]]] = {
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
#: One document: its passages are counted, and how many those are is the engine's business.
BOOK: Final = {
    "action": "ingest",
    "content_scope": "knowledge",
    "content": "\n\n".join(f"# Part {n}\n\n" + f"Word{n} follows word. " * 60 for n in range(150)),
}


def asked(arguments: dict[str, Any], token: Any, *, modern: bool) -> dict[str, Any]:
    meta: dict[str, Any] = {} if token is None else {"progressToken": token}
    if modern:
        meta["io.modelcontextprotocol/protocolVersion"] = MODERN
        meta["io.modelcontextprotocol/clientCapabilities"] = {}
    params = {"name": "awareness_record", "arguments": arguments, "_meta": meta}
    return {"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params}


def check(frames: list[Any], token: Any, total: int | None) -> None:
    """Reports, upwards, the last of them the whole, then the answer and nothing else."""
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
    """All frames up to the answer, and one ping further: nothing comes after it."""
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


@pytest.mark.parametrize("way", ["embedded", "bridged", "unix"])
@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25", MODERN])
def test_over_a_pipe(daemon: Home, way: str, revision: str) -> None:
    home = Home() if way == "embedded" else daemon
    client = connect(home, way, revision)
    for name, (arguments, total) in LONG.items():
        client.send(asked(arguments, name, modern=revision == MODERN))
        check(until_answered(client), name, total)
    client.send(asked(BOOK, 7, modern=revision == MODERN))
    check(until_answered(client), 7, None)
    client.close()
    if home is not daemon:
        home.close()


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_without_a_token_there_is_only_the_answer(join: Join, revision: str) -> None:
    client = join("unix", revision)
    for arguments in [*(given for given, _ in LONG.values()), BOOK]:
        client.send(asked(arguments, None, modern=revision == MODERN))
        assert len(until_answered(client)) == 1


def test_a_short_call_is_not_talked_about(join: Join) -> None:
    client = join("unix", "2025-11-25")
    note = {"knowledge_cards": [{"category": "decision", "title": "One", "summary": "thing"}]}
    for arguments in (
        {"action": "remember", "text": "tea is ready"},
        {"action": "submit_insights", "content": note},
        {"action": "ingest", "content_scope": "knowledge", "content": "# A page\n\nwith words"},
    ):
        client.send(asked(arguments, "p", modern=False))
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
def test_over_http(endpoint: str, revision: str) -> None:
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
    for name, (arguments, total) in LONG.items():
        _, frames = post(endpoint, asked(arguments, name, modern=modern), headers)
        check(frames, name, total)
    _, frames = post(endpoint, asked(BOOK, 0, modern=modern), headers)
    check(frames, 0, None)
    again = {"action": "remember_batch", "steps": [f"and {n}" for n in range(450)]}
    _, frames = post(endpoint, asked(again, None, modern=modern), headers)
    assert len(frames) == 1
