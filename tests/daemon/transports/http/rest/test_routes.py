"""REST: the routes of Context Harness, one error schema, and the OpenAPI document."""

import json
import re
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest

from store.model import NewDocument
from tests.support.memory import remembering_web
from tests.support.web import Web, call, running_web

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path) as running:
        yield running


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Web]:
    async with remembering_web(tmp_path) as (running, toolkit):
        await toolkit.engine.upsert_document(
            "default",
            NewDocument(
                source="filesystem",
                source_id="docs/auth.md",
                title="Authentication Guide",
                body="JWT tokens are signed with a rotating key.",
            ),
        )
        yield running


def refused(answer: Any, status: int, code: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    assert set(body["error"]) == {"code", "message"}
    assert body["error"]["code"] == code
    assert "Traceback" not in answer.text
    return str(body["error"]["message"])


async def test_search_get_and_sources_answer_as_context_harness_documents_them(memory: Web) -> None:
    found = await memory.client.post("/tools/search", json={"query": "tokens signed"})
    assert found.status_code == 200
    (row,) = found.json()["results"]
    assert list(row) == ["id", "source", "source_id", "title", "score", "snippet", "source_url"]
    assert (row["source"], row["source_id"]) == ("filesystem", "docs/auth.md")
    assert 0 <= row["score"] <= 1
    whole = await memory.client.post("/tools/get", json={"id": row["id"]})
    assert whole.status_code == 200
    assert list(whole.json()) == [
        "id",
        "source",
        "source_id",
        "title",
        "body",
        "source_url",
        "updated_at",
    ]
    assert whole.json()["body"] == "JWT tokens are signed with a rotating key."
    sources = await memory.client.get("/tools/sources")
    assert sources.json() == {
        "sources": [{"name": "filesystem", "configured": False, "healthy": True, "doc_count": 1}]
    }
    assert (await memory.client.get("/health")).json() == {"status": "ok"}


async def test_the_list_names_every_tool_with_its_parameters(memory: Web) -> None:
    listed = (await memory.client.get("/tools/list")).json()["tools"]
    by_name = {tool["name"]: tool for tool in listed}
    assert {"search", "get", "sources", "hindsight_put", "awareness_recall"} <= set(by_name)
    search = by_name["search"]
    assert list(search) == ["name", "description", "builtin", "parameters"]
    assert search["builtin"] is True
    assert search["parameters"]["required"] == ["query"]
    enum = search["parameters"]["properties"]["mode"]["enum"]
    assert enum == ["keyword", "semantic", "hybrid"]


async def test_any_tool_can_be_called_and_stored_memories_are_found(memory: Web) -> None:
    put = await memory.client.post(
        "/tools/hindsight_put",
        json={"bank_id": "default", "content": "Alice prefers tea", "context": "drinks"},
    )
    assert put.status_code == 200
    assert list(put.json()) == ["result"]
    found = await memory.client.post(
        "/tools/hindsight_search", json={"bank_id": "default", "query": "tea"}
    )
    assert found.json()["result"]["results"][0]["text"] == "Alice prefers tea"
    rest = await memory.client.post("/tools/search", json={"query": "Alice"})
    assert rest.json()["results"][0]["title"] == "Alice prefers tea"


async def test_refusals_have_their_documented_status(memory: Web) -> None:
    post = memory.client.post
    assert "query" in refused(await post("/tools/search", json={}), 400, "bad_request")
    assert "query" in refused(await post("/tools/search", json={"query": 7}), 400, "bad_request")
    wrong = {"query": "x", "mode": "psychic"}
    assert "mode" in refused(await post("/tools/search", json=wrong), 400, "bad_request")
    refused(await post("/tools/get", json={"id": "nothing"}), 404, "not_found")
    message = refused(await post("/tools/nothing", json={}), 404, "not_found")
    assert message == "no tool registered with name: nothing"
    refused(await memory.client.get("/tools/search"), 405, "method_not_allowed")
    refused(await post("/tools/sources", json={}), 405, "method_not_allowed")
    refused(await memory.client.get("/nowhere"), 404, "not_found")
    refused(await post("/tools/search", data={"query": "x"}), 415, "unsupported_media_type")
    json_type = {"content-type": "application/json"}
    for body in (b"", b"{", b"[]", b"7", b'"x"', b'{"query": NaN}', b'{"query":"\\ud800"}'):
        answer = await post("/tools/search", content=body, headers=json_type)
        refused(answer, 400, "bad_request")
    deep = b'{"query":' + b"[" * 500 + b"]" * 500 + b"}"
    refused(await post("/tools/search", content=deep, headers=json_type), 400, "bad_request")
    nul = b'{"query":"a\\u0000b"}'
    refused(await post("/tools/search", content=nul, headers=json_type), 400, "bad_request")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("awareness_lookup", {"type": "tasks", "memory_id": "nobank"}),
        ("awareness_recall", {"semantic_query": "x", "memory_id": "nobank"}),
        ("awareness_get_agent_prompt", {"agent_role": "nobody", "memory_id": "default"}),
        ("hindsight_search", {"bank_id": "nobank", "query": "x"}),
        ("get", {"id": "nothing"}),
    ],
)
async def test_a_missing_bank_role_or_document_is_404(
    memory: Web, tool: str, arguments: dict[str, Any]
) -> None:
    message = refused(await memory.client.post(f"/tools/{tool}", json=arguments), 404, "not_found")
    assert "{" not in message
    assert re.match(r"(Memory|Agent role|no) ", message), message
    if tool.startswith("awareness"):
        mcp = await memory.post(call(tool, arguments), await memory.open())
        assert mcp.json()["result"]["structuredContent"] == {"error": message}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"query":"\\ud800"}', "a lone surrogate escape is not text"),
        (b'{"query":"\xff"}', "byte 10 is not valid UTF-8"),
        (b'{"query":"a\\u0000b"}', "query: U+0000 is not accepted in text"),
        (b'{"a":' + b"[" * 99 + b"]" * 99 + b"}", "nesting is deeper than 64 levels"),
        (b'{"query":[' + b"1," * 100_001 + b"1]}", "the body holds at most 100000 values"),
        (b'{"query":', "the body is not JSON: Input data was truncated"),
        (b'{"query":"x","mode":"y"}', "mode: 'y' is not one of hybrid, keyword, semantic"),
        (b'{"query":""}', "query: expected string of length >= 1"),
    ],
)
async def test_error_messages_do_not_mention_json_rpc(memory: Web, body: bytes, words: str) -> None:
    headers = {"content-type": "application/json"}
    answer = await memory.client.post("/tools/search", content=body, headers=headers)
    assert refused(answer, 400, "bad_request") == words


