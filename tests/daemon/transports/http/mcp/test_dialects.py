"""A daemon that serves some dialects neither serves nor documents others."""

from pathlib import Path
from typing import Final

import pytest

from daemon.dialect_names import DIALECTS, chosen
from tests.support.memory import remembering_web
from tests.support.web import modern

pytestmark = pytest.mark.anyio

BARE: Final = ("search", "get", "sources")


@pytest.mark.parametrize("names", ["", "recall", "-harness", "hindsight,awareness", "harness"])
async def test_only_configured_dialects_have_endpoints_and_are_documented(
    tmp_path: Path, names: str
) -> None:
    served = chosen(names)
    endpoints = served if names else DIALECTS
    async with remembering_web(tmp_path, server__dialects=names) as (web, _toolkit):
        for dialect in DIALECTS:
            message, headers = modern("tools/list")
            answer = await web.post(message, headers, f"/mcp/{dialect}")
            assert answer.status_code == (200 if dialect in endpoints else 404), dialect
        document = (await web.client.get("/openapi.json")).json()
        listed = (await web.client.get("/tools/list")).json()["tools"]
        paths = set(document["paths"])
        assert {path for path in paths if path.startswith("/tools/")} == {
            "/tools/list",
            "/tools/{name}",
            *(f"/tools/{tool['name']}" for tool in listed),
        }
        for path, verbs in document["paths"].items():
            for verb in verbs:
                if "{" in path:
                    continue
                body: object = {} if verb == "post" else None
                async with web.client.stream(verb, path, json=body) as said:  # one has no end
                    assert str(said.status_code) in verbs[verb]["responses"], path
                    assert said.status_code not in (404, 405), path
        for name in BARE:
            assert (f"/tools/{name}" in paths) == ("harness" in served)
        called = await web.client.post("/tools/search", json={"query": "tea"})
        if "harness" in served:
            assert list(called.json()) == ["results"]
        elif "recall" in served:
            assert list(called.json()) == ["result"], "an alias, answered like any tool"
        else:
            assert called.status_code == 404
        sources = await web.client.get("/tools/sources")
        assert sources.status_code == (200 if "harness" in served else 405)
