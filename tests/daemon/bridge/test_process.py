"""`recalld stdio`: connects to a daemon or starts one, and survives its death."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.processes import (
    Child,
    child,
    daemon,
    environment,
    kill_daemon,
    link,
    recalld,
    spawned_daemon,
    status,
)
from tests.support.wire import call, initialize, modern, request

BRIDGE = ("stdio", "--fixtures")


def opened(started: Child, revision: str = "2025-11-25") -> None:
    started.send(initialize(revision))
    assert started.line()["result"]["protocolVersion"] == revision


def test_it_starts_a_daemon_that_outlives_it(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path):
        with child(tmp_path, *BRIDGE) as bridge:
            opened(bridge)
            bridge.send(call(1, "echo", text="x"))
            assert bridge.line()["result"]["content"][0]["text"] == "x"
            pid = status(tmp_path)["pid"]
            assert os.getsid(pid) == pid != os.getsid(bridge.process.pid)
            bridge.close_input()
            assert bridge.wait(2) == 0
        assert status(tmp_path)["pid"] == pid


def test_several_bridges_share_one_daemon(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path):
        bridges = [Child(tmp_path, *BRIDGE) for _ in range(6)]
        try:
            for bridge in bridges:
                bridge.send(initialize())
            assert all(bridge.line()["id"] == 0 for bridge in bridges)
            found = status(tmp_path)
            assert found["sessions"]["active"] == 6
            log = (tmp_path / "state/daemon.log").read_text()
            assert log.count("daemon.ready") == 1
        finally:
            for bridge in bridges:
                bridge.end()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-11-25"])
def test_when_the_daemon_dies_calls_are_answered_and_the_client_continues(
    tmp_path: Path, revision: str
) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge, revision)
        bridge.send(call("w", "slow", seconds=60) + request("r", "tools/list"))
        assert bridge.line()["id"] == "r"
        first = kill_daemon(tmp_path)
        lost = bridge.line()
        assert lost["id"] == "w"
        assert lost["error"]["data"]["kind"] == "daemon_lost"
        assert lost["error"]["data"]["retrySafe"] is False
        bridge.send(call(2, "echo", text="again") + request(3, "initialize", protocolVersion="x"))
        answers = bridge.lines(2)
        assert answers[2]["result"]["content"][0]["text"] == "again"
        assert answers[3]["error"]["code"] == -32600
        assert status(tmp_path)["pid"] != first


def test_the_session_continues_in_a_new_daemon(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        before = status(tmp_path)["sessions"]
        kill_daemon(tmp_path)
        bridge.send(request(1, "ping"))
        assert bridge.line()["id"] == 1
        assert status(tmp_path)["sessions"] == before


def test_an_editor_that_restarts_resumes_its_session(tmp_path: Path) -> None:
    def restarted(client: str) -> str:
        with child(tmp_path, "stdio", "--dialects", "recall") as bridge:
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": client, "version": "1"},
            }
            bridge.send(request(0, "initialize", **hello))
            assert "result" in bridge.line()
            bridge.send(call(1, "store_memory", content="a memory"))
            assert "result" in bridge.line()
            bridge.send(call(2, "retrieve_memory", limit=1))
            text = bridge.line()["result"]["content"][0]["text"]
            return str(json.loads(text)["memories"][0]["sessionId"])

    with spawned_daemon(tmp_path):
        first = restarted("editor")
        assert restarted("editor") == first
        kill_daemon(tmp_path)
        assert restarted("editor") == first
        assert restarted("another editor") != first


def test_subscriptions_and_log_level_continue_in_a_new_daemon(tmp_path: Path) -> None:
    watched = "test://watched-resource"
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        bridge.send(
            request(1, "resources/subscribe", uri=watched)
            + request(2, "resources/subscribe", uri="test://static-text")
            + request(3, "logging/setLevel", level="error")
        )
        assert all("result" in frame for frame in bridge.lines(3).values())
        bridge.send(request(4, "resources/unsubscribe", uri="test://static-text"))
        assert "result" in bridge.line()
        first = kill_daemon(tmp_path)
        stale = bridge.line()
        assert stale["method"] == "notifications/resources/updated"
        assert stale["params"] == {"uri": watched}
        bridge.send(call(5, "test_trigger_resource_change"))
        frames = [bridge.line(), bridge.line()]
        assert frames[0] == stale, "the new daemon knows what is followed, by its own account"
        assert frames[1]["id"] == 5
        bridge.send(call(6, "test_tool_with_logging") + request(7, "ping"))
        assert set(bridge.lines(2)) == {6, 7}, "nothing below the level that was set"
        assert status(tmp_path)["pid"] != first


def test_restoring_subscriptions_does_not_count_for_the_rate_limit(tmp_path: Path) -> None:
    few = {"RECALLD_RATE_LIMIT": "4"}
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE, variables=few) as bridge:
        opened(bridge)
        for id, name in enumerate(("watched-resource", "static-text", "static-binary"), 1):
            bridge.send(request(id, "resources/subscribe", uri=f"test://{name}"))
            assert "result" in bridge.line()
        kill_daemon(tmp_path)
        assert len([bridge.line() for _ in range(3)]) == 3
        bridge.send(b"".join(call(id, "echo", text="x") for id in range(10, 14)))
        assert all("result" in frame for frame in bridge.lines(4).values())


def test_a_modern_client_continues_without_a_handshake(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        bridge.send(modern(1, "server/discover"))
        assert bridge.line()["result"]["resultType"] == "complete"
        kill_daemon(tmp_path)
        bridge.send(modern(2, "tools/call", name="echo", arguments={"text": "x"}))
        assert bridge.line()["id"] == 2


def test_calls_in_flight_are_answered_after_the_end_of_input(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        bridge.send(initialize() + call(1, "slow", seconds=0.3) + request(2, "ping")[:-1])
        bridge.close_input()
        assert set(bridge.lines(3)) == {0, 1, 2}
        assert bridge.line() is None
        assert bridge.wait(2) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_has_the_effect_of_end_of_input(tmp_path: Path, number: signal.Signals) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        bridge.send(call(1, "slow", seconds=0.3) + request(2, "ping"))
        assert bridge.line()["id"] == 2
        bridge.process.send_signal(number)
        assert bridge.line()["id"] == 1
        assert bridge.wait(3) == 0


def test_a_closed_output_ends_the_bridge_without_an_error(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        assert bridge.process.stdout is not None
        bridge.process.stdout.close()
        bridge.send(request(1, "ping"))
        assert bridge.wait(5) == 0
        assert bridge.errors() == ""


def test_bytes_pass_unchanged_in_both_directions(tmp_path: Path) -> None:
    odd = (
        b"\r\n  \n{bad\n\xff\xfe\n[1]\n"
        + b'{"jsonrpc":"2.0" , "id" : "\\u0061", "method":"ping" }\r\n'
    )
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        bridge.send(odd)
        frames = [bridge.line() for _ in range(4)]
        assert [f["error"]["code"] for f in frames[:3]] == [-32700, -32700, -32600]
        assert frames[3]["id"] == "a"


def test_an_oversized_line_is_rejected_and_not_buffered(tmp_path: Path) -> None:
    small = {"RECALLD_FRAME_BYTES": "10000"}
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE, variables=small) as bridge:
        bridge.send(b"x" * 5_000_000 + b"\n" + request(1, "ping"))
        refused, pong = bridge.line(), bridge.line()
        assert "5000000 bytes" in refused["error"]["message"]
        assert pong["id"] == 1


@pytest.mark.parametrize("way", ["bridged", "embedded"])
def test_an_oversized_request_is_rejected_with_its_id(tmp_path: Path, way: str) -> None:
    text = "x" * 5_000_000
    first = call(5, "echo", text=text)
    message = json.loads(first)
    message["id"] = message.pop("id")  # the TypeScript SDK writes the id last
    last = json.dumps({**message, "id": "six"}).encode() + b"\n"
    more = ["--embedded"] if way == "embedded" else []
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE, *more) as client:
        opened(client)
        client.send(first + last + request(7, "ping"))
        frames = [client.line() for _ in range(3)]
        assert [frame["id"] for frame in frames] == [5, "six", 7]
        assert all("limit is 4194304" in f["error"]["message"] for f in frames[:2])


def test_a_daemon_without_fixtures_refuses_a_bridge_with_fixtures(tmp_path: Path) -> None:
    with daemon(tmp_path, "--dialects", ""):
        pass
    with child(tmp_path, "serve", "--no-http") as plain:
        deadline = time.monotonic() + 10
        while recalld(tmp_path, "health").returncode == 2 and time.monotonic() < deadline:
            pass
        finished = recalld(tmp_path, *BRIDGE, stdin=subprocess.DEVNULL)
        assert finished.returncode == 69
        assert "without --fixtures" in finished.stderr
        assert plain.process.poll() is None


def test_the_error_for_a_daemon_that_cannot_start_gives_the_reason(tmp_path: Path) -> None:
    with child(tmp_path, "stdio", "--embedded", "--fixtures") as owner:
        opened(owner)
        finished = recalld(tmp_path, *BRIDGE, stdin=subprocess.DEVNULL)
        assert finished.returncode == 69
        assert f"pid {owner.process.pid}" in finished.stderr


def test_a_newer_bridge_replaces_an_older_daemon(tmp_path: Path) -> None:
    older = (
        "import daemon.version as v; v.VERSION = '0.0.1'; from daemon.__main__ import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", older, "serve", "--no-http", "--fixtures"],
        env=environment(tmp_path),
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 10
        while recalld(tmp_path, "health").returncode == 2 and time.monotonic() < deadline:
            pass
        with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
            opened(bridge)
            assert process.wait(5) == 0
            assert status(tmp_path)["version"] == "0.1.0"
    finally:
        process.kill()
        process.wait()


def test_a_newer_bridge_keeps_the_http_address_of_an_older_serve(tmp_path: Path) -> None:
    older = (
        "import daemon.version as v; v.VERSION = '0.0.1'; from daemon.__main__ import main; main()"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", older, "serve", "--fixtures", "--bind", "127.0.0.1:0"],
        env=environment(tmp_path),
        stderr=subprocess.DEVNULL,
    )
    try:
        until_healthy(tmp_path)
        address = status(tmp_path)["http"]
        assert address
        with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
            opened(bridge)
            assert process.wait(5) == 0
            now = status(tmp_path)
            assert (now["version"], now["http"]) == ("0.1.0", address)
            with urlopen(f"{address.rstrip('/')}/health", timeout=5) as answer:
                assert answer.status == 200
            assert recalld(tmp_path, "stop").returncode == 0
    finally:
        process.kill()
        process.wait()


def test_serve_takes_over_from_a_daemon_of_a_client(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        first = status(tmp_path)
        assert first["http"] is None
        serve = ("serve", "--fixtures", "--bind", "127.0.0.1:0")
        with child(tmp_path, *serve) as server:
            deadline = time.monotonic() + 10
            while server.process.poll() is None and time.monotonic() < deadline:
                bridge.send(call("x", "echo", text="still here"))
                assert bridge.line()["id"] == "x"
                done = recalld(tmp_path, "status", "--json")
                if done.returncode == 0 and json.loads(done.stdout)["http"]:
                    break
            now = status(tmp_path)
            assert now["pid"] == server.process.pid
            assert now["http"]
            second = recalld(tmp_path, *serve)
            assert second.returncode == 75
            assert f"runs already, as pid {server.process.pid}" in second.stderr
            assert recalld(tmp_path, "stop").returncode == 0


def until_healthy(home: Path) -> None:
    deadline = time.monotonic() + 10
    while recalld(home, "health").returncode == 2 and time.monotonic() < deadline:
        pass


def test_a_thousand_lines_at_once_are_all_answered(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        opened(bridge)
        bridge.send(b"".join(call(n, "echo", text="y" * 200) for n in range(1, 1001)))
        assert [bridge.line()["id"] for _ in range(1000)] == list(range(1, 1001))


def test_the_socket_and_the_bridge_give_the_same_answer(tmp_path: Path) -> None:
    asked = modern(1, "tools/list") + modern(2, "tools/call", name="structured", arguments={"n": 2})
    with spawned_daemon(tmp_path), child(tmp_path, *BRIDGE) as bridge:
        bridge.send(asked)
        over_bridge = [bridge.line(), bridge.line()]
        with link(tmp_path) as direct:
            direct.send(asked)
            assert [direct.line(), direct.line()] == over_bridge
        assert json.dumps(over_bridge)


@pytest.mark.parametrize("variable", ["RECALLD_RATE_LIMIT", "CLAUDE_RECALL_RATE_LIMIT"])
def test_the_rate_limit_of_one_client_applies_to_its_session_only(
    tmp_path: Path, variable: str
) -> None:
    limited = {"RECALLD_RATE_LIMIT": "", variable: "2"}
    with daemon(tmp_path), child(tmp_path, *BRIDGE) as other:
        opened(other)
        with child(tmp_path, *BRIDGE, variables=limited) as bridge:
            opened(bridge)
            for id in (1, 2, 3):
                bridge.send(call(id, "echo", text="x"))
            frames = bridge.lines(3)
            assert "result" in frames[2]
            assert frames[3]["error"]["code"] == -32001
            assert "2 requests a minute" in frames[3]["error"]["message"]
        for id in (1, 2, 3):
            other.send(call(id, "echo", text="x"))
        assert all("result" in frame for frame in other.lines(3).values())


def test_the_rate_limit_of_the_client_that_starts_the_daemon_does_not_apply_to_others(
    tmp_path: Path,
) -> None:
    variables = {"RECALLD_RATE_LIMIT": "1"}
    with (
        spawned_daemon(tmp_path),
        child(tmp_path, *BRIDGE, variables=variables) as first,
        child(tmp_path, *BRIDGE, variables={"RECALLD_RATE_LIMIT": ""}) as second,
    ):
        for bridge in (first, second):
            opened(bridge)
            bridge.send(call(1, "echo", text="x") + call(2, "echo", text="x"))
        assert first.lines(2)[2]["error"]["code"] == -32001
        assert "result" in second.lines(2)[2]
