"""HTTP, opened and closed with the daemon: binding, wiring, and an orderly end."""

import asyncio
import ipaddress
import socket
from typing import TYPE_CHECKING, Final

import anyio
import structlog
from uvicorn.config import Config

from daemon.config import Settings
from daemon.dialect_names import chosen
from daemon.exit_codes import CANNOT_CREATE, CONFIG, Exit
from daemon.transports.http.edge.bearer_tokens import Tokens
from daemon.transports.http.edge.connection import Door, Doorway
from daemon.transports.http.edge.guard import Guard
from daemon.transports.http.edge.messages import Pace
from daemon.transports.http.mcp.endpoint import Streamable
from daemon.transports.http.mcp.sessions import HttpSessions
from daemon.transports.http.rest.operations import Operate
from daemon.transports.http.rest.routes import Rest
from daemon.transports.http.router import Front, Route

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

BACKLOG: Final = 512
#: How long responses under way may take when the daemon leaves.
CLOSE_SECONDS: Final = 0.5

log: Final = structlog.get_logger()


class Bound:
    """A listening socket and who may use it; made before the engine is, since it can fail."""

    def __init__(self, settings: Settings) -> None:
        self.tokens = Tokens(settings.token_file)
        host, port = parse_bind(settings.bind)
        if not ipaddress.ip_address(host).is_loopback and not self.tokens.are_needed:
            raise Exit(
                CONFIG,
                f"server.bind: {host} can be reached from outside this machine; that needs"
                " server.token_file",
            )
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Named in full: asyncio turns Nagle's delay off only where it sees that this is TCP.
        self.listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.listener.bind((host, port))
            self.listener.listen(BACKLOG)
        except OSError as error:
            self.listener.close()
            raise Exit(
                CANNOT_CREATE, f"{settings.bind}: cannot listen there: {error.strerror}"
            ) from None
        self.host = host
        self.port: int = self.listener.getsockname()[1]


def parse_bind(bind: str) -> tuple[str, int]:
    """`127.0.0.1:7331`, `[::1]:0`; names are not resolved, except the one we know."""
    host, _, port = bind.rpartition(":")
    host = "127.0.0.1" if host == "localhost" else host.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(host)
        number = int(port, 10)
    except ValueError:
        number = -1
    if not 0 <= number <= 65_535:
        raise Exit(CONFIG, f"server.bind: {bind!r} is not an address and a port")
    return host, number


class HttpServer:
    """HTTP of one daemon."""

    def __init__(self, hub: "Hub", bound: Bound, pace: Pace | None = None) -> None:
        self._hub = hub
        self._pace = pace or Pace()
        self._bound = bound
        self._sessions = HttpSessions(hub)
        self._doorway = Doorway(hub.settings.connections, self._pace)
        self._guard = Guard(
            host=bound.host,
            port=bound.port,
            hosts=hub.settings.hosts,
            origins=hub.settings.cors_origins,
            tokens=bound.tokens,
        )
        self._server: asyncio.Server
        self._front: Front
        #: What has calls under way that belong to no session.
        self._ends: list[Rest | Streamable] = []

    async def open(self) -> None:
        """Accept requests from now on."""
        hub = self._hub
        hub.dispatcher.meter = hub.meter
        hub.holders.append(self._sessions.keys)
        await self._sessions.load()
        self._front = self._make_front()
        config = Config(
            self._front,
            http=Door,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(self._pace.idle),
        )
        config.load()
        self._bound.listener.setblocking(False)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Door(config, self._doorway), sock=self._bound.listener
        )
        host = f"[{self._bound.host}]" if ":" in self._bound.host else self._bound.host
        hub.http = f"http://{host}:{self._bound.port}"
        if self._bound.tokens.are_needed:
            hub.tasks.start_soon(self._watch_tokens)
        log.info("http.ready", host=self._bound.host, port=self._bound.port)

    def _make_front(self) -> Front:
        hub = self._hub
        operate = Operate(hub, self._sessions, self._doorway.refused)
        rest = Rest(hub, self._sessions)
        self._ends.append(rest)
        routes = {
            "/health": Route("/health", operate.health, ("GET",), is_open=True),
            "/health/live": Route("/health/live", operate.live, ("GET",), is_open=True),
            "/health/ready": Route("/health/ready", operate.ready, ("GET",), is_open=True),
            "/metrics": Route("/metrics", operate.metrics, ("GET",)),
            **rest.routes(),
        }
        if hub.settings.mcp:
            routes |= self._mcp()
        return Front(hub, self._guard, routes, rest.fallback(), self._keep_up)

    def _mcp(self) -> dict[str, Route]:
        """What is served at /mcp, one dialect at /mcp/<dialect>; the bare origin is /mcp too.

        (Seed 004 gives its clients the origin.) A dialect that is not served has no endpoint.
        """
        verbs = ("GET", "POST", "DELETE")
        everything = self._endpoint("")
        whole = Route("/mcp", everything, verbs, has_head=False)
        found: dict[str, Route] = {"/mcp": whole, "/mcp/": whole, "/": whole}
        for name in chosen(self._hub.settings.dialects):
            path = f"/mcp/{name}"
            found[path] = Route(path, self._endpoint(name), verbs, has_head=False)
        return found

    def _endpoint(self, dialects: str) -> Streamable:
        surface = self._hub.surface_for(dialects)
        endpoint = Streamable(
            self._hub, self._sessions, surface, dialects=dialects, pace=self._pace
        )
        self._ends.append(endpoint)
        return endpoint

    def _keep_up(self) -> None:
        """Tokens are what their file says; whoever lost rights by it is shown out."""
        tokens = self._bound.tokens
        lost = tokens.refresh()
        self._hub.http_trouble = tokens.trouble
        if lost:
            self._sessions.dismiss(lost)
            self._front.dismiss(lost)

    async def _watch_tokens(self) -> None:
        """For the sake of those who are in already and ask for nothing more."""
        while True:
            await anyio.sleep(self._pace.tokens)
            self._keep_up()

    def refuse_new(self) -> None:
        """No further connections; subscriptions and standalone streams end."""
        self._server.close()

    async def close(self) -> None:
        """Responses under way go out, within a bound; then every connection is closed.

        What still runs is answered with an error: a request never goes without an answer.
        """
        self._sessions.close()
        for end in self._ends:
            end.close()
        for connection in list(self._doorway.connections):
            connection.shutdown()
        with anyio.move_on_after(CLOSE_SECONDS):
            while self._doorway.tasks:
                await asyncio.wait(set(self._doorway.tasks))
        for task in list(self._doorway.tasks):
            task.cancel()
        for connection in list(self._doorway.connections):
            connection.transport.abort()
        if self._doorway.tasks:
            await asyncio.wait(set(self._doorway.tasks), timeout=CLOSE_SECONDS)
