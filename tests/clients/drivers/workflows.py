"""Run the documented workflow of a dialect with the `mcp` 2.x client.

Usage: `workflows.py WORKFLOW MODE TARGET`. TARGET is JSON:
{"command": […], "env": {…}, "stop": […]}; `stop` is a command that stops the daemon.
Prints one JSON line, or fails with a traceback.
"""

# mypy: ignore-errors
# (runs in the environment of the client, with packages that the development environment lacks)

import contextlib
import json
import subprocess
import sys

import anyio
from mcp import Client, StdioServerParameters

RECALL = "mcp__claude-recall__"


class Session:
    """An SDK client with helpers that unpack tool results."""

    def __init__(self, client):
        self.client = client

    async def text(self, tool, **arguments):
        """Call a tool and return its text."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, (tool, answer)
        return answer.content[0].text

    async def structured(self, tool, **arguments):
        """Call a tool and return its structured content, which must equal its text."""
        answer = await self.client.call_tool(tool, arguments)
        assert not answer.is_error, (tool, answer)
        assert answer.structured_content == json.loads(answer.content[0].text), answer
        return answer.structured_content

    async def error_text(self, tool, **arguments):
        answer = await self.client.call_tool(tool, arguments)
        assert answer.is_error, (tool, answer)
        return answer.content[0].text


async def hindsight(open_session, stop):
    """Hindsight: put and search in the banks of two users."""
    async with open_session() as session:
        tools = {tool.name: tool for tool in (await session.client.list_tools()).tools}
        assert "hindsight_put" in tools and "hindsight_search" in tools, sorted(tools)
        message = await session.error_text(
            "hindsight_search", bank_id="unknown-bank", query="hello"
        )
        assert message == "Error: Memory bank 'unknown-bank' not found", message

        for user, fact in (
            ("alice@example.com", "Alice keeps bees"),
            ("bob", "Bob keeps bees too"),
        ):
            said = await session.text(
                "hindsight_put", bank_id=user, content=fact, context="hobbies"
            )
            assert said == "Fact stored successfully", said

    async with open_session() as session:
        for user, fact in (
            ("alice@example.com", "Alice keeps bees"),
            ("bob", "Bob keeps bees too"),
        ):
            found = await session.structured(
                "hindsight_search", bank_id=user, query="Who keeps bees?"
            )
            assert [result["text"] for result in found["results"]] == [fact], found
            assert set(found["results"][0]) == {
                "id", "text", "type", "context", "event_date", "document_id",
            }, found  # fmt: skip
    return {"users": 2}


async def recall(open_session, stop):
    """Claude Recall: a session stores, survives a daemon restart, and clears its own context."""
    async with open_session() as earlier:
        await earlier.structured(f"{RECALL}store_memory", content="An earlier session's lesson")

    async with open_session() as session:
        stored = await session.structured(
            f"{RECALL}store_memory",
            content="The build needs LIBRARY_PATH set",
            metadata={"type": "code", "file": "Makefile"},
        )
        before = await session.structured(f"{RECALL}get_stats")
        assert before["totalMemories"] == 2 and before["sessionMemories"] == 1, before

        await stop()

        found = await session.structured(f"{RECALL}search", query="build LIBRARY_PATH")
        assert found["results"][0]["id"] == stored["id"], found
        assert found["results"][0]["metadata"] == {"type": "code", "file": "Makefile"}, found
        after = await session.structured(f"{RECALL}get_stats")
        assert after["sessionStartTime"] == before["sessionStartTime"], (before, after)
        assert after["memoryTypes"] == {"code": 1, "general": 1}, after

        asked = await session.structured(f"{RECALL}clear_context")
        assert asked["success"] is False, asked
        cleared = await session.structured(f"{RECALL}clear_context", confirm=True)
        assert cleared["memoriesCleared"] == 1, cleared
        left = await session.structured(f"{RECALL}retrieve_memory")
        assert [memory["content"] for memory in left["memories"]] == [
            "An earlier session's lesson"
        ], left
    return {"restarts": 1}


async def harness(open_session, stop):
    """Context Harness: search for a memory, fetch it, and count it by source."""
    async with open_session() as session:
        await session.structured(
            "store_memory", content="Deployment procedures: run make ship on Friday"
        )
        found = await session.structured(
            "search", query="deployment procedures", mode="hybrid", limit=10
        )
        row = found["results"][0]
        whole = await session.structured("get", id=row["id"])
        assert whole["body"].startswith("Deployment procedures"), whole
        sources = await session.structured("sources")
        assert {"name": row["source"], "configured": False, "healthy": True, "doc_count": 1} in (
            sources["sources"]
        ), sources
        message = json.loads(await session.error_text("get", id="nothing-like-it"))
        assert message["error"]["code"] == "not_found", message
    return {"rows": len(found["results"])}


async def awareness(open_session, stop):
    """Awareness: the five steps of the workflow, then a sub-agent with its own role."""
    said = "Switched auth from JWT to session cookies because refreshing tokens was too complex."
    async with open_session() as session:
        begun = await session.structured("awareness_init", source="claude-code")
        id = begun["session_id"]
        nothing = await session.structured(
            "awareness_recall", semantic_query="How do we log in?", keyword_query="auth JWT OAuth2"
        )
        assert nothing["results"] == [], nothing
        kept = await session.structured(
            "awareness_record", action="remember", text=said, session_id=id
        )
        assert kept["result"]["written"] == 1, kept
        assert "submit_insights" in kept["_extraction_instruction"], kept
        card = {
            "category": "decision",
            "title": "Session cookies instead of JWT",
            "summary": "Auth uses session cookies because refreshing tokens was too complex.",
        }
        insights = {"knowledge_cards": [card]}
        submitted = await session.structured(
            "awareness_record", action="submit_insights", content=insights, session_id=id
        )
        assert submitted["cards_created"] == 1, submitted
        steps = [{"text": f"Step {n}: moved login part {n} to cookies"} for n in range(3)]
        batch = await session.structured(
            "awareness_record", action="remember_batch", steps=steps, session_id=id
        )
        assert batch["accepted_steps"] == 3, batch

    await stop()

    async with open_session() as session:
        found = await session.structured(
            "awareness_recall", semantic_query="session cookies or JWT?"
        )
        assert any(result["content"] == said for result in found["results"]), found
        role = (await session.structured("awareness_init"))["agent_profiles"][0]["agent_role"]
        prompt = await session.structured("awareness_get_agent_prompt", agent_role=role)
        assert "Memory Integration" in prompt["activation_prompt"], prompt
        for who, text in ((role, "Parser written by hand"), ("other", "Parser looked at twice")):
            await session.structured(
                "awareness_record", action="remember", text=text, agent_role=who
            )
        mine = await session.structured(
            "awareness_recall", semantic_query="parser", agent_role=role, recall_mode="precise"
        )
        assert [result["content"] for result in mine["results"]] == ["Parser written by hand"], mine
    return {"steps": 5}


WORKFLOWS = {"hindsight": hindsight, "recall": recall, "harness": harness, "awareness": awareness}


async def main(workflow, mode, target):
    command, *arguments = target["command"]
    versions = set()

    @contextlib.asynccontextmanager
    async def open_session():
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
        counts = await WORKFLOWS[workflow](open_session, stop)
    (version,) = versions
    print(json.dumps({"version": version, **counts}))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
