"""Awareness headers: memory id, agent role and bearer token supply arguments that a call omits."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from daemon.tools.toolkit import Toolkit
from tests.support.memory import remembering_web
from tests.support.web import Web, call, token_file

pytestmark = pytest.mark.anyio

WAYS = ("legacy", "modern", "rest")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[tuple[Web, Toolkit]]:
    async with remembering_web(tmp_path) as (web, toolkit):
        yield web, toolkit


async def answer_of(
    web: Web, way: str, tool: str, arguments: dict[str, Any], headers: dict[str, str]
) -> Any:
    if way == "rest":
        response = await web.client.post(f"/tools/{tool}", json=arguments, headers=headers)
        return response.json()
    if way == "modern":
        params = {"name": tool, "arguments": arguments}
        response = await web.modern("tools/call", params, headers={"mcp-name": tool, **headers})
    else:
        session = await web.open()
        response = await web.post(call(tool, arguments), {**session, **headers})
    return json.loads(response.json()["result"]["content"][0]["text"])


@pytest.mark.parametrize("way", WAYS)
async def test_the_memory_id_header_selects_the_memory(
    served: tuple[Web, Toolkit], way: str
) -> None:
    web, toolkit = served
    headers = {"X-Awareness-Memory-Id": f"project-{way}", "X-Awareness-Agent-Role": "builder"}
    text = {"action": "remember", "text": "The kettle is blue"}

    await answer_of(web, way, "awareness_record", text, headers)
    await answer_of(web, way, "awareness_record", {**text, "memory_id": "named"}, headers)

    (item,) = (await toolkit.engine.timeline(f"project-{way}", limit=5)).items
    assert item.role == "builder"
    assert "named" in {bank.name for bank in await toolkit.engine.banks()}


@pytest.mark.parametrize("way", WAYS)
async def test_the_agent_role_header_filters_like_the_argument(
    served: tuple[Web, Toolkit], way: str
) -> None:
    web, _ = served
    for role in ("builder", "reviewer"):
        text = {"action": "remember", "text": f"The {role} likes tea", "agent_role": role}
        await answer_of(web, way, "awareness_record", text, {})

    question = {"semantic_query": "tea", "recall_mode": "precise"}
    found = await answer_of(
        web, way, "awareness_recall", question, {"X-Awareness-Agent-Role": "reviewer"}
    )

    said = json.dumps(found)
    assert "The reviewer likes tea" in said and "The builder likes tea" not in said


@pytest.mark.parametrize("way", WAYS)
async def test_a_bearer_token_is_the_api_key(tmp_path: Path, way: str) -> None:
    async with remembering_web(tmp_path, api_key="aw_1") as (web, _toolkit):
        wanted = {"agent_role": "developer_agent"}
        for headers, is_right in (
            ({}, False),
            ({"Authorization": "Bearer aw_2"}, False),
            ({"Authorization": "Basic aw_1"}, False),
            ({"Authorization": "Bearer aw_1"}, True),
        ):
            said = await answer_of(web, way, "awareness_get_agent_prompt", wanted, headers)
            assert ("activation_prompt" in json.dumps(said)) == is_right, headers


async def test_a_header_grants_no_access_to_a_memory(tmp_path: Path) -> None:
    secret = "s" * 32
    rows = f'[[token]]\nname = "a"\nsecret = "{secret}"\nbanks = ["mine"]\nwrite = true\n'
    tokens = token_file(tmp_path, rows)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, _toolkit):
        headers = {"authorization": f"Bearer {secret}", "X-Awareness-Memory-Id": "theirs"}
        body = {"action": "remember", "text": "x"}
        said = await web.client.post("/tools/awareness_record", json=body, headers=headers)
        assert said.status_code == 403
