"""A peer on an in-memory wire: answers, limits, cancellation, sessions, subscriptions."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.tools.bound_tool import as_answer
from daemon.tools.context import Context
from daemon.tools.errors import ToolFailure
from daemon.tools.registry import Registry
from daemon.tools.specification import ToolSpec
from protocol.mcp import CallToolResult, TextContent
from tests.support.clock import FakeClock
from tests.support.wire import call, initialize, join, modern, request, running_services

pytestmark = pytest.mark.anyio

REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def by_id(frames: list[Any]) -> dict[Any, Any]:
    return {frame["id"]: frame for frame in frames if "id" in frame}


async def test_calls_that_finish_at_once_are_answered_in_order_in_one_write(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + b"".join(call(n, "echo", text=str(n)) for n in range(1, 50)))
        frames = await wire.wait_for(50)
        assert [frame["id"] for frame in frames] == list(range(50))
        assert frames[7]["result"]["content"][0]["text"] == "7"


async def test_a_slow_call_does_not_hold_up_a_fast_one(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + call(1, "slow", seconds=0.05) + call(2, "echo", text="x"))
        frames = await wire.wait_for(3)
        assert [frame["id"] for frame in frames] == [0, 2, 1]


async def test_a_cancelled_call_stops_and_is_never_answered(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + call(1, "slow", seconds=100))
        await wire.wait_for(1)
        assert services.gate.in_flight == 1
        peer.feed(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
        )
        with anyio.fail_after(2):
            await services.gate.until(lambda: services.gate.in_flight == 0)
        peer.feed(call(2, "echo", text="after"))
        assert [frame["id"] for frame in await wire.wait_for(2)] == [0, 2]


async def test_losing_a_connection_cancels_its_calls(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + call(1, "slow", seconds=100))
        await wire.wait_for(1)
        peer.lost()
        peer.lost()
        with anyio.fail_after(2):
            await services.gate.until(lambda: services.gate.in_flight == 0)
        assert not len(services.connections)
        assert len(wire.frames()) == 1


async def test_after_the_end_of_input_answers_still_go_out_and_then_the_wire_closes(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        last = call(2, "echo", text="no line end")[:-1]
        peer.feed(initialize() + call(1, "slow", seconds=0.05) + last)
        peer.end_input()
        assert not wire.is_closed
        frames = await wire.wait_for(3)
        assert set(by_id(frames)) == {0, 1, 2}
        with anyio.fail_after(2):
            await services.gate.until(lambda: wire.is_closed or services.gate.in_flight == 0)
        assert wire.is_closed


async def test_a_slow_reader_stops_being_read_and_loses_nothing(tmp_path: Path) -> None:
    async with running_services(
        tmp_path, limits__output_bytes=10_000, limits__requests_per_minute=0
    ) as services:
        peer, wire = join(services, capacity=0)
        peer.feed(initialize() + b"".join(call(n, "big", bytes=1000) for n in range(1, 101)))
        assert wire.is_paused
        assert wire.unsent() < 12_000
        for _ in range(100):
            if len(by_id(wire.frames())) == 101:
                break
            wire.drain()
            await anyio.lowlevel.checkpoint()
        assert sorted(by_id(wire.frames())) == list(range(101))


async def test_a_finished_call_waits_with_its_answer_for_a_slow_reader(tmp_path: Path) -> None:
    async with running_services(tmp_path, limits__output_bytes=4096) as services:
        peer, wire = join(services, capacity=0)
        peer.feed(initialize() + call(2, "slow", seconds=0) + call(1, "big", bytes=10_000))
        with anyio.move_on_after(0.05):
            await services.gate.until(lambda: services.gate.in_flight == 0)
        assert services.gate.in_flight == 1
        assert b'"id":2' not in wire.backlog
        wire.capacity = None
        wire.drain()
        assert [frame["id"] for frame in await wire.wait_for(3)] == [0, 1, 2]


async def test_one_call_too_many_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    async with running_services(tmp_path, limits__in_flight=3) as services:
        peer, wire = join(services)
        peer.feed(initialize() + b"".join(call(n, "slow", seconds=0.05) for n in range(1, 6)))
        frames = by_id(await wire.wait_for(6))
        refused = [id for id in range(1, 6) if "error" in frames[id]]
        assert refused == [4, 5]
        assert frames[4]["error"]["data"]["kind"] == "overloaded"


async def test_one_call_too_many_in_all_is_an_error(tmp_path: Path) -> None:
    async with running_services(tmp_path, limits__in_flight_total=1) as services:
        one, _ = join(services)
        other, wire = join(services)
        one.feed(initialize() + call(1, "slow", seconds=100))
        other.feed(initialize() + call(1, "slow", seconds=100))
        assert "error" in by_id(await wire.wait_for(2))[1]


async def test_the_limiter_refuses_with_the_time_to_wait_but_never_a_ping(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_services(tmp_path, clock=clock, limits__requests_per_minute=2) as services:
        peer, wire = join(services)
        peer.feed(initialize() + b"".join(call(n, "echo", text="x") for n in (1, 2, 3)))
        peer.feed(request(4, "ping") + request(5, "health/check"))
        frames = by_id(await wire.wait_for(6))
        assert frames[3]["error"]["code"] == -32001
        assert frames[3]["error"]["data"]["retryAfterSeconds"] == 60.0
        assert "result" in frames[4]
        assert frames[5]["result"]["rateLimiter"] == {"requestsPerMinute": 2, "currentRequests": 2}
        clock.advance(60)
        peer.feed(call(6, "echo", text="x"))
        assert "result" in by_id(await wire.wait_for(7))[6]


async def test_health_has_the_documented_fields_and_measured_values(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(request(1, "health/check"))
        (frame,) = await wire.wait_for(1)
        health = frame["result"]
        assert list(health) == [
            "status",
            "version",
            "uptime",
            "memory",
            "sessions",
            "toolsRegistered",
            "database",
            "rateLimiter",
        ]
        assert set(health["memory"]) == {"heapUsed", "heapTotal", "external", "rss"}
        assert health["memory"]["rss"] > 10_000_000
        assert health["sessions"] == {"total": 0, "active": 0}
        assert health["toolsRegistered"] == len(peer.surface.tools)
        assert health["status"] == "healthy"
        assert health["database"] == "connected"


async def test_a_session_is_minted_on_first_contact_and_not_by_a_probe(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        probe, probe_wire = join(services)
        probe.feed(request(1, "ping") + request(2, "health/check"))
        await probe_wire.wait_for(2)
        assert await services.sessions.total() == 0
        legacy, _ = join(services)
        legacy.feed(initialize())
        stateless, _ = join(services)
        stateless.feed(modern(1, "tools/list"))
        first, second = await legacy.session(), await stateless.session()
        assert first != second
        assert await services.sessions.total() == 2


async def test_a_bridge_resumes_its_session_with_a_new_daemon(tmp_path: Path) -> None:
    attach = {"version": "0.1.0"}
    async with running_services(tmp_path) as services:
        peer, wire = join(services, private=True)
        peer.feed(request(1, "recalld/attach", **attach))
        first = (await wire.wait_for(1))[0]["result"]
        assert "echo" in first["retrySafe"]
        assert "slow" not in first["retrySafe"]
    async with running_services(tmp_path) as services:
        peer, wire = join(services, private=True)
        peer.feed(request(1, "recalld/attach", session=first["session"], **attach))
        assert (await wire.wait_for(1))[0]["result"]["session"] == first["session"]
        peer.feed(request(2, "recalld/attach", **attach))
        assert (await wire.wait_for(2))[1]["error"]["code"] == -32600
        other, other_wire = join(services, private=True)
        other.feed(request(1, "recalld/attach", session="session_unknown", **attach))
        assert (await other_wire.wait_for(1))[0]["result"]["session"] != first["session"]


async def test_private_methods_exist_on_the_unix_socket_only(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + request(1, "recalld/stop"))
        assert (await wire.wait_for(2))[1]["error"]["code"] == -32601
        assert not services.shutdown.stopping.is_set()


@pytest.mark.parametrize("revision", REVISIONS)
async def test_wrong_arguments_are_reported_in_the_form_of_the_revision(
    tmp_path: Path, revision: str
) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize(revision) + call(1, "echo", text=5) + call(2, "none"))
        peer.feed(request(3, "tools/call", name="echo", arguments=[]) + request(4, "tools/call"))
        frames = by_id(await wire.wait_for(5))
        if revision == "2025-11-25":
            assert frames[1]["result"]["isError"]
            assert "text" in frames[1]["result"]["content"][0]["text"]
        else:
            assert frames[1]["error"]["code"] == -32602
            assert "text: expected string" in frames[1]["error"]["message"]
        assert frames[2]["error"]["code"] == -32000
        assert frames[3]["error"]["code"] == frames[4]["error"]["code"] == -32602


async def test_in_2026_07_28_unknown_tools_and_resources_are_invalid_params(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(modern(1, "tools/call", name="none", arguments={}))
        peer.feed(modern(2, "resources/read", uri="test://none"))
        peer.feed(modern(3, "tools/call", name="test_missing_capability"))
        frames = by_id(await wire.wait_for(3))
        assert frames[1]["error"]["code"] == frames[2]["error"]["code"] == -32602
        assert frames[2]["error"]["data"]["uri"] == "test://none"
        assert frames[3]["error"]["code"] == -32021
        assert frames[3]["error"]["data"]["requiredCapabilities"] == {"sampling": {}}


async def test_a_crash_is_reported_without_details(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + call(1, "crash"))
        error = (await wire.wait_for(2))[1]["error"]
        assert error["code"] == -32603
        assert "purpose" not in str(error)
        assert error["data"]["errorId"] in error["message"]


async def test_progress_increases_and_needs_a_token(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize("2024-11-05") + call(1, "slow", seconds=0.01, steps=3))
        assert len(await wire.wait_for(2)) == 2
        arguments = {"seconds": 0.01, "steps": 3}
        token = {"progressToken": 0}
        peer.feed(request(2, "tools/call", name="slow", arguments=arguments, _meta=token))
        reports = [f["params"] for f in await wire.wait_for(6) if "method" in f]
        assert [report["progress"] for report in reports] == [1, 2, 3]
        assert all(report["progressToken"] == 0 for report in reports)
        assert all("message" not in report for report in reports)


async def test_a_tool_can_ask_the_client(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize(sampling={}) + call(1, "test_sampling", prompt="hi"))
        question = (await wire.wait_for(2))[1]
        assert question["method"] == "sampling/createMessage"
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{"content":{"text":"hello"}}}\n'
        peer.feed(answer % 999 + answer % question["id"] + answer % question["id"])
        assert "hello" in str((await wire.wait_for(3))[2]["result"])


async def test_a_client_without_the_capability_is_not_asked(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + call(1, "test_sampling", prompt="hi"))
        peer.feed(modern(2, "tools/call", name="test_elicitation", arguments={"message": "m"}))
        frames = by_id(await wire.wait_for(3))
        assert frames[1]["result"]["isError"]
        assert frames[2]["result"]["isError"]


async def test_log_messages_respect_the_requested_level(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + request(1, "logging/setLevel", level="error"))
        peer.feed(call(2, "test_tool_with_logging"))
        assert len(await wire.wait_for(3)) == 3
        peer.feed(request(3, "logging/setLevel", level="loud"))
        assert (await wire.wait_for(4))[3]["error"]["code"] == -32602
        level = {"io.modelcontextprotocol/logLevel": "info"}
        peer.feed(modern(4, "tools/call", level, name="test_logging_tool"))
        assert len([f for f in await wire.wait_for(8) if f.get("method")]) == 3
        peer.feed(modern(5, "tools/call", name="test_logging_tool"))
        assert len(await wire.wait_for(9)) == 9


async def test_resources_prompts_and_completion_work_in_both_eras(tmp_path: Path) -> None:
    reference = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    argument = {"name": "arg1", "value": "par"}
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize())
        await wire.wait_for(1)
        count = 1
        for ask in (request, modern):
            peer.feed(ask(1, "resources/list"))
            peer.feed(ask(2, "resources/templates/list"))
            peer.feed(ask(3, "resources/read", uri="test://template/7/data"))
            peer.feed(ask(4, "prompts/list"))
            peer.feed(ask(5, "prompts/get", name="test_prompt_with_image"))
            peer.feed(ask(6, "completion/complete", ref=reference, argument=argument))
            count += 6
            frames = by_id((await wire.wait_for(count))[count - 6 :])
            assert len(frames[1]["result"]["resources"]) == 3
            assert frames[2]["result"]["resourceTemplates"]
            assert '"id":"7"' in frames[3]["result"]["contents"][0]["text"]
            assert frames[4]["result"]["prompts"]
            assert frames[5]["result"]["messages"][0]["content"]["type"] == "image"
            assert frames[6]["result"]["completion"]["values"] == ["paris", "park", "party"]
        assert frames[1]["result"]["ttlMs"] >= 0
        assert frames[3]["result"]["cacheScope"] == "private"


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {"name": "none"}),
        ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}}),
        ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": 5}}),
        ("tools/list", {"cursor": "nonsense"}),
        ("tools/list", {"cursor": 5}),
        ("resources/read", {}),
        ("resources/read", {"uri": 5}),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "none"}}),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "x"}, "argument": {"name": "id", "value": ""}},
        ),
    ],
)
async def test_the_error_names_the_wrong_parameter(
    tmp_path: Path, method: str, params: dict[str, Any]
) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize() + request(1, method, **params))
        error = (await wire.wait_for(2))[1]["error"]
        assert error["code"] == -32602
        assert ":" in error["message"]


async def test_altered_request_state_is_rejected(tmp_path: Path) -> None:
    name = "test_input_required_result_tampered_state"
    able: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(modern(1, "tools/call", able, name=name))
        state = (await wire.wait_for(1))[0]["result"]["requestState"]
        answers = {"confirm": {"action": "accept", "content": {"ok": True}}}
        tampered = ("A" if state[0] != "A" else "B") + state[1:]
        for id, sent in enumerate((tampered, "", "x" * 50, "é", 5), start=2):
            peer.feed(
                modern(id, "tools/call", able, name=name, inputResponses=answers, requestState=sent)
            )
        peer.feed(
            modern(9, "tools/call", able, name=name, inputResponses=answers, requestState=state)
        )
        frames = by_id(await wire.wait_for(7))
        assert [frames[id]["error"]["code"] for id in range(2, 7)] == [-32602] * 5
        assert "state-ok" in str(frames[9]["result"])


def test_a_tool_may_return_text_structure_or_a_finished_result() -> None:
    finished = CallToolResult(content=[TextContent(text="x")])
    assert as_answer(finished) is finished
    assert as_answer("x") == finished


def test_two_tools_cannot_share_a_name_and_a_removed_one_is_gone() -> None:
    def run(_arguments: Any, _context: Context) -> str:
        raise ToolFailure

    spec = ToolSpec(name="a", description="d", run=run, aliases=("b",))
    registry = Registry([spec])
    for name, aliases in (("a", ()), ("c", ("b",))):
        with pytest.raises(ValueError, match=f"called {name}"):
            registry.add(ToolSpec(name=name, description="d", run=run, aliases=aliases))
    named = ToolSpec(name="b", description="d", run=run)
    registry.add(named)
    found = registry.find("b")
    assert found is not None
    assert found.spec is named
    registry.remove("b")
    assert registry.find("b") is not None
    registry.remove("a")
    assert registry.find("b") is None
    assert len(registry) == 0
