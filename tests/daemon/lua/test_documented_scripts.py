"""Every script in docs/lua.md works as the page says."""

import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from daemon.config.scripts import ScriptEntry
from daemon.lua.connector import script_connectors
from daemon.sources.connectors.connector import Listed
from daemon.sources.definition import Definition
from tests.support.scripts import script_web, settings_of

PAGE = Path(__file__).parents[3] / "docs" / "lua.md"
SCRIPTS: list[str] = re.findall(
    r"^```lua\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
)


def script(table: str) -> str:
    """The script of the page that sets this global table."""
    [found] = [text for text in SCRIPTS if text.startswith(f"{table} = ")]
    return found


def test_every_script_of_the_page_is_run_here() -> None:
    assert len(SCRIPTS) == len({script(table) for table in ("tool", "agent", "connector")})


async def test_the_tool_of_the_page_returns_titles(tmp_path: Path) -> None:
    async with script_web(tmp_path, {"find_titles": script("tool")}, seconds=5) as server:
        status, body = await server.call("find_titles", query="tokens", mode="keyword")
        assert (status, body) == (200, {"result": {"titles": ["tokens", "tokens"]}})
        assert (await server.call("find_titles", query="tokens", mode="magic"))[0] == 400


async def test_the_agent_of_the_page_quotes_runbooks(tmp_path: Path) -> None:
    agents = (ScriptEntry(name="incident", path="agents/incident.lua"),)
    scripts = {"agents/incident": script("agent")}
    async with script_web(tmp_path, scripts, agents=agents, seconds=5) as server:
        given = {"arguments": {"service": "billing"}}
        answer = await server.web.client.post("/agents/incident/prompt", json=given)
        system = answer.json()["result"]["system"]
        assert system.startswith("Help with billing.\n\nJWT tokens are signed")


async def test_the_connector_of_the_page_lists_tickets(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("TICKETS_KEY", "secret")
    path = tmp_path / "tickets.lua"
    path.write_text(script("connector"))
    with tickets() as (url, seen):
        definition = Definition(
            name="tickets",
            kind="script",
            path=str(path),
            config={"url": url},
            allow_hosts=("127.0.0.1",),
            env=("TICKETS_KEY",),
        )
        connector = await script_connectors(settings_of(tmp_path))(definition)
        found = [entry async for entry in connector.entries()]
    assert found == [Listed(source_id="OPS-1", title="Printer", text="It is on fire")]
    assert seen == ["Bearer secret"]


@contextmanager
def tickets() -> Generator[tuple[str, list[str]]]:
    """A server with one ticket; gives its address and the credentials of each request."""
    seen: list[str] = []

    class Tickets(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["authorization"])
            body = json.dumps([{"key": "OPS-1", "summary": "Printer", "text": "It is on fire"}])
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing is logged."""

    server = HTTPServer(("127.0.0.1", 0), Tickets)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/tickets", seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
