"""The web UI at `/`, its files, and the API page at `/docs`."""

import base64
import hashlib
import html
import re
from pathlib import Path

import pytest

from daemon.transports.http.rest import docs_page
from tests.support.memory import remembering_web
from tests.support.web import BOTH, call, request, running_web, token_file

pytestmark = pytest.mark.anyio

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SECRET = "0123456789abcdef0123456789abcdef01234567"
TOKENS = f'[[token]]\nname = "laptop"\nsecret = "{SECRET}"\n'


async def test_a_browser_gets_the_page_under_a_strict_policy(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        answer = await web.client.get("/", headers=BROWSER)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    for rule in (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


async def test_every_file_that_the_page_names_is_served_with_its_type(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        page = (await web.client.get("/", headers=BROWSER)).text
        names = re.findall(r'(?:href|src)="(/web/[^"]+)"', page)
        answers = [await web.client.get(name) for name in names]

    assert "/web/app.js" in names
    assert {answer.status_code for answer in answers} == {200}
    kinds = {answer.headers["content-type"].partition(";")[0] for answer in answers}
    assert kinds == {"text/javascript", "text/css", "image/svg+xml"}


@pytest.mark.parametrize(
    "name", ["x.js", "..%2fassets.py", "../assets.py", "LICENCES.txt", "", "a/b"]
)
async def test_nothing_else_is_served_beside_the_files(tmp_path: Path, name: str) -> None:
    async with running_web(tmp_path) as web:
        answer = await web.client.get(f"/web/{name}")

    assert answer.status_code == 404


async def test_a_json_rpc_client_at_the_bare_origin_is_not_affected(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        session = await web.open(path="/")
        called = await web.post(call("echo", {"text": "hi"}), session, "/")
        lone = await web.client.get("/", headers={"accept": "text/event-stream"})
        named = await web.client.get("/mcp", headers={"accept": "text/event-stream"})

    assert called.status_code == 200
    assert lone.status_code == named.status_code == 400
    assert lone.text == named.text


async def test_head_is_answered_for_the_page_and_refused_for_the_stream(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        page = await web.client.head("/", headers=BROWSER)
        stream = await web.client.head("/", headers={"accept": "text/event-stream"})

    assert page.status_code == 200
    assert int(page.headers["content-length"]) > 0
    assert stream.status_code == 405


async def test_with_tokens_the_page_is_open_and_the_data_is_not(tmp_path: Path) -> None:
    path = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=path) as (web, _):
        page = await web.client.get("/", headers=BROWSER)
        module = await web.client.get("/web/app.js")
        message = await web.post(request("ping"), {"accept": BOTH}, "/")
        stream = await web.client.get("/", headers={"accept": "text/event-stream"})
        banks = await web.client.get("/api/v1/banks")

    assert page.status_code == module.status_code == 200
    assert message.status_code == stream.status_code == banks.status_code == 401


async def test_without_mcp_the_page_is_still_served(tmp_path: Path) -> None:
    async with running_web(tmp_path, server__mcp=False) as web:
        page = await web.client.get("/")
        posted = await web.client.post("/", json={})

    assert page.headers["content-type"].startswith("text/html")
    assert posted.status_code == 405


async def test_the_api_page_lists_every_operation_without_a_script(tmp_path: Path) -> None:
    async with remembering_web(tmp_path) as (web, _):
        page = await web.client.get("/docs", headers=BROWSER)
        described = (await web.client.get("/openapi.json")).json()

    text = html.unescape(page.text)
    for path, verbs in described["paths"].items():
        assert f"<code>{path}</code>" in text
        for verb in verbs:
            if verb != "head":
                assert verbs[verb]["summary"] in text
    for name in described["components"]["schemas"]:
        assert f'id="schema-{name}"' in text
    assert "<script" not in page.text
    assert "http://" not in page.text.replace("http://127.0.0.1", "")


async def test_the_policy_of_the_api_page_allows_exactly_its_own_style(tmp_path: Path) -> None:
    async with running_web(tmp_path) as web:
        page = await web.client.get("/docs", headers=BROWSER)

    (style,) = re.findall(r"<style>(.*?)</style>", page.text, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = page.headers["content-security-policy"]
    assert f"style-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy
    assert re.findall(r"\sstyle=", page.text) == []


async def test_without_a_token_the_api_page_names_no_tool_of_this_daemon(tmp_path: Path) -> None:
    path = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=path) as (web, _):
        public = (await web.client.get("/docs", headers=BROWSER)).text
        own = await web.client.get("/docs", headers={"authorization": f"Bearer {SECRET}"})

    assert "/api/v1/banks" in public
    assert "/tools/" not in public
    assert "/tools/search" in own.text


def test_texts_of_the_document_are_escaped_in_the_api_page() -> None:
    document = (
        b'{"info":{"title":"<b>x","version":"1","description":"<script>1</script>"},"tags":'
        b'[{"name":"t","description":"<i>"}],"components":{"schemas":{}},"paths":{"/<p>":{"get":'
        b'{"tags":["t"],"summary":"<img src=x onerror=alert(1)>","responses":{}}}}}'
    )

    page = docs_page.render(document).decode()

    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;img" in page
