"""Resources, prompts, completion and confirmation over a real engine."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import anyio
import pytest

from store.model import NewDocument, NewMemory
from tests.support.memory import remembering_web
from tests.support.web import BOTH, Web, call, modern, request, token_file

pytestmark = pytest.mark.anyio

HOSTILE_URIS = (
    "memory://default/../stats",
    "memory://default/%2e%2e",
    "memory://default/a%00b",
    "memory://default",
    "memory://",
    "memory:///recent",
    "memory://default/recent?x=1",
    "memory://default/recent#x",
    "memory://default/documents/a/b",
    "memory://default/%ff",
    "file:///etc/passwd",
    "http://default/recent",
    "MEMORY://default/recent",
    "memory://nobody/recent",
    "memory://default/no-such-id",
    "",
)


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    secret = "s" * 40
    tokens = token_file(
        tmp_path,
        f'[[token]]\nname = "a"\nsecret = "{secret}"\n'
        f'[[token]]\nname = "b"\nsecret = "{secret}b"\nbanks = ["ünï/cödé"]\nwrite = false\n',
    )
    async with remembering_web(tmp_path, server__token_file=tokens) as (running, toolkit):
        await toolkit.engine.put("default", NewMemory(text="The deploy script lives in tools"))
        await toolkit.engine.put("ünï/cödé", NewMemory(text="Grüße"))
        await toolkit.engine.upsert_document(
            "default",
            NewDocument(
                source="git", source_id="a.md", title="A", body="# Deploying\n\nCarefully."
            ),
        )
        running.client.headers["authorization"] = f"Bearer {secret}"
        yield running


async def ask(web: Web, method: str, params: dict[str, Any] | None = None, **more: Any) -> Any:
    answer = await web.modern(method, params, **more)
    return answer.json().get("result") or answer.json()["error"]


async def test_the_listed_resources_can_be_read(web: Web) -> None:
    listed = (await ask(web, "resources/list"))["resources"]
    assert [entry["uri"] for entry in listed] == [
        "memory://default/recent",
        "memory://default/stats",
        "memory://%C3%BCn%C3%AF%2Fc%C3%B6d%C3%A9/recent",
        "memory://%C3%BCn%C3%AF%2Fc%C3%B6d%C3%A9/stats",
    ]
    for entry in listed:
        read = await ask(web, "resources/read", {"uri": entry["uri"]})
        (contents,) = read["contents"]
        assert contents["uri"] == entry["uri"]
        assert contents["mimeType"] == "application/json"
        json.loads(contents["text"])
    recent = await ask(web, "resources/read", {"uri": listed[0]["uri"]})
    items = json.loads(recent["contents"][0]["text"])["items"]
    item = next(entry for entry in items if entry["kind"] == "memory")
    one = await ask(web, "resources/read", {"uri": f"memory://default/{item['id']}"})
    assert json.loads(one["contents"][0]["text"])["text"] == "The deploy script lives in tools"
    source = await ask(web, "resources/read", {"uri": "memory://default/sources/git"})
    (document,) = json.loads(source["contents"][0]["text"])["documents"]
    whole = await ask(web, "resources/read", {"uri": document["uri"]})
    assert whole["contents"][0]["text"] == "# Deploying\n\nCarefully."


@pytest.mark.parametrize("uri", HOSTILE_URIS)
async def test_an_unknown_resource_is_not_found(web: Web, uri: str) -> None:
    error = await ask(web, "resources/read", {"uri": uri})
    assert error["code"] == -32602
    assert error["data"]["uri"] == uri
    session = await web.open()
    legacy = await web.post(request("resources/read", {"uri": uri}), session)
    assert legacy.json()["error"]["code"] == -32002


async def test_a_token_sees_only_its_banks(web: Web) -> None:
    other = {"authorization": f"Bearer {'s' * 40}b"}
    listed = (await ask(web, "resources/list", headers=other))["resources"]
    assert {entry["name"] for entry in listed} == {"ünï/cödé/recent", "ünï/cödé/stats"}
    hidden = await ask(web, "resources/read", {"uri": "memory://default/recent"}, headers=other)
    never = await ask(web, "resources/read", {"uri": "memory://never/recent"}, headers=other)
    assert hidden["code"] == never["code"] == -32602
    bank = {"ref": {"type": "ref/prompt", "name": "session_briefing"}}
    named = await ask(
        web,
        "completion/complete",
        {**bank, "argument": {"name": "bank", "value": ""}},
        headers=other,
    )
    assert named["completion"]["values"] == ["ünï/cödé"]
    refused = await ask(
        web,
        "prompts/get",
        {"name": "session_briefing", "arguments": {"bank": "default"}},
        headers=other,
    )
    assert refused["code"] == -32602


async def test_banks_and_sources_are_completed(web: Web) -> None:
    banks = await ask(
        web,
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "memory://{bank}/recent"},
            "argument": {"name": "bank", "value": "d"},
        },
    )
    assert banks["completion"] == {"values": ["default"], "total": 1, "hasMore": False}
    sources = await ask(
        web,
        "completion/complete",
        {
            "ref": {"type": "ref/resource", "uri": "memory://{bank}/sources/{source}"},
            "argument": {"name": "source", "value": ""},
            "context": {"arguments": {"bank": "default"}},
        },
    )
    assert sources["completion"]["values"] == ["git"]
    for wrong in ("memory://{bank}/recent", "memory://{nothing}"):
        params = {
            "ref": {"type": "ref/resource", "uri": wrong},
            "argument": {"name": "nothing", "value": ""},
        }
        assert (await ask(web, "completion/complete", params))["code"] == -32602


async def test_prompts_contain_memories_as_data(web: Web) -> None:
    listed = (await ask(web, "prompts/list"))["prompts"]
    assert [p["name"] for p in listed] == [
        "session_briefing",
        "save_what_we_learned",
        "what_do_we_know",
    ]
    known = await ask(
        web, "prompts/get", {"name": "what_do_we_know", "arguments": {"topic": "deploy script"}}
    )
    kinds = [message["content"]["type"] for message in known["messages"]]
    assert kinds[-1] == "text"
    assert "resource" in kinds
    texts = [m["content"]["resource"]["text"] for m in known["messages"][:-1]]
    assert any("deploy script lives in tools" in text for text in texts)
    missing = await ask(web, "prompts/get", {"name": "what_do_we_know", "arguments": {}})
    assert missing["code"] == -32602
    briefing = await ask(web, "prompts/get", {"name": "session_briefing"})
    assert briefing["messages"][0]["content"]["resource"]["uri"] == "memory://default/recent"


async def test_a_subscriber_is_notified_of_a_write_over_another_transport(web: Web) -> None:
    wants = {"notifications": {"resourceSubscriptions": ["memory://default/recent"]}}
    message, headers = modern("subscriptions/listen", wants, id="l")
    heard: list[str] = []
    async with web.client.stream(
        "POST", "/mcp", json=message, headers={**headers, "accept": BOTH}
    ) as stream:
        with anyio.fail_after(5):
            async for line in stream.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                heard.append(json.loads(line.removeprefix("data: "))["method"])
                if len(heard) == 1:
                    await web.client.post(
                        "/tools/hindsight_put",
                        json={"bank_id": "other", "content": "x", "context": "y"},
                    )
                    await web.client.post(
                        "/tools/hindsight_put",
                        json={"bank_id": "default", "content": "new", "context": "y"},
                    )
                else:
                    break
    assert heard[1] == "notifications/resources/updated"


@pytest.mark.parametrize("says_yes", [True, False])
async def test_the_user_confirms_a_destructive_call(web: Web, says_yes: bool) -> None:
    tool = "mcp__claude-recall__clear_context"
    answer = {"action": "accept", "content": {"confirm": says_yes}}
    params = {"name": tool, "arguments": {"confirm": True}}
    able: dict[str, Any] = {"elicitation": {}}
    asked = await ask(web, "tools/call", params, capabilities=able)
    assert asked["resultType"] == "input_required"
    (key,) = asked["inputRequests"]
    done = await ask(
        web, "tools/call", {**params, "inputResponses": {key: answer}}, capabilities=able
    )
    assert done.get("isError", False) != says_yes
    session = await web.open(capabilities=able)
    legacy: dict[str, Any] = {}
    async with web.client.stream(
        "POST",
        "/mcp",
        json=call(tool, {"confirm": True}, id="c"),
        headers={**session, "accept": BOTH},
    ) as stream:
        async for line in stream.aiter_lines():
            if not line.startswith("data: {"):
                continue
            message = json.loads(line.removeprefix("data: "))
            if message.get("method") == "elicitation/create":
                await web.post({"jsonrpc": "2.0", "id": message["id"], "result": answer}, session)
            else:
                legacy = message["result"]
    assert legacy.get("isError", False) != says_yes
    silent = await ask(web, "tools/call", params)
    assert "isError" not in silent


@pytest.mark.parametrize(
    ("modes", "is_asked"),
    [({}, True), ({"form": {}}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)],
)
async def test_only_a_client_that_shows_forms_is_asked_by_form(
    web: Web, modes: dict[str, Any], is_asked: bool
) -> None:
    tool = "mcp__claude-recall__clear_context"
    params = {"name": tool, "arguments": {"confirm": True}}
    answer = await ask(web, "tools/call", params, capabilities={"elicitation": modes})
    assert (answer["resultType"] == "input_required") == is_asked
    if is_asked:
        return
    session = await web.open(capabilities={"elicitation": modes})
    legacy = await web.post(call(tool, {"confirm": True}), session)
    assert legacy.json()["result"]["structuredContent"]["success"] is True


@pytest.mark.parametrize(
    ("arguments", "words"),
    [({"confirm": "yes"}, "confirm: expected boolean"), ({"confirm": False}, "Confirmation")],
)
async def test_a_call_that_destroys_nothing_needs_no_confirmation(
    web: Web, arguments: dict[str, Any], words: str
) -> None:
    params = {"name": "mcp__claude-recall__clear_context", "arguments": arguments}
    answer = await ask(web, "tools/call", params, capabilities={"elicitation": {}})
    assert answer["resultType"] == "complete"
    assert words in answer["content"][0]["text"]
