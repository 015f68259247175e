"""Agents: listed and resolved over REST, and as MCP prompts."""

from pathlib import Path
from typing import Any

from daemon.config.scripts import InlineAgent, ScriptEntry
from daemon.lua.offering import Taken
from tests.support.scripts import script_web
from tests.support.web import request

REVIEWER = InlineAgent("reviewer", "Reviews code", "You review code.", ("search", "get"))
RESPONDER = """
agent = {
  description = "Helps with incidents",
  tools = { "search" },
  arguments = {
    { name = "service", description = "The service", required = true },
    { name = "level" },
  },
}
function agent.resolve(args, config, context)
  local rows = context.search({ query = args.service, limit = config.limit })
  return {
    system = "Respond for " .. args.service .. " " .. (args.level or "P2"),
    messages = { { role = "assistant", content = "I read " .. #rows .. " runbooks" } },
  }
end
"""
AGENTS: dict[str, Any] = {
    "inline_agents": (REVIEWER,),
    "agents": (ScriptEntry(name="responder", path="agents/r.lua", config={"limit": 1}),),
}
SCRIPTS = {"agents/r": RESPONDER}


async def test_agents_are_listed_over_rest(tmp_path: Path) -> None:
    async with script_web(tmp_path, SCRIPTS, **AGENTS) as server:
        answer = await server.web.client.get("/agents/list")
        assert answer.json() == {
            "agents": [
                {
                    "name": "responder",
                    "description": "Helps with incidents",
                    "tools": ["search"],
                    "source": "lua",
                    "arguments": [
                        {"name": "service", "description": "The service", "required": True},
                        {"name": "level", "description": "", "required": False},
                    ],
                },
                {
                    "name": "reviewer",
                    "description": "Reviews code",
                    "tools": ["search", "get"],
                    "source": "toml",
                    "arguments": [],
                },
            ]
        }


async def test_the_prompt_of_an_agent_is_resolved_over_rest(tmp_path: Path) -> None:
    async with script_web(tmp_path, SCRIPTS, **AGENTS) as server:
        post = server.web.client.post
        fixed = await post("/agents/reviewer/prompt", json={})
        assert fixed.json() == {
            "result": {"system": "You review code.", "tools": ["search", "get"], "messages": []}
        }
        given = {"arguments": {"service": "payments", "level": "P1"}}
        made = await post("/agents/responder/prompt", json=given)
        assert made.json() == {
            "result": {
                "system": "Respond for payments P1",
                "tools": ["search"],
                "messages": [{"role": "assistant", "content": "I read 1 runbooks"}],
            }
        }


async def test_a_prompt_that_cannot_be_made_has_the_status_of_the_reason(tmp_path: Path) -> None:
    scripts = {
        **SCRIPTS,
        "agents/bad": "agent = {} function agent.resolve() error('no runbook') end",
        "agents/slow": "agent = {} function agent.resolve() sleep(60) end",
        "agents/odd": "agent = {} function agent.resolve() return {system = 1} end",
    }
    agents = tuple(ScriptEntry(name=n, path=f"agents/{n}.lua") for n in ("bad", "slow", "odd"))
    async with script_web(tmp_path, scripts, agents=(*AGENTS["agents"], *agents)) as server:
        for name, status, code, message in (
            ("nobody", 404, "not_found", "no agent registered with name: nobody"),
            ("responder", 400, "bad_request", "service: required field is missing"),
            ("bad", 500, "agent_error", "bad.lua:1: no runbook"),
            ("slow", 408, "timeout", "slow.lua: timed out after 0.5 seconds"),
            ("odd", 500, "agent_error", "odd.lua: the result of resolve: Expected `str`"),
        ):
            answer = await server.web.client.post(f"/agents/{name}/prompt", json={})
            assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
            assert message in answer.json()["error"]["message"]
        wrong = await server.web.client.post("/agents/bad/prompt", json={"argument": {}})
        assert (wrong.status_code, wrong.json()["error"]["message"]) == (
            400,
            "argument: unknown field",
        )
        assert (await server.web.client.post("/agents/bad", json={})).status_code == 404


async def test_agents_are_mcp_prompts(tmp_path: Path) -> None:
    async with script_web(tmp_path, SCRIPTS, **AGENTS) as server:
        session = await server.web.open()
        listed = await server.web.post(request("prompts/list"), session)
        names = [prompt["name"] for prompt in listed.json()["result"]["prompts"]]
        assert names == ["responder", "reviewer"]
        params = {"name": "responder", "arguments": {"service": "payments"}}
        answer = await server.web.post(request("prompts/get", params), session)
        assert answer.json()["result"] == {
            "description": "Helps with incidents",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Respond for payments P2"}},
                {"role": "assistant", "content": {"type": "text", "text": "I read 1 runbooks"}},
            ],
        }
        refused = await server.web.post(request("prompts/get", {"name": "responder"}), session)
        assert refused.json()["error"]["code"] == -32602


async def test_an_agent_cannot_take_the_name_of_a_built_in_prompt(tmp_path: Path) -> None:
    taken = Taken(prompts=frozenset({"reviewer"}))
    async with script_web(tmp_path, SCRIPTS, taken, **AGENTS) as server:
        assert [agent.name for agent in server.offered.agents.list()] == ["responder"]
        [problem] = server.offered.problems
        assert problem.reason == "the name reviewer belongs to a built-in prompt"
