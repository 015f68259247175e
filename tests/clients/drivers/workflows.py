"""Walks the documented workflows as the `mcp` 2.x client does: `workflows.py WALK MODE TARGET`.

TARGET is JSON: {"command": […], "env": {…}, "stop": […]}, where `stop` is a command that ends the
daemon. Prints one JSON line, or fails with a traceback. A walk is a function of `WALKS`; it opens
clients by `enter()`, as often as it likes.
"""

# mypy: ignore-errors
# (runs in the client's own environment, whose packages ours does not have)

import contextlib
import json
import subprocess
import sys

import anyio
from mcp import Client, StdioServerParameters

RECALL = "mcp__claude-recall__"


class Session:
    """A client of the SDK, with the answers of tools taken apart."""

    def __init__(self, client):
        self.client = client

    async def say(self, tool, **arguments):
        """The text of an answer that worked."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, (tool, answer)
        return answer.content[0].text

    async def ask(self, tool, **arguments):
        """The structure of an answer that worked, which its text repeats."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, (tool, answer)
        assert answer.structured_content == json.loads(answer.content[0].text), answer
        return answer.structured_content

    async def refused(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, (tool, answer)
        return answer.content[0].text


async def hindsight(enter, stop):
    """Seeds 000 and 001: put and search for two users who never meet."""
    async with enter() as session:
        tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        assert "hindsight_put" in tools and "hindsight_search" in tools, sorted(tools)
        told = await session.refused("hindsight_search", bank_id="unknown-bank", query="hello")
        assert told == "Error: Memory bank 'unknown-bank' not found", told

        for user, fact in (
            ("alice@example.com", "Alice keeps bees"),
            ("bob", "Bob keeps bees too"),
        ):
            said = await session.say("hindsight_put", bank_id=user, content=fact, context="hobbies")
            assert said == "Fact stored successfully", said

    async with enter() as session:
        for user, fact in (
            ("alice@example.com", "Alice keeps bees"),
            ("bob", "Bob keeps bees too"),
        ):
            found = await session.ask("hindsight_search", bank_id=user, query="Who keeps bees?")
            assert [result["text"] for result in found["results"]] == [fact], found
            assert set(found["results"][0]) == {
                "id", "text", "type", "context", "event_date", "document_id",
            }, found  # fmt: skip
    return {"users": 2}


async def recall(enter, stop):
    """Seed 003: a session stores, survives the daemon's restart, and clears its own context."""
    async with enter() as earlier:
        await earlier.ask(f"{RECALL}store_memory", content="An earlier session's lesson")

    async with enter() as session:
        stored = await session.ask(
            f"{RECALL}store_memory",
            content="The build needs LIBRARY_PATH set",
            metadata={"type": "code", "file": "Makefile"},
        )
        before = await session.ask(f"{RECALL}get_stats")
        assert before["totalMemories"] == 2 and before["sessionMemories"] == 1, before

        await stop()

        found = await session.ask(f"{RECALL}search", query="build LIBRARY_PATH")
        assert found["results"][0]["id"] == stored["id"], found
        assert found["results"][0]["metadata"] == {"type": "code", "file": "Makefile"}, found
        after = await session.ask(f"{RECALL}get_stats")
        assert after["sessionStartTime"] == before["sessionStartTime"], (before, after)
        assert after["memoryTypes"] == {"code": 1, "general": 1}, after

        asked = await session.ask(f"{RECALL}clear_context")
        assert asked["success"] is False, asked
        cleared = await session.ask(f"{RECALL}clear_context", confirm=True)
        assert cleared["memoriesCleared"] == 1, cleared
        left = await session.ask(f"{RECALL}retrieve_memory")
        assert [memory["content"] for memory in left["memories"]] == [
            "An earlier session's lesson"
        ], left
    return {"restarts": 1}


async def harness(enter, stop):
    """Seed 004: what was stored is searched, fetched and counted by source."""
    async with enter() as session:
        await session.ask("store_memory", content="Deployment procedures: run make ship on Friday")
        found = await session.ask("search", query="deployment procedures", mode="hybrid", limit=10)
        row = found["results"][0]
        whole = await session.ask("get", id=row["id"])
        assert whole["body"].startswith("Deployment procedures"), whole
        sources = await session.ask("sources")
        assert {"name": row["source"], "configured": True, "healthy": True, "doc_count": 1} in (
            sources["sources"]
        ), sources
        told = json.loads(await session.refused("get", id="nothing-like-it"))
        assert told["error"]["code"] == "not_found", told
    return {"rows": len(found["results"])}


async def awareness(enter, stop):
    """Seed 002: the five steps of the workflow, then a sub-agent with a memory of its own."""
    said = "Switched auth from JWT to session cookies because refreshing tokens was too complex."
    async with enter() as session:
        begun = await session.ask("awareness_init", source="claude-code")
        id = begun["session_id"]
        nothing = await session.ask(
            "awareness_recall", semantic_query="How do we log in?", keyword_query="auth JWT OAuth2"
        )
        assert nothing["results"] == [], nothing
        kept = await session.ask("awareness_record", action="remember", text=said, session_id=id)
        assert kept["result"]["written"] == 1, kept
        assert "submit_insights" in kept["_extraction_instruction"], kept
        card = {
            "category": "decision",
            "title": "Session cookies instead of JWT",
            "summary": "Auth uses session cookies because refreshing tokens was too complex.",
        }
        insights = {"knowledge_cards": [card]}
        submitted = await session.ask(
            "awareness_record", action="submit_insights", content=insights, session_id=id
        )
        assert submitted["cards_created"] == 1, submitted
        steps = [{"text": f"Step {n}: moved login part {n} to cookies"} for n in range(3)]
        batch = await session.ask(
            "awareness_record", action="remember_batch", steps=steps, session_id=id
        )
        assert batch["accepted_steps"] == 3, batch

    await stop()

    async with enter() as session:
        found = await session.ask("awareness_recall", semantic_query="session cookies or JWT?")
        assert any(result["content"] == said for result in found["results"]), found
        role = (await session.ask("awareness_init"))["agent_profiles"][0]["agent_role"]
        prompt = await session.ask("awareness_get_agent_prompt", agent_role=role)
        assert "Memory Integration" in prompt["activation_prompt"], prompt
        for who, text in ((role, "Parser written by hand"), ("other", "Parser looked at twice")):
            await session.ask("awareness_record", action="remember", text=text, agent_role=who)
        mine = await session.ask(
            "awareness_recall", semantic_query="parser", agent_role=role, recall_mode="precise"
        )
        assert [result["content"] for result in mine["results"]] == ["Parser written by hand"], mine
    return {"steps": 5}


WALKS = {"hindsight": hindsight, "recall": recall, "harness": harness, "awareness": awareness}


async def main(walk, mode, target):
    command, *arguments = target["command"]
    versions = set()

    @contextlib.asynccontextmanager
    async def enter():
        server = StdioServerParameters(command=command, args=arguments, env=target["env"])
        async with Client(server, mode=mode) as client:
            versions.add(client.protocol_version)
            yield Session(client)

    async def stop():
        if target["stop"]:
            await anyio.to_thread.run_sync(
                lambda: subprocess.run(
                    target["stop"], env=target["env"], check=True, capture_output=True
                )
            )

    with anyio.fail_after(50):
        told = await WALKS[walk](enter, stop)
    (version,) = versions
    print(json.dumps({"version": version, **told}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
