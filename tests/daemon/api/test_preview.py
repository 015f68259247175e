"""A search as an agent sees it."""

import json

import pytest

from daemon.tools.token_estimate import estimate
from tests.daemon.api.test_memories import add, web
from tests.support.web import Web, call

pytestmark = pytest.mark.anyio

__all__ = ["web"]  # the fixture

PREVIEW = "/api/v1/banks/default/preview"
QUERY = "when do we release?"


@pytest.mark.parametrize("dialect", ["recall", "awareness", "hindsight", "harness"])
async def test_the_text_is_that_of_the_tool(web: Web, dialect: str) -> None:
    stored = {"text": "We release on Fridays"}
    await web.client.post("/api/v1/banks/default/memories", json=stored)
    seen = (await web.client.post(PREVIEW, json={"query": QUERY, "dialect": dialect})).json()
    session = await web.open()
    answer = await web.post(call(seen["tool"], seen["arguments"]), session)
    (content,) = answer.json()["result"]["content"]

    assert (
        seen["text"] == content["text"]
        or json.loads(seen["text"]).keys() == json.loads(content["text"]).keys()
    )
    assert "Fridays" in seen["text"]
    assert seen["tokens"] == estimate(seen["text"])


async def test_the_bank_of_the_path_is_searched(web: Web) -> None:
    await add(web, "We release on Fridays")
    given = {"query": QUERY, "dialect": "recall"}
    in_work = (await web.client.post("/api/v1/banks/work/preview", json=given)).json()
    elsewhere = (await web.client.post("/api/v1/banks/default/preview", json=given)).json()

    assert "Fridays" in in_work["text"]
    assert "Fridays" not in elsewhere["text"]
