"""Reading never writes: no read-only call changes the content of the data directory.

The content of a data directory is every bank directory in it, every row of the catalogue except
sessions and their handles, and every row of every bank except derived vector data. Sessions are
excepted because any call may open one. Vector data is excepted because the engine computes the
vectors of existing items in the background: the tables `vectors`, `turns` and `models`, the
snapshot file, and in `state` the change number and the current model.

Read-only tools are called over every transport. Over HTTP the caller has a token that may only
read, so `awareness_init`, which serves such callers without writing, is called as well.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.client import MODERN, Client, Home
from tests.contracts.tables.dialects import TOOLS
from tests.contracts.tables.model import NONE, Parameter, Tool
from tests.support.web import BOTH, modern, notification, request

KEPT: Final = "kept"
#: Banks that exist in no data directory; each client has one of its own as its default.
MISSING: Final = "missing"
TRANSPORTS: Final = ("embedded", "bridged", "unix", "http-legacy", "http-modern", "rest")
#: Tables that hold sessions, or data derived from items in the background.
EXCEPTED: Final = frozenset({"sessions", "handles", "vectors", "models", "turns"})
STATE: Final = "SELECT id, bank, items, words FROM state"

Content = dict[str, Any]
Call = Callable[[str, dict[str, Any]], Any]

READ_ONLY: Final = tuple(tool for _, tool in TOOLS if tool.read_only)
SERVES_READERS: Final = tuple(tool for _, tool in TOOLS if tool.name == "awareness_init")


def content(data: Path) -> Content:
    """The content of a data directory, read while the daemon runs."""
    found: Content = {"catalogue": rows(data / "catalogue.db")}
    for bank in sorted((data / "banks").glob("*")):
        found[bank.name] = rows(bank / "bank.db")
    return found


def rows(database: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        tables = [name for (name,) in names if name not in EXCEPTED]
        return {
            name: connection.execute(
                STATE if name == "state" else f'SELECT * FROM "{name}"'
            ).fetchall()
            for name in tables
        }


# --- clients ----------------------------------------------------------------------------------


class Place:
    """A data directory with one bank in it, and callers whose default bank is there or not."""

    def __init__(self, transport: str, home: Home) -> None:
        self.transport = transport
        self.data = home.path / "data"
        self._home = home
        home.env["RECALLD_TOKEN_FILE"] = str(home.path / "tokens.toml")
        self._clients: list[Client] = []
        with closing(Client("embedded", "2025-11-25", home, "--bank", KEPT)) as writer:
            fill(writer)
        self.tokens = {bank: self._token(bank) for bank in (KEPT, MISSING)}
        self._web: httpx.Client | None = None
        if transport != "embedded":
            home.serve("--bind", "127.0.0.1:0", http=True)
            url = str(json.loads(home.run("status", "--json").stdout)["http"])
            self._web = httpx.Client(base_url=url, trust_env=False, timeout=20)
        # An embedded client holds the data directory for itself: one at a time.
        banks = (MISSING,) if transport == "embedded" else (KEPT, MISSING)
        self.calls = {bank: self._caller(bank) for bank in banks}

    def _token(self, bank: str) -> str:
        return self._home.run("token", "add", bank, "--bank", bank, "--read-only").stdout.strip()

    def _caller(self, bank: str) -> Call:
        match self.transport:
            case "embedded" | "bridged":
                return self._client(Client(self.transport, MODERN, self._home, "--bank", bank))
            case "unix":
                return self._client(Client("unix", "2025-11-25", self._home, bank=bank))
            case "http-legacy":
                return self._legacy(bank)
            case "http-modern":
                return lambda tool, arguments: self._modern(bank, tool, arguments)
            case _:
                return lambda tool, arguments: self._rest(bank, tool, arguments)

    def _client(self, client: Client) -> Call:
        self._clients.append(client)
        return client.call_with

    def _headers(self, bank: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.tokens[bank]}", "accept": BOTH}

    def _legacy(self, bank: str) -> Call:
        headers = self._headers(bank)
        hello = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "contract", "version": "1"},
        }
        opened = self._post("/mcp", request("initialize", hello), headers)
        headers |= {
            "mcp-session-id": opened.headers["mcp-session-id"],
            "mcp-protocol-version": "2025-11-25",
        }
        self._post("/mcp", notification("notifications/initialized"), headers)

        def call(tool: str, arguments: dict[str, Any]) -> Any:
            message = request("tools/call", {"name": tool, "arguments": arguments})
            return self._post("/mcp", message, headers).text

        return call

    def _modern(self, bank: str, tool: str, arguments: dict[str, Any]) -> Any:
        message, repeated = modern("tools/call", {"name": tool, "arguments": arguments})
        return self._post("/mcp", message, {**self._headers(bank), **repeated}).text

    def _rest(self, bank: str, tool: str, arguments: dict[str, Any]) -> Any:
        headers = self._headers(bank)
        if tool == "sources":
            assert self._web is not None
            return self._web.get("/tools/sources", headers=headers).text
        return self._post(f"/tools/{tool}", arguments, headers).text

    def _post(self, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
        assert self._web is not None
        answer = self._web.post(path, json=body, headers=headers)
        assert answer.status_code not in (401, 429), answer.text
        return answer

    def close(self) -> None:
        for client in self._clients:
            client.close()
        if self._web is not None:
            self._web.close()
        self._home.close()


def fill(writer: Client) -> None:
    """Store something of every kind."""
    for tool, arguments in (
        ("hindsight_put", {"bank_id": KEPT, "content": "Tea, not coffee.", "context": "taste"}),
        ("mcp__claude-recall__store_memory", {"content": "Deploy on Tuesdays."}),
        ("awareness_record", {"action": "remember", "text": "Decided to use session cookies."}),
        (
            "awareness_record",
            {
                "action": "ingest",
                "content_scope": "knowledge",
                "content": [{"title": "Auth", "text": "Tokens expire after a quarter of an hour."}],
            },
        ),
        (
            "awareness_record",
            {
                "action": "submit_insights",
                "content": {
                    "knowledge_cards": [
                        {"category": "decision", "title": "Cookies", "summary": "Use cookies."}
                    ],
                    "action_items": [{"title": "Rotate the key"}],
                    "risks": [{"title": "Expiry", "level": "high", "detail": "Clock skew"}],
                },
            },
        ),
    ):
        answer = writer.call_with(tool, arguments)
        assert not answer.is_error, answer


@pytest.fixture(scope="module", params=TRANSPORTS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(request.param, Home())
    yield made
    made.close()


# --- the property -----------------------------------------------------------------------------


def values(parameter: Parameter, usual: Any) -> st.SearchStrategy[Any]:
    """Values a caller may send for a parameter, right and wrong."""
    if parameter.name in ("bank_id", "memory_id"):
        return st.sampled_from((KEPT, MISSING, "nowhere"))
    chosen = [*parameter.enum, *parameter.bad]
    if parameter.default is not NONE and parameter.default is not None:
        chosen.append(parameter.default)
    if usual is not None:
        chosen.append(usual)
    plain: dict[str, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(("cookies", "tokens", "", "nothing at all")),
        "integer": st.integers(0, 40),
        "number": st.integers(0, 40) | st.floats(0, 1),
        "boolean": st.booleans(),
        "object": st.just({}),
        "array": st.just([]),
    }
    return st.sampled_from(chosen) | plain[parameter.type] if chosen else plain[parameter.type]


@st.composite
def arguments_of(draw: st.DrawFn, tool: Tool) -> dict[str, Any]:
    drawn: dict[str, Any] = {}
    for parameter in tool.parameters:
        usual = tool.arguments.get(parameter.name)
        if parameter.required or draw(st.booleans()):
            is_usual = usual is not None and draw(st.booleans())
            drawn[parameter.name] = usual if is_usual else draw(values(parameter, usual))
    return drawn


def test_every_usual_call_of_a_reader_leaves_the_data_directory_alone(place: Place) -> None:
    is_reader = place.transport in ("http-legacy", "http-modern", "rest")
    before = content(place.data)
    for tool in READ_ONLY + (SERVES_READERS if is_reader else ()):
        for call in place.calls.values():
            call(tool.name, dict(tool.arguments))

            assert content(place.data) == before, tool.name


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_no_call_of_a_reader_changes_the_data_directory(place: Place, data: st.DataObject) -> None:
    is_reader = place.transport in ("http-legacy", "http-modern", "rest")
    tools = READ_ONLY + (SERVES_READERS if is_reader else ())
    before = content(place.data)
    for _ in range(5):
        tool = data.draw(st.sampled_from(tools))
        call = place.calls[data.draw(st.sampled_from(sorted(place.calls)))]
        call(tool.name, data.draw(arguments_of(tool)))

    assert content(place.data) == before
