"""A daemon's HTTP on a free port, in this process, and small clients for it.

`Web.ask` speaks well-formed requests through httpx; `Web.raw` sends bytes as they are, for the
requests no library would make.
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from daemon.api.registry import ApiOperations
from daemon.rpc.gate import Gate
from daemon.rpc.services import Services
from daemon.tools.surface import Surface
from daemon.transports.http.edge.messages import Pace
from daemon.transports.http.server import Bound, HttpServer
from protocol.revisions import CLIENT_CAPABILITIES, CLIENT_INFO, PROTOCOL_VERSION
from tests.support.wire import running_services

MODERN = "2026-07-28"
BOTH = "application/json, text/event-stream"
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


class Event:
    """One server-sent event as a client sees it."""

    def __init__(self, id: str, data: str, retry: str) -> None:
        self.id = id
        self.data = data
        self.retry = retry

    @property
    def message(self) -> Any:
        return json.loads(self.data)


class Web:
    """A running server and a client of it."""

    def __init__(
        self, services: Services, server: HttpServer, port: int, client: httpx.AsyncClient
    ) -> None:
        self.services = services
        self.server = server
        self.port = port
        self.client = client

    # --- MCP ---------------------------------------------------------------------------------

    async def post(
        self, message: Any, headers: dict[str, str] | None = None, path: str = "/mcp"
    ) -> httpx.Response:
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {"content-type": "application/json", "accept": BOTH, **(headers or {})}
        return await self.client.post(path, content=body, headers=given)

    async def modern(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        id: Any = 1,
        capabilities: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        meta: dict[str, Any] | None = None,
    ) -> httpx.Response:
        message, given = modern(method, params, id=id, capabilities=capabilities, meta=meta)
        return await self.post(message, {**given, **(headers or {})})

    async def open(
        self,
        version: str = "2025-11-25",
        capabilities: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        path: str = "/mcp",
    ) -> dict[str, str]:
        """Initialize; the headers that later requests of the session carry."""
        params = {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        answer = await self.post(request("initialize", params), headers, path)
        assert answer.status_code == 200, answer.text
        session = {"mcp-session-id": answer.headers["mcp-session-id"], **(headers or {})}
        if version != "2025-03-26":
            session["mcp-protocol-version"] = version
        noted = await self.post(notification("notifications/initialized"), session, path)
        assert noted.status_code == 202
        return session

    # --- bytes -------------------------------------------------------------------------------

    async def raw(self, data: bytes, *, seconds: float = 5.0) -> bytes:
        """Send bytes, half-close nothing; everything that comes back until the end or a pause."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(data)
            out = b""
            with anyio.move_on_after(seconds):
                while not _is_whole(out):
                    try:
                        out += await stream.receive()
                    except anyio.EndOfStream:
                        break
            return out


def _is_whole(out: bytes) -> bool:
    head, found, body = out.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.split(b":")[1])
    return head.startswith(b"HTTP/1.1 204") or out.endswith(b"0\r\n\r\n")


def request(method: str, params: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def notification(method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}}


def call(tool: str, arguments: dict[str, Any] | None = None, id: Any = 1) -> dict[str, Any]:
    return request("tools/call", {"name": tool, "arguments": arguments or {}}, id)


def modern(
    method: str,
    params: dict[str, Any] | None = None,
    *,
    id: Any = 1,
    capabilities: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """A modern request and the headers that repeat it."""
    given = {
        **(params or {}),
        "_meta": {
            PROTOCOL_VERSION: MODERN,
            CLIENT_CAPABILITIES: capabilities or {},
            CLIENT_INFO: {"name": "test", "version": "1"},
            **(meta or {}),
        },
    }
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    if method in NAMED:
        headers["mcp-name"] = str((params or {}).get(NAMED[method], ""))
    return request(method, given, id), headers


def events(text: str) -> list[Event]:
    """The events of a finished stream; comments are none."""
    found: list[Event] = []
    for block in text.split("\n\n"):
        fields = {"id": "", "data": "", "retry": ""}
        seen = False
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            if name in fields:
                fields[name] = value.removeprefix(" ")
                seen = True
        if seen:
            found.append(Event(fields["id"], fields["data"], fields["retry"]))
    return found


@asynccontextmanager
async def running_web(
    home: Path,
    *,
    surface: Surface | None = None,
    api: ApiOperations | None = None,
    pace: Pace | None = None,
    gate: Callable[[Gate], Gate] | None = None,
    **flags: Any,
) -> AsyncGenerator[Web]:
    """HTTP with the fixture surface and a real catalogue."""
    settings = {"server__bind": "127.0.0.1:0", "limits__requests_per_minute": 0, **flags}
    async with running_services(home, surface=surface, api=api, gate=gate, **settings) as services:
        bound = Bound(services.settings)
        server = HttpServer(services, bound, pace)
        await server.open()
        base = f"http://127.0.0.1:{bound.port}"
        async with httpx.AsyncClient(base_url=base, timeout=20, trust_env=False) as client:
            try:
                yield Web(services, server, bound.port, client)
            finally:
                with anyio.CancelScope(shield=True):
                    await client.aclose()
                    server.refuse_new()
                    services.shutdown.leaving.set()
                    await server.close()


def token_file(home: Path, text: str) -> str:
    path = home / "tokens.toml"
    path.write_text(text)
    path.chmod(0o600)
    return str(path)
