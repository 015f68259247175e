"""2025-03-26 to 2025-11-25 over HTTP: sessions, streams, resuming, requests to the client."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.transports.http.edge.messages import Pace
from tests.support.web import (
    BOTH,
    MODERN,
    Web,
    call,
    events,
    notification,
    request,
    running_web,
)

pytestmark = pytest.mark.anyio

SSE = {"accept": "text/event-stream"}


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path) as running:
        yield running


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_a_session_uses_the_negotiated_version(web: Web, version: str) -> None:
    session = await web.open(version)
    answer = await web.post(call("structured", {"n": 3}), session)
    assert answer.status_code == 200
    result = answer.json()["result"]
    assert ("structuredContent" in result) == (version >= "2025-06-18")
    assert "resultType" not in result
    assert "mcp-session-id" not in answer.headers


async def test_handles_are_visible_ascii_and_unique(web: Web) -> None:
    handles = {(await web.open())["mcp-session-id"] for _ in range(20)}
    assert len(handles) == 20
    assert all(len(h) >= 32 and all("!" <= c <= "~" for c in h) for h in handles)


@pytest.mark.parametrize("verb", ["POST", "GET", "DELETE"])
async def test_no_session_is_400_and_an_unknown_one_404(web: Web, verb: str) -> None:
    content = json.dumps(request("tools/list")) if verb == "POST" else None
    headers = {"accept": BOTH, "content-type": "application/json"}
    without = await web.client.request(verb, "/mcp", content=content, headers=headers)
    assert without.status_code == 400
    for handle in ("x", "A" * 43, "../../etc/passwd"):
        named = {**headers, "mcp-session-id": handle}
        unknown = await web.client.request(verb, "/mcp", content=content, headers=named)
        assert unknown.status_code == 404
        assert "id" not in unknown.json()


async def test_delete_ends_the_session_and_its_calls(web: Web) -> None:
    session = await web.open()
    ended: list[Any] = []

    async def slow() -> None:
        ended.append(await web.post(call("slow", {"seconds": 60}, id=5), session))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await web.services.gate.until(lambda: web.services.gate.in_flight == 1)
            gone = await web.client.delete("/mcp", headers=session)
            assert gone.status_code == 204
    assert web.services.gate.in_flight == 0
    error = ended[0].json()["error"]
    assert (ended[0].status_code, ended[0].json()["id"], error["code"]) == (200, 5, -32800)
    assert "the session was ended; it may or may not have been done" in error["message"]
    assert error["data"]["retrySafe"] is False
    assert (await web.post(request("ping"), session)).status_code == 404
    assert (await web.client.delete("/mcp", headers=session)).status_code == 404


async def test_a_second_initialize_in_a_session_is_refused(web: Web) -> None:
    session = await web.open("2025-06-18")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    again = await web.post(request("initialize", params), session)
    assert again.json()["error"]["code"] == -32600
    assert "structuredContent" in (await web.post(call("structured", {"n": 1}), session)).text


async def test_a_failed_initialize_leaves_no_session(web: Web) -> None:
    answer = await web.post(request("initialize", {"protocolVersion": 7}))
    assert answer.status_code == 400
    assert "mcp-session-id" not in answer.headers
    assert await web.services.sessions.total() == 0


@pytest.mark.parametrize(
    ("version", "header", "status"),
    [
        ("2025-06-18", None, 200),
        ("2025-06-18", "2025-11-25", 200),
        ("2025-06-18", "1999-01-01", 400),
        ("2025-03-26", None, 200),
        ("2025-11-25", MODERN, 400),
    ],
)
async def test_the_version_header_of_a_session(
    web: Web, version: str, header: str | None, status: int
) -> None:
    session = await web.open(version)
    session.pop("mcp-protocol-version", None)
    if header is not None:
        session["mcp-protocol-version"] = header
    answer = await web.post(request("tools/list"), session)
    assert answer.status_code == status
    if header == "1999-01-01":
        assert "Unsupported protocol version" in answer.json()["error"]["message"]


async def test_batches_exist_in_one_revision(web: Web) -> None:
    old = await web.open("2025-03-26")
    batch = [request("ping", id=1), notification("x"), call("slow", {"seconds": 0.05}, id="b")]
    answer = await web.post(batch, old)
    assert answer.status_code == 200
    assert {entry["id"] for entry in answer.json()} == {1, "b"}
    only_notes = await web.post([notification("x"), notification("y")], old)
    assert (only_notes.status_code, only_notes.content) == (202, b"")
    empty = await web.post([], old)
    assert (empty.status_code, empty.json()["error"]["code"]) == (400, -32600)
    new = await web.open("2025-06-18")
    refused = await web.post([request("ping")], new)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32600)
    assert "id" not in refused.json()


async def test_sessions_do_not_see_each_other(web: Web) -> None:
    quiet, loud = await web.open(), await web.open()
    await web.post(request("logging/setLevel", {"level": "error"}), quiet)
    said = {}
    for name, session in (("quiet", quiet), ("loud", loud)):
        answer = await web.post(call("test_tool_with_logging"), session)
        said[name] = answer.text.count("notifications/message")
    assert said == {"quiet": 0, "loud": 3}


@pytest.mark.parametrize(
    ("version", "primes"), [("2025-03-26", False), ("2025-06-18", False), ("2025-11-25", True)]
)
async def test_streams_begin_with_a_priming_event_in_2025_11_25_only(
    web: Web, version: str, primes: bool
) -> None:
    session = await web.open(version)
    seen = events((await web.post(call("test_tool_with_logging"), session)).text)
    assert (seen[0].data == "") == primes
    assert bool(seen[0].retry) == primes
    ids = [event.id for event in seen]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert seen[-1].message["id"] == 1


async def test_a_dropped_connection_does_not_cancel_and_the_rest_can_be_fetched(web: Web) -> None:
    session = await web.open()
    message = call("slow", {"seconds": 0.6, "steps": 6}, id="long")
    message["params"]["_meta"] = {"progressToken": "p"}
    last = ""
    async with web.client.stream(
        "POST", "/mcp", json=message, headers={**session, "accept": BOTH}
    ) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("id:"):
                last = line.removeprefix("id: ")
            if '"progress":2' in line:
                break
    rest = await web.client.get("/mcp", headers={**session, **SSE, "last-event-id": last})
    messages = [event.message for event in events(rest.text) if event.data]
    assert [m["params"]["progress"] for m in messages[:-1]] == [3, 4, 5, 6]
    assert messages[-1]["id"] == "long"
    assert messages[-1]["result"]["content"][0]["text"] == "waited"
    again = await web.client.get("/mcp", headers={**session, **SSE, "last-event-id": last})
    assert [e.data for e in events(again.text)] == [e.data for e in events(rest.text)]


async def test_another_sessions_event_id_resumes_nothing(web: Web) -> None:
    mine, other = await web.open(), await web.open()
    seen = events((await web.post(call("test_tool_with_logging"), mine)).text)
    for last in (seen[0].id, "nonsense", "x.1", "1" * 300):
        async with web.client.stream(
            "GET", "/mcp", headers=[*other.items(), *SSE.items(), ("last-event-id", last)]
        ) as stream:
            assert stream.status_code == 200
            with anyio.move_on_after(0.2):
                async for line in stream.aiter_lines():
                    assert '"method"' not in line
                    assert '"result"' not in line


async def test_the_standalone_stream_carries_changes_and_never_answers(web: Web) -> None:
    session = await web.open()
    await web.post(request("resources/subscribe", {"uri": "test://watched-resource"}), session)
    async with web.client.stream("GET", "/mcp", headers={**session, **SSE}) as stream:
        second = await web.client.get("/mcp", headers={**session, **SSE})
        assert second.status_code == 409
        for tool in ("test_trigger_tool_change", "test_trigger_resource_change"):
            answer = await web.post(call(tool), session)
            assert answer.json()["result"]["content"]
        heard: list[str] = []
        with anyio.fail_after(5):
            async for line in stream.aiter_lines():
                if line.startswith("data: {"):
                    message = json.loads(line.removeprefix("data: "))
                    assert "result" not in message
                    heard.append(message["method"])
                    if len(heard) == 2:
                        break
    assert heard == ["notifications/tools/list_changed", "notifications/resources/updated"]


async def test_a_request_to_the_client_travels_on_the_stream_of_the_call(web: Web) -> None:
    session = await web.open(capabilities={"sampling": {}})
    asked: dict[str, Any] = {}
    answered: dict[str, Any] = {}
    async with web.client.stream(
        "POST",
        "/mcp",
        json=call("test_sampling", {"prompt": "hi"}, id="q"),
        headers={**session, "accept": BOTH},
    ) as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data: {"):
                continue
            message = json.loads(line.removeprefix("data: "))
            if message.get("method") == "sampling/createMessage":
                asked = message
                content = {"type": "text", "text": "an answer"}
                reply = {"role": "assistant", "content": content, "model": "m"}
                posted = await web.post(
                    {"jsonrpc": "2.0", "id": message["id"], "result": reply}, session
                )
                assert (posted.status_code, posted.content) == (202, b"")
            else:
                answered = message
    assert asked["params"]["messages"][0]["content"]["text"] == "hi"
    assert answered["id"] == "q"
    assert "an answer" in answered["result"]["content"][0]["text"]


async def test_a_posted_cancellation_ends_the_other_post(web: Web) -> None:
    session = await web.open()
    ended: list[Any] = []

    async def slow() -> None:
        ended.append(await web.post(call("slow", {"seconds": 60}, id=9), session))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await web.services.gate.until(lambda: web.services.gate.in_flight == 1)
            for wrong in ("9", 10, None):
                note = notification("notifications/cancelled", {"requestId": wrong})
                assert (await web.post(note, session)).status_code == 202
            assert web.services.gate.in_flight == 1
            note = notification("notifications/cancelled", {"requestId": 9})
            assert (await web.post(note, session)).status_code == 202
    assert ended[0].json()["error"]["code"] == -32800
    assert web.services.gate.in_flight == 0


async def test_a_duplicate_id_in_flight_is_rejected(web: Web) -> None:
    session = await web.open()
    answers: list[Any] = []

    async def slow() -> None:
        answers.append(await web.post(call("slow", {"seconds": 0.4}, id=1), session))

    async with anyio.create_task_group() as group:
        group.start_soon(slow)
        await web.services.gate.until(lambda: web.services.gate.in_flight == 1)
        twice = await web.post(call("echo", {"text": "x"}, id=1), session)
        assert twice.status_code == 400
        assert twice.json()["error"]["data"]["duplicateId"] == 1
        other = await web.open()
        elsewhere = await web.post(call("echo", {"text": "x"}, id=1), other)
        assert elsewhere.status_code == 200
    assert answers[0].json()["result"]["content"][0]["text"] == "waited"


async def test_a_change_of_a_session_is_stored_before_it_is_acknowledged(web: Web) -> None:
    session = await web.open()
    changes = [
        ("logging/setLevel", {"level": "error"}, '"error"'),
        ("resources/subscribe", {"uri": "test://watched-resource"}, "watched-resource"),
    ]
    for method, params, stored in changes:
        assert (await web.post(request(method, params), session)).status_code == 200
        ((_, handle),) = await web.services.sessions.handles()
        assert stored in handle.state


async def test_a_session_outlives_the_daemon(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        session = await web.open("2025-06-18", capabilities={"sampling": {}})
        await web.post(request("logging/setLevel", {"level": "error"}), session)
        await web.post(request("resources/subscribe", {"uri": "test://watched-resource"}), session)
        ended = await web.open()
        await web.client.delete("/mcp", headers=ended)
        before = await web.services.sessions.total()
    async with running_web(tmp_path) as web:
        answer = await web.post(call("structured", {"n": 2}), session)
        assert answer.status_code == 200
        assert answer.json()["result"]["structuredContent"]["square"] == 4
        quiet = await web.post(call("test_tool_with_logging"), session)
        assert "notifications/message" not in quiet.text
        sampled = await web.post(request("tools/list"), session)
        assert sampled.status_code == 200
        async with web.client.stream(
            "GET", "/mcp", headers={**session, **SSE, "last-event-id": "0123-1.4"}
        ) as stream:
            await web.post(call("test_trigger_resource_change"), session)
            with anyio.fail_after(5):
                async for line in stream.aiter_lines():
                    if "notifications/resources/updated" in line:
                        break
        assert (await web.post(request("ping"), ended)).status_code == 404
        assert await web.services.sessions.total() == before


async def test_a_stream_that_the_server_closes_early_is_resumed(web: Web) -> None:
    session = await web.open()
    first = events((await web.post(call("test_reconnection", id=3), session)).text)
    assert [event.data for event in first] == [""]
    rest = await web.client.get("/mcp", headers={**session, **SSE, "last-event-id": first[0].id})
    assert events(rest.text)[-1].message["id"] == 3


async def test_a_long_call_becomes_a_stream_that_can_be_resumed(tmp_path: Path) -> None:
    async with running_web(tmp_path, pace=Pace(commit=0.05)) as web:
        session = await web.open()
        answer = await web.post(call("slow", {"seconds": 0.3}, id=1), session)
    assert answer.headers["content-type"] == "text/event-stream"
    assert events(answer.text)[-1].message["id"] == 1


async def test_a_batch_whose_calls_are_all_cancelled_is_answered(web: Web) -> None:
    session = await web.open("2025-03-26")
    ended: list[Any] = []

    async def slow() -> None:
        batch = [call("slow", {"seconds": 60}, id=n) for n in (1, 2)]
        ended.append(await web.post(batch, session))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(slow)
            await web.services.gate.until(lambda: web.services.gate.in_flight == 2)
            for n in (1, 2):
                note = notification("notifications/cancelled", {"requestId": n})
                assert (await web.post(note, session)).status_code == 202
    answers = [(each["id"], each["error"]["code"]) for each in ended[0].json()]
    assert answers == [(2, -32800)], "a cancelled call has no entry, but there must be an answer"


async def test_resuming_a_call_after_a_restart_ends_at_once(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        session = await web.open()
        seen = events((await web.post(call("test_tool_with_logging"), session)).text)
    async with running_web(tmp_path) as web:
        with anyio.fail_after(5):
            given = {**session, **SSE, "last-event-id": seen[0].id}
            rest = await web.client.get("/mcp", headers=given)
        assert rest.status_code == 200
        assert events(rest.text) == []
        async with web.client.stream("GET", "/mcp", headers={**session, **SSE}) as stream:
            assert stream.status_code == 200, "the standing stream is another one"
