"""Authorisation: the same decision for every tool on every transport."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any, Final

import anyio
import httpx
import pytest

from daemon.exit_codes import Exit
from daemon.tools.authority import OWNER, Forbidden, Principal, authorise
from daemon.tools.toolkit import Toolkit
from daemon.transports.http.edge.bearer_tokens import Tokens
from store.model import NewTask
from tests.support.memory import remembering_web
from tests.support.web import BOTH, Web, call, modern, request, token_file
from tests.support.wire import initialize, join

pytestmark = pytest.mark.anyio

SECRETS: Final = {name: name.ljust(40, "x") for name in ("boss", "reader", "other", "single")}
TOKENS: Final = "".join(
    f'[[token]]\nname = "{name}"\nsecret = "{SECRETS[name]}"\n{rights}\n'
    for name, rights in (
        ("boss", ""),
        ("reader", "write = false"),
        ("other", 'banks = ["elsewhere", "third"]'),
        ("single", 'banks = ["only"]'),
    )
)

#: Arguments that are good for each tool, in the bank "default".
ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    "hindsight_put": {"bank_id": "default", "content": "Tea is ready", "context": "drinks"},
    "hindsight_search": {"bank_id": "default", "query": "tea"},
    "__awareness_workflow__": {},
    "awareness_init": {"memory_id": "default"},
    "awareness_get_agent_prompt": {"memory_id": "default", "agent_role": "engineer"},
    "awareness_recall": {"memory_id": "default", "semantic_query": "tea"},
    "awareness_lookup": {"memory_id": "default", "type": "tasks"},
    "awareness_record": {"memory_id": "default", "action": "remember", "text": "More tea"},
    "mcp__claude-recall__store_memory": {"content": "Tea again"},
    "mcp__claude-recall__search": {"query": "tea"},
    "mcp__claude-recall__retrieve_memory": {"limit": 1},
    "mcp__claude-recall__get_stats": {},
    "mcp__claude-recall__clear_context": {"confirm": True},
    "search": {"query": "tea"},
    "get": {"id": "nothing"},
    "sources": {},
    "add_document": {"source": "notes", "source_id": "tea.md", "body": "Tea is green."},
    "remove_document": {"id": "nothing"},
}
WAYS: Final = ("legacy", "modern", "rest")


@pytest.fixture
async def served(tmp_path: Path) -> AsyncGenerator[tuple[Web, Toolkit]]:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (running, toolkit):
        await toolkit.engine.create_bank("default")
        yield running, toolkit


@pytest.fixture
async def web(served: tuple[Web, Toolkit]) -> Web:
    return served[0]


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


async def verdict(web: Web, who: str | None, way: str, tool: str, arguments: Any) -> str:
    """allowed, forbidden or unknown; a failure of the tool itself counts as allowed."""
    headers = bearer(who) if who else {}
    if way == "rest":
        if tool == "sources":
            answer = await web.client.get("/tools/sources", headers=headers)
        else:
            answer = await web.client.post(f"/tools/{tool}", json=arguments, headers=headers)
    elif way == "modern":
        params = {"name": tool, "arguments": arguments}
        answer = await web.modern("tools/call", params, headers=headers)
    else:
        if who is None:
            return "unknown" if (await web.post(request("ping"))).status_code == 401 else "allowed"
        answer = await web.post(call(tool, arguments), await web.open(headers=headers))
    if answer.status_code == 401:
        return "unknown"
    assert answer.status_code < 500, answer.text
    return "forbidden" if "this token" in answer.text else "allowed"


async def test_every_tool_is_authorised_alike_on_every_transport(web: Web) -> None:
    specs = {spec.name: spec for spec in web.services.surfaces().tools.specs()}
    assert set(specs) == set(ARGUMENTS), "a new tool needs a row in this matrix"
    for tool, spec in specs.items():
        expected = {
            "boss": "allowed",
            "reader": "allowed" if spec.read_only or spec.serves_readers else "forbidden",
            "other": "forbidden",
            None: "unknown",
        }
        for who, wanted in expected.items():
            for way in WAYS:
                said = await verdict(web, who, way, tool, ARGUMENTS[tool])
                assert said == wanted, (tool, who, way)
        peer, wire = join(web.services)
        peer.feed(initialize() + json.dumps(call(tool, ARGUMENTS[tool])).encode() + b"\n")
        answer = (await wire.wait_for(2))[1]
        assert "this token" not in json.dumps(answer), tool
        peer.lost()


async def test_init_with_a_read_only_token_reads_and_writes_nothing(
    served: tuple[Web, Toolkit],
) -> None:
    web, toolkit = served
    task = NewTask(title="Water the plants", detail="daily")
    await toolkit.engine.put_tasks("default", [task])
    before = await toolkit.engine.stats("default")
    sessions = await toolkit.engine.sessions.counts(active_within_seconds=1e6)
    answers = [
        await web.client.post(
            "/tools/awareness_init", json={"memory_id": bank, "source": "me"}, headers=bearer(who)
        )
        for who, bank in (("reader", "default"), ("reader", "default"), ("boss", "default"))
    ]
    first, second, bosses = (answer.json()["result"] for answer in answers)
    assert first["context"]["open_tasks"] == bosses["context"]["open_tasks"] != []
    assert first["session_id"] == second["session_id"], "the session of the connection"
    assert bosses["session_id"].startswith("aw-me-")
    assert await toolkit.engine.stats("default") == before
    after = await toolkit.engine.sessions.counts(active_within_seconds=1e6)
    assert after[0] == sessions[0] + 1, "the one the boss asked for"
    missing = await web.client.post(
        "/tools/awareness_init", json={"memory_id": "nobody-made-it"}, headers=bearer("reader")
    )
    assert "not found" in missing.text
    assert [bank.name for bank in await toolkit.engine.banks()] == ["default"]


async def test_the_error_for_a_bank_without_grant_does_not_reveal_its_existence(web: Web) -> None:
    answers = [
        await web.client.post(
            "/tools/hindsight_search", json={"bank_id": bank, "query": "x"}, headers=bearer("other")
        )
        for bank in ("default", "never-made")
    ]
    assert answers[0].status_code == 403
    assert answers[0].json()["error"]["message"] == "this token opens no bank of that name"
    assert answers[0].content == answers[1].content


async def test_a_token_for_one_bank_has_it_as_its_default(web: Web) -> None:
    stored = await web.client.post(
        "/tools/mcp__claude-recall__store_memory",
        json={"content": "Only here"},
        headers=bearer("single"),
    )
    assert stored.status_code == 200
    mine = await web.client.post("/tools/search", json={"query": "Only"}, headers=bearer("single"))
    assert len(mine.json()["results"]) == 1
    theirs = await web.client.post("/tools/search", json={"query": "Only"}, headers=bearer("boss"))
    assert theirs.json()["results"] == []


async def test_the_session_of_another_token_is_answered_like_an_unknown_one(web: Web) -> None:
    session = await web.open(headers=bearer("boss"))
    stolen = {**session, **bearer("reader")}
    made_up = {**stolen, "mcp-session-id": "A" * 43}
    for verb in ("POST", "GET", "DELETE"):
        answers = [
            await web.client.request(
                verb,
                "/mcp",
                content=json.dumps(request("ping")) if verb == "POST" else None,
                headers={
                    **headers,
                    "accept": "application/json, text/event-stream",
                    "content-type": "application/json",
                },
            )
            for headers in (stolen, made_up)
        ]
        assert [a.status_code for a in answers] == [404, 404]
        assert answers[0].content == answers[1].content
    assert (await web.post(request("ping"), session)).status_code == 200


@pytest.mark.parametrize(
    "authorization",
    [
        None,
        "",
        "Bearer",
        f"Bearer {SECRETS['boss'][:-1]}",
        f"Bearer {SECRETS['boss']}x",
        f"Bearer {SECRETS['boss'].upper()}",
        f"Basic {SECRETS['boss']}",
        SECRETS["boss"],
    ],
)
async def test_only_the_complete_token_is_accepted(web: Web, authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    for path in ("/tools/list", "/metrics", "/openapi.json", "/mcp"):
        answer = await web.client.get(path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert (await web.client.get("/health", headers=headers)).json() == {"status": "ok"}
    assert (await web.client.get("/health/ready", headers=headers)).json() == {"status": "ok"}


async def test_only_the_owner_sees_figures_in_health_check(web: Web) -> None:
    told = {
        who: (await web.modern("health/check", headers=bearer(who))).json()["result"]
        for who in ("boss", "reader", "single")
    }
    assert {"uptime", "memory", "sessions", "rateLimiter"} < set(told["boss"])
    for who in ("reader", "single"):
        words = {name for name in told[who] if name not in ("_meta", "resultType")}
        assert words == {"status", "version", "toolsRegistered", "database"}
    legacy = await web.post(request("health/check"), await web.open(headers=bearer("single")))
    assert "rss" not in legacy.text


async def test_only_the_owner_sees_metrics(web: Web) -> None:
    assert (await web.client.get("/metrics", headers=bearer("reader"))).status_code == 403
    assert (await web.client.get("/metrics", headers=bearer("boss"))).status_code == 200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "token = 7",
        '[[token]]\nname = "a"\nsecret = ""',
        '[[token]]\nname = "a"\nsecret = "1234567"',
        f'[[token]]\nname = "a"\nsecret = "{" " * 40}"',
        f'[[token]]\nname = ""\nsecret = "{"s" * 40}"',
        f'[[token]]\nname = "owner"\nsecret = "{"s" * 40}"',
        f'[[token]]\nname = "a"\nsecret = "{"s" * 40}"\nbanks = []',
        f'[[token]]\nname = "a"\nsecret = "{"s" * 40}"\nbank = "x"',
        2 * f'[[token]]\nname = "a"\nsecret = "{"s" * 40}"\n',
    ],
)
def test_an_invalid_token_file_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(Exit, match="token file"):
        Tokens(Path(token_file(tmp_path, text)))


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = Path(token_file(tmp_path, TOKENS))
    path.chmod(mode)
    with pytest.raises(Exit, match="chmod 600"):
        Tokens(path)
    link = tmp_path / "link"
    path.chmod(0o600)
    link.symlink_to(path)
    with pytest.raises(Exit):
        Tokens(link)
    assert len(Tokens(path)) == 4


def test_authorise_checks_banks_and_writes() -> None:
    authorise(OWNER, "anything", writes=True)
    reader = Principal(name="r", banks=frozenset({"a"}), can_write=False)
    authorise(reader, "a", writes=False)
    for bank, writes in (("a", True), ("b", False)):
        with pytest.raises(Forbidden):
            authorise(reader, bank, writes=writes)


async def heard(response: httpx.Response, seen: list[Any]) -> None:
    """The messages of an event stream, as they come."""
    async for line in response.aiter_lines():
        if line.startswith("data: {"):
            seen.append(json.loads(line.removeprefix("data: ")))
            if seen[-1].get("params", {}).get("uri") == "memory://only/recent":
                return


async def write(web: Web, bank: str) -> None:
    stored = await web.client.post(
        "/tools/hindsight_put",
        json={"bank_id": bank, "content": f"Tea in {bank}", "context": "drinks"},
        headers=bearer("boss"),
    )
    assert stored.status_code == 200


async def test_listening_omits_resources_the_token_may_not_read(web: Web) -> None:
    uris = [f"memory://{bank}/recent" for bank in ("default", "never-made", "only")]
    uris.append("memory://default/../only")
    wants = {"notifications": {"resourceSubscriptions": uris}}
    message, headers = modern("subscriptions/listen", wants)
    given = {**headers, **bearer("single"), "accept": BOTH}
    seen: list[Any] = []
    with anyio.fail_after(10):
        async with (
            web.client.stream("POST", "/mcp", json=message, headers=given) as stream,
            anyio.create_task_group() as group,
        ):
            group.start_soon(heard, stream, seen)
            for bank in ("default", "only"):
                await write(web, bank)
    granted = seen[0]["params"]["notifications"]["resourceSubscriptions"]
    assert granted == ["memory://only/recent"]
    assert [m["params"]["uri"] for m in seen[1:]] == ["memory://only/recent"]


async def test_a_subscription_ends_when_its_grant_is_revoked(
    served: tuple[Web, Toolkit], tmp_path: Path
) -> None:
    web, toolkit = served
    for bank in ("third", "only"):
        await toolkit.engine.create_bank(bank)
    wide = TOKENS.replace('["only"]', '["only", "third"]')
    token_file(tmp_path, wide)
    session = await web.open(headers=bearer("single"))
    for bank in ("third", "only"):
        params = {"uri": f"memory://{bank}/recent"}
        followed = await web.post(request("resources/subscribe", params), session)
        assert followed.json()["result"] == {}
    token_file(tmp_path, TOKENS)
    seen: list[Any] = []
    with anyio.fail_after(10):
        given = {**session, "accept": "text/event-stream"}
        async with (
            web.client.stream("GET", "/mcp", headers=given) as stream,
            anyio.create_task_group() as group,
        ):
            group.start_soon(heard, stream, seen)
            for bank in ("third", "only"):
                await write(web, bank)
    assert [m["params"]["uri"] for m in seen] == ["memory://only/recent"]