async def test_an_engine_error_names_the_argument_of_the_tool(memory: Web) -> None:
    put = {"bank_id": "x" * 300, "content": "tea", "context": "drinks"}
    answer = await memory.client.post("/tools/hindsight_put", json=put)
    assert refused(answer, 400, "bad_request").startswith("bank_id: ")


async def test_a_large_body_is_413(tmp_path: Path) -> None:
    async with running_web(tmp_path, limits__frame_bytes=2048) as web:
        answer = await web.client.post("/tools/echo", json={"text": "x" * 4096})
        refused(answer, 413, "too_large")


async def test_a_failing_a_crashing_and_a_slow_tool_have_their_own_status(tmp_path: Path) -> None:
    async with running_web(tmp_path, limits__call_seconds=0.1) as web:
        failed = await web.client.post("/tools/fail", json={"message": "no such luck"})
        assert refused(failed, 400, "tool_error") == "no such luck"
        crashed = await web.client.post("/tools/crash", json={})
        assert refused(crashed, 500, "internal").startswith("Internal error: error id ")
        slow = await web.client.post("/tools/slow", json={"seconds": 30})
        refused(slow, 408, "timeout")
        assert web.services.gate.in_flight == 0


async def test_rest_and_mcp_give_the_same_result(web: Web) -> None:
    rest = await web.client.post("/tools/structured", json={"n": 7})
    session = await web.open()
    mcp = await web.post(call("structured", {"n": 7}), session)
    assert rest.json()["result"] == mcp.json()["result"]["structuredContent"]


async def test_the_openapi_document_matches_the_responses(memory: Web) -> None:
    document = (await memory.client.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    paths = document["paths"]
    listed = (await memory.client.get("/tools/list")).json()["tools"]
    for tool in listed:
        verb = "get" if tool["name"] == "sources" else "post"
        assert verb in paths[f"/tools/{tool['name']}"]
    schema = paths["/tools/search"]["post"]["responses"]["200"]["content"]["application/json"]
    found = await memory.client.post("/tools/search", json={"query": "tokens"})
    jsonschema.validate(found.json(), schema["schema"])
    error = document["components"]["schemas"]["Error"]
    jsonschema.validate((await memory.client.post("/tools/get", json={})).json(), error)


async def test_head_is_get_without_a_body(memory: Web) -> None:
    document = (await memory.client.get("/openapi.json")).json()
    streams = {"/api/v1/events"}  # a stream has no end, so HEAD has nothing to describe
    paths = [path for path, verbs in document["paths"].items() if "get" in verbs]
    paths = [path for path in paths if path not in streams]
    assert [path for path in paths if "head" not in document["paths"][path]] == []
    fixed = [path for path in paths if not path.startswith("/api/")]
    assert len(fixed) == 8
    for path in fixed:
        got, head = await memory.client.get(path), await memory.client.head(path)
        assert (head.status_code, head.content) == (got.status_code, b"")
        sizes = [int(answer.headers.pop("content-length")) for answer in (got, head)]
        assert sizes[0] > 0
        changing = path in ("/metrics", "/health/ready")
        assert sizes[1] > 0 if changing else sizes[0] == sizes[1]
        for answer in (got, head):
            del answer.headers["date"]
        assert head.headers == got.headers
        wrong = await memory.client.delete(path)
        assert wrong.headers["allow"] == "GET, HEAD, OPTIONS"
    for path in ("/tools/search", "/tools/hindsight_put", "/mcp"):
        refused = await memory.client.head(path)
        assert refused.status_code == 405
        assert "HEAD" not in refused.headers["allow"]
    assert (await memory.client.head("/nowhere")).status_code == 404


async def test_health_without_a_token_contains_the_status_only(web: Web) -> None:
    for path in ("/health", "/health/live"):
        assert (await web.client.get(path)).json() == {"status": "ok"}
    ready = (await web.client.get("/health/ready")).json()
    assert ready["status"] == "ok"
    assert ready["health"]["database"] == "connected"
    assert json.dumps(ready).find("/") == -1


async def test_a_rest_call_beyond_the_total_in_flight_limit_is_rejected(tmp_path: Path) -> None:
    async with (
        running_web(tmp_path, limits__in_flight_total=1) as web,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(partial(web.client.post, "/tools/slow", json={"seconds": 30}))
        with anyio.fail_after(5):
            await web.services.gate.until(lambda: web.services.gate.in_flight == 1)
        rejected = await web.client.post("/tools/slow", json={"seconds": 0})
        refused(rejected, 429, "rate_limited")
        tasks.cancel_scope.cancel()
