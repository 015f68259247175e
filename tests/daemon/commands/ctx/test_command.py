"""`recalld ctx`, run as a Context Harness user runs it, and the examples of the seed document."""

import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import PATIENCE, RECALLD

CONFIG = """
[db]
path = "./data/ctx.sqlite"
[chunking]
max_tokens = 700
[retrieval]
final_limit = 5
[server]
bind = "127.0.0.1:0"
cors_origins = ["https://docs.example.com"]
[connectors.filesystem]
root = "./docs"
[connectors.git]
url = "./repository"
[connectors.script.tickets]
path = "tools/tickets.lua"
[tools.script.count]
path = "tools/count.lua"
timeout = 1
[agents.reviewer]
description = "Reviews"
system_prompt = "Review."
tools = ["search"]
"""
FILES = {
    "config/ctx.toml": CONFIG,
    "docs/auth.md": "# Authentication Guide\n\nJWT tokens are signed with the key of the day.\n",
    "docs/deploy.md": "# Deployment\n\nDeployment procedures: we deploy on Fridays.\n",
    "tools/count.lua": """
tool = { description = "Counts", parameters = { { name = "query", required = true } } }
function tool.execute(params, context)
  if params.query == "sleep" then sleep(60) end
  if params.query == "fail" then error("no luck") end
  return { count = #context.search(params.query) }
end""",
    "tools/tickets.lua": """
connector = {}
function connector.scan() return { { source_id = "T-1", body = "The printer is on fire" } } end""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    commit(folder / "repository")
    return folder


def commit(repository: Path) -> None:
    """A repository with one document, committed on the date of the example."""
    (repository / "docs").mkdir(parents=True)
    (repository / "docs" / "auth.md").write_text("# Authentication Guide\n\nHow to sign in.\n")
    date = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2025-01-15T10:30:00Z")
    user = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "."), (*user, "commit", "-qm", "docs")):
        subprocess.run(
            ["git", "-C", str(repository), *command], check=True, env={**os.environ, **date}
        )


def environment() -> dict[str, str]:
    return {**os.environ, "RECALLD_RATE_LIMIT": "0"}


def ctx(project: Path, *arguments: str, code: int = 0) -> str:
    done = subprocess.run(
        [*RECALLD, "ctx", *arguments],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@contextmanager
def serving(project: Path) -> Generator[str]:
    """`recalld ctx serve mcp`; gives its base URL."""
    command = [*RECALLD, "ctx", "serve", "mcp", "--config", "./config/ctx.toml"]
    log = project / "serve.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=project, env=environment(), stderr=output)
    try:
        deadline = time.monotonic() + PATIENCE
        while (ready := re.search(r'"port":(\d+),"event":"http.ready"', log.read_text())) is None:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield f"http://127.0.0.1:{ready[1]}"
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture(scope="module")
def base(project: Path) -> Iterator[str]:
    ctx(project, "sync", "all")
    with serving(project) as url:
        yield url


def ask(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    given = {"content-type": "application/json", "accept": "application/json", **headers}
    request = urllib.request.Request(url, data=data, headers=given)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def mcp(base: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The structured result of a tool, over MCP at the bare origin that Cursor is given."""
    version = "io.modelcontextprotocol/protocolVersion"
    meta = {
        version: "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments, "_meta": meta},
    }
    headers = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    status, answer = ask(f"{base}/", message, **headers)
    assert status == 200
    structured: dict[str, Any] = answer["result"]["structuredContent"]
    return structured


def test_sync_search_get_sources_and_stats_work_without_a_server(project: Path) -> None:
    assert "initialized" in ctx(project, "init")
    assert "filesystem: 2 files: 2 added" in ctx(project, "sync", "filesystem", "--no-progress")
    assert "0 added" in ctx(project, "sync", "filesystem", "--dry-run")
    assert "1 added" in ctx(project, "--config", "config/ctx.toml", "sync", "script:tickets")
    found = json.loads(ctx(project, "search", "authentication", "--json", "--source", "filesystem"))
    [row] = found["results"]
    assert (row["source"], row["source_id"]) == ("filesystem", "auth.md")
    assert "JWT tokens are signed" in ctx(project, "get", row["id"])
    assert "Authentication Guide" in ctx(project, "search", "authentication")
    assert re.search(r"filesystem +filesystem +OK", ctx(project, "sources"))
    assert "1 added" in ctx(project, "sync", "git", "--limit", "1")
    assert re.search(r"documents +4\n", ctx(project, "stats"))
    assert re.search(r"without vector +0\n", ctx(project, "index", "status"))
    assert "count" in ctx(project, "tool", "list")
    assert "no document" in ctx(project, "get", "nothing", code=64)
    assert "there is no connector 'jira'" in ctx(project, "sync", "jira", code=64)


def test_documents_can_be_chosen_by_their_date(project: Path) -> None:
    search = ("search", "authentication", "--json", "--since")
    ctx(project, "sync", "all")
    assert {
        row["source"] for row in json.loads(ctx(project, *search, "2020-01-01"))["results"]
    } == {
        "filesystem",
        "git",
    }
    [row] = json.loads(ctx(project, *search, "2025-06-01", "--explain"))["results"]
    assert (row["source"], row["score_parts"] != {}) == ("filesystem", True)
    assert "since: 'soon' is not a time" in ctx(project, *search, "soon", code=64)
    assert "invalid moment value" in ctx(project, "sync", "all", "--since", "soon", code=64)


def test_vectors_index_and_export_have_their_commands(project: Path) -> None:
    ctx(project, "sync", "all")
    assert "every chunk has a vector" in ctx(project, "embed", "pending")
    assert "every chunk has a vector" in ctx(project, "embed", "rebuild")
    ctx(project, "export", "--output", "site.json")
    written = json.loads((project / "site.json").read_text())
    by_id = {each["id"]: each for each in written["documents"]}
    assert {each["source_id"] for each in by_id.values()} >= {"auth.md", "deploy.md", "T-1"}
    assert {each["document_id"] for each in written["chunks"]} == by_id.keys()
    assert "JWT tokens" in "".join(each["text"] for each in written["chunks"])
    assert "complete" in ctx(project, "completions", "bash")


def test_a_connector_can_be_written_and_tried(project: Path) -> None:
    ctx(project, "connector", "init", "wiki", "--dir", "connectors")
    tried = ctx(project, "connector", "test", "connectors/wiki.lua")
    assert "hello  Hello" in tried
    assert "1 documents" in tried
    (project / "connectors" / "bad.lua").write_text(
        "connector = {}\nfunction connector.scan() x() end"
    )
    assert "bad.lua:2" in ctx(project, "connector", "test", "connectors/bad.lua", code=1)


def test_every_example_of_the_document_holds_over_rest(base: str) -> None:
    query = {"query": "authentication", "mode": "hybrid", "limit": 10, "source": "filesystem"}
    status, found = ask(f"{base}/tools/search", query)
    assert status == 200
    row = found["results"][0]
    assert row.keys() == {*("id", "source", "source_id", "title", "score", "snippet", "source_url")}
    assert row["source_id"] == "auth.md"
    assert row["title"] == "Authentication Guide"
    assert "JWT tokens are signed with" in row["snippet"]

    status, whole = ask(f"{base}/tools/get", {"id": row["id"]})
    assert status == 200
    assert whole.keys() >= {
        *("id", "source", "source_id", "title", "body", "source_url", "updated_at")
    }
    assert whole["body"] == FILES["docs/auth.md"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", whole["updated_at"])

    _, of_git = ask(f"{base}/tools/search", {"query": "authentication", "source": "git"})
    status, whole = ask(f"{base}/tools/get", {"id": of_git["results"][0]["id"]})
    assert (whole["source"], whole["source_id"]) == ("git", "docs/auth.md")
    assert whole["updated_at"] == "2025-01-15T10:30:00Z"

    status, sources = ask(f"{base}/tools/sources")
    counts = {each["name"]: each for each in sources["sources"]}
    assert counts["filesystem"]["doc_count"] == 2
    assert counts["filesystem"]["configured"] is True
    assert counts["filesystem"]["healthy"] is True
    assert counts["script-tickets"]["doc_count"] == 1
    assert counts["git"].items() >= {"configured": True, "healthy": True, "doc_count": 1}.items()

    status, listed = ask(f"{base}/tools/list")
    built_in = {tool["name"]: tool["builtin"] for tool in listed["tools"]}
    assert built_in["search"] is built_in["get"] is built_in["sources"] is True
    assert built_in["count"] is False

    assert ask(f"{base}/health") == (200, {"status": "ok"})


def test_a_script_has_the_documented_statuses(base: str) -> None:
    assert ask(f"{base}/tools/count", {"query": "printer"}) == (200, {"result": {"count": 1}})
    assert ask(f"{base}/tools/count", {})[0] == 400
    assert ask(f"{base}/tools/nothing", {})[0] == 404
    assert ask(f"{base}/tools/count", {"query": "sleep"})[0] == 408
    status, body = ask(f"{base}/tools/count", {"query": "fail"})
    assert (status, body["error"]["message"]) == (500, "count.lua:5: no luck")


def test_the_same_tools_answer_over_mcp_at_the_bare_origin(base: str) -> None:
    found = mcp(base, "search", {"query": "deployment procedures", "mode": "hybrid"})
    assert found["results"][0]["source_id"] == "deploy.md"
    whole = mcp(base, "get", {"id": found["results"][0]["id"]})
    assert whole["body"] == FILES["docs/deploy.md"]
    assert {each["name"] for each in mcp(base, "sources", {})["sources"]} == {
        "filesystem",
        "git",
        "script-tickets",
    }
    assert mcp(base, "count", {"query": "fridays"}) == {"result": {"count": 1}}


def test_agents_and_cors_follow_the_file(base: str) -> None:
    _, agents = ask(f"{base}/agents/list")
    assert [agent["name"] for agent in agents["agents"]] == ["reviewer"]
    assert ask(f"{base}/agents/reviewer/prompt", {})[1]["result"]["system"] == "Review."
    assert ask(f"{base}/tools/list", origin="https://docs.example.com")[0] == 200
    assert ask(f"{base}/tools/list", origin="https://evil.example.com")[0] == 403


def test_commands_use_the_running_server(project: Path, base: str) -> None:
    (project / "docs" / "new.md").write_text("# Rota\n\nThe rota is on the fridge.\n")
    assert "1 added" in ctx(project, "sync", "filesystem")
    assert "Rota" in ctx(project, "search", "fridge")
    (project / "docs" / "new.md").unlink()
    assert "1 deleted" in ctx(project, "sync", "filesystem")
    assert ask(f"{base}/tools/search", {"query": "fridge"})[1] == {"results": []}


def test_init_writes_an_example_that_works(tmp_path: Path) -> None:
    assert "wrote an example" in ctx(tmp_path, "init")
    assert (tmp_path / "config" / "ctx.toml").is_file()
    assert "No such file" in ctx(tmp_path, "sources", "--config", "none.toml", code=78)
