"""2026-07-28 over HTTP: no sessions, headers that repeat the body, statuses, cancellation."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from daemon.transports.http.edge.messages import Pace
from protocol.revisions import CLIENT_CAPABILITIES, PROTOCOL_VERSION, SERVER_INFO, SUBSCRIPTION_ID
from tests.support.web import BOTH, MODERN, Web, events, modern, notification, running_web

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path) as running:
        yield running


async def test_a_request_is_answered_with_json_and_no_session(web: Web) -> None:
    answer = await web.modern("tools/call", {"name": "echo", "arguments": {"text": "hé"}})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert "mcp-session-id" not in answer.headers
    result = answer.json()["result"]
    assert result["resultType"] == "complete"
    assert result["content"] == [{"type": "text", "text": "hé"}]
    assert result["_meta"][SERVER_INFO]["name"] == "recalld"


@pytest.mark.parametrize(
    ("changes", "status", "code"),
    [
        ({"mcp-protocol-version": None}, 400, -32020),
        ({"mcp-protocol-version": "2025-11-25"}, 400, -32020),
        ({"mcp-protocol-version": "1999-01-01"}, 400, -32020),
        ({"mcp-method": None}, 400, -32020),
        ({"mcp-method": "tools/list"}, 400, -32020),
        ({"mcp-method": "Tools/Call"}, 400, -32020),
        ({"mcp-name": None}, 400, -32020),
        ({"mcp-name": "fail"}, 400, -32020),
        ({"mcp-name": "ECHO"}, 400, -32020),
        ({"mcp-name": "=?base64?ZWNobw?="}, 400, -32020),
        ({"mcp-name": "=?base64?ZW!!obw==?="}, 400, -32020),
        ({"mcp-name": "=?base64?/w==?="}, 400, -32020),
        ({"mcp-name": "=?BASE64?ZWNobw==?="}, 400, -32020),
        ({"mcp-name": "=?base64?ZWNobw==?="}, 200, None),
        ({"MCP-METHOD": "tools/call"}, 200, None),
        ({"mcp-session-id": "whatever", "last-event-id": "1"}, 200, None),
    ],
)
async def test_headers_must_match_the_body(
    web: Web, changes: dict[str, str | None], status: int, code: int | None
) -> None:
    message, headers = modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    for name, value in changes.items():
        headers.pop(name.lower(), None)
        if value is not None:
            headers[name] = value
    answer = await web.post(message, headers)
    assert answer.status_code == status
    assert answer.json().get("error", {}).get("code") == code
    assert answer.json()["id"] == 1
    assert "mcp-session-id" not in answer.headers


async def test_a_repeated_routing_header_is_refused(web: Web) -> None:
    message, headers = modern("tools/list")
    pairs = [*headers.items(), ("mcp-method", "tools/list")]
    answer = await web.client.post("/mcp", json=message, headers=[*pairs, ("accept", BOTH)])
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == -32020


@pytest.mark.parametrize(
    ("arguments", "headers", "is_fine"),
    [
        ({"region": "us"}, {"mcp-param-region": "us"}, True),
        ({"region": "us"}, {"Mcp-Param-REGION": "us"}, True),
        ({"region": "us"}, {}, False),
        ({"region": "us"}, {"mcp-param-region": "eu"}, False),
        ({"region": "世"}, {"mcp-param-region": "=?base64?5LiW?="}, True),
        ({"region": "us"}, {"mcp-param-region": "=?base64?dXM?="}, False),
        ({"region": None}, {}, True),
        ({}, {}, True),
        ({}, {"mcp-param-region": "us"}, False),
        ({"count": 42}, {"mcp-param-count": "42.0"}, True),
        ({"count": 42}, {"mcp-param-count": "41"}, False),
        ({"region": "us"}, {"mcp-param-region": "us", "mcp-param-unknown": "x"}, True),
    ],
)
async def test_mirrored_arguments_must_match(
    web: Web, arguments: dict[str, Any], headers: dict[str, str], is_fine: bool
) -> None:
    params = {"name": "test_mirrored_arguments", "arguments": arguments}
    answer = await web.modern("tools/call", params, headers=headers)
    assert answer.status_code == (200 if is_fine else 400)
    assert is_fine or answer.json()["error"]["code"] == -32020


@pytest.mark.parametrize("missing", [PROTOCOL_VERSION, CLIENT_CAPABILITIES, "_meta"])
@pytest.mark.parametrize("method", ["tools/list", "server/discover", "subscriptions/listen"])
async def test_missing_meta_is_400_with_invalid_params(web: Web, missing: str, method: str) -> None:
    message, headers = modern(method)
    if missing == "_meta":
        del message["params"]["_meta"]
    else:
        del message["params"]["_meta"][missing]
    answer = await web.post(message, headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32602)
    assert answer.json()["id"] == 1


@pytest.mark.parametrize("version", ["2025-11-25", "", "2099-01-01"])
async def test_another_version_in_header_and_body_is_unsupported(web: Web, version: str) -> None:
    answer = await web.modern(
        "tools/list", headers={"mcp-protocol-version": version}, meta={PROTOCOL_VERSION: version}
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == -32022
    assert "Unsupported protocol version" in error["message"]
    discovered = (await web.modern("server/discover")).json()["result"]
    assert error["data"]["supported"] == discovered["supportedVersions"]


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "no/such"])
async def test_unknown_methods_are_404(web: Web, method: str) -> None:
    answer = await web.modern(method)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, -32601)


async def test_a_handlers_error_is_200_except_where_the_revision_says_otherwise(web: Web) -> None:
    unknown = await web.modern("tools/call", {"name": "nothing", "arguments": {}})
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (200, -32602)
    unable = await web.modern("tools/call", {"name": "test_missing_capability", "arguments": {}})
    assert (unable.status_code, unable.json()["error"]["code"]) == (400, -32021)
    crashed = await web.modern("tools/call", {"name": "crash", "arguments": {}})
    assert (crashed.status_code, crashed.json()["error"]["code"]) == (200, -32603)
    assert "Traceback" not in crashed.text
    assert "/" not in crashed.json()["error"]["message"]


@pytest.mark.parametrize("verb", ["GET", "DELETE"])
async def test_get_and_delete_are_405(web: Web, verb: str) -> None:
    headers = {"mcp-protocol-version": MODERN, "accept": BOTH}
    answer = await web.client.request(verb, "/mcp", headers=headers)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST, OPTIONS"


async def test_progress_makes_the_answer_a_stream_that_ends_with_it(web: Web) -> None:
    answer = await web.modern(
        "tools/call",
        {"name": "test_tool_with_progress", "arguments": {}},
        meta={"progressToken": 0},
    )
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-accel-buffering"] == "no"
    assert answer.headers["cache-control"] == "no-store"
    seen = events(answer.text)
    assert all(event.id == "" for event in seen)
    assert [e.message.get("method", "answer") for e in seen] == ["notifications/progress"] * 3 + [
        "answer"
    ]
    assert [e.message["params"]["progress"] for e in seen[:-1]] == [0, 50, 100]
    assert all(e.message["params"]["progressToken"] == 0 for e in seen[:-1])


async def test_disconnecting_cancels_the_call(web: Web) -> None:
    before = (await web.modern("tools/call", {"name": "tally", "arguments": {}})).json()
    message, headers = modern(
        "tools/call", {"name": "slow", "arguments": {"seconds": 60, "steps": 600}}, id=2
    )
    message["params"]["_meta"]["progressToken"] = "p"
    async with web.client.stream(
        "POST", "/mcp", json=message, headers={**headers, "accept": BOTH}
    ) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                break
    with anyio.fail_after(5):
        await web.services.gate.until(lambda: web.services.gate.in_flight == 0)
    after = (await web.modern("tools/call", {"name": "tally", "arguments": {}})).json()
    count = "cancelled"
    was = before["result"]["structuredContent"][count]
    assert after["result"]["structuredContent"][count] == was + 1


async def test_listen_acknowledges_filters_marks_and_ends_with_a_result(web: Web) -> None:
    wants = {"notifications": {"toolsListChanged": True, "promptsListChanged": False}}
    message, headers = modern("subscriptions/listen", wants, id=0)
    seen: list[Any] = []
    async with web.client.stream(
        "POST", "/mcp", json=message, headers={**headers, "accept": BOTH}
    ) as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data:"):
                continue
            seen.append(events(line)[0].message)
            if len(seen) == 1:
                for tool in ("test_trigger_prompt_change", "test_trigger_tool_change"):
                    await web.modern("tools/call", {"name": tool, "arguments": {}})
            elif len(seen) == 2:
                web.services.shutdown.leaving.set()
    acknowledged, changed, ended = seen
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"][SUBSCRIPTION_ID] == 0
    assert ended["id"] == 0
    assert ended["result"]["_meta"][SUBSCRIPTION_ID] == 0


async def test_a_posted_notification_is_202_and_a_posted_response_400(web: Web) -> None:
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "notifications/cancelled"}
    noted = await web.post(notification("notifications/cancelled", {"requestId": 1}), headers)
    assert (noted.status_code, noted.content) == (202, b"")
    posted = await web.post({"jsonrpc": "2.0", "id": 1, "result": {}}, headers)
    assert posted.status_code == 400
    assert "id" not in posted.json()


async def test_a_batch_is_refused(web: Web) -> None:
    message, headers = modern("tools/list")
    answer = await web.post([message], headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_fifty_at_once_each_get_their_own_answer(web: Web) -> None:
    answers: dict[int, Any] = {}

    async def ask(number: int) -> None:
        params = {"name": "slow", "arguments": {"seconds": 0.05}}
        if number % 2:
            params = {"name": "echo", "arguments": {"text": str(number)}}
        answers[number] = (await web.modern("tools/call", params, id=7)).json()

    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(ask, number)
    for number, answer in answers.items():
        text = answer["result"]["content"][0]["text"]
        assert text == (str(number) if number % 2 else "waited")
        assert answer["id"] == 7


async def test_a_call_that_takes_long_is_kept_alive_as_a_stream(tmp_path: Path) -> None:
    async with running_web(tmp_path, pace=Pace(commit=0.05, keep_alive=0.05)) as web:
        answer = await web.modern("tools/call", {"name": "slow", "arguments": {"seconds": 0.4}})
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.text.count(":\n\n") >= 3
    assert [e.message["id"] for e in events(answer.text)] == [1]


async def test_whitespace_around_header_values_is_ignored(web: Web) -> None:
    message, headers = modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    body = json.dumps(message).encode()
    lines = [f"{name}: \t {value} \t" for name, value in headers.items()]
    head = "\r\n".join(
        [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{web.port}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            *lines,
        ]
    )
    assert (await web.raw(head.encode() + b"\r\n\r\n" + body)).startswith(b"HTTP/1.1 200")
