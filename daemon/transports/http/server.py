"""The HTTP server: binding, wiring and an orderly shutdown."""

import asyncio
import ipaddress
import socket
from typing import Final

import anyio
import structlog
from uvicorn.config import Config

from daemon.config import Settings
from daemon.dialect_names import DIALECTS, chosen
from daemon.exit_codes import CANNOT_CREATE, CONFIG, Exit
from daemon.rpc.services import Services
from daemon.transports.http.edge.bearer_tokens import Tokens
from daemon.transports.http.edge.connection import ConnectionState, HttpConnection
from daemon.transports.http.edge.guard import Guard
from daemon.transports.http.edge.messages import Pace
from daemon.transports.http.mcp.calls import McpServices
from daemon.transports.http.mcp.endpoint import McpEndpoint
from daemon.transports.http.mcp.sessions import HttpSessions
from daemon.transports.http.rest.agents import AgentRoutes
from daemon.transports.http.rest.api import Api
from daemon.transports.http.rest.calls import RestCalls
from daemon.transports.http.rest.documents import DocumentRoutes
from daemon.transports.http.rest.events import EventRoutes
from daemon.transports.http.rest.operations import Operations
from daemon.transports.http.rest.pages import Pages
from daemon.transports.http.rest.routes import Rest
from daemon.transports.http.rest.sources import SourceRoutes
from daemon.transports.http.router import Route, Router

BACKLOG: Final = 512
#: The time that responses under way get when the daemon leaves.
CLOSE_SECONDS: Final = 0.5

log: Final = structlog.get_logger()


class Bound:
    """A listening socket and its tokens; created before the engine, because both can fail."""

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
        # asyncio sets TCP_NODELAY only if the protocol is given explicitly.
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
    """Parse `127.0.0.1:7331` or `[::1]:0`; no names are resolved, except localhost."""
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
    """The HTTP transport of one daemon."""

    def __init__(self, services: Services, bound: Bound, pace: Pace | None = None) -> None:
        self._services = services
        self._settings = services.settings
        self._pace = pace or Pace()
        self._bound = bound
        self._sessions = HttpSessions(
            services.settings,
            keeper=services.sessions,
            limiter=services.limiter,
            subscriptions=services.subscriptions,
            surfaces=services.surfaces,
            clock=services.clock,
        )
        self._state = ConnectionState(self._settings.connections, self._pace)
        self._guard = Guard(
            host=bound.host,
            port=bound.port,
            hosts=self._settings.hosts,
            origins=self._settings.cors_origins,
            tokens=bound.tokens,
        )
        self._server: asyncio.Server
        self._router: Router
        #: The endpoints that have calls without a session.
        self._endpoints: list[RestCalls | McpEndpoint] = []

    async def open(self) -> None:
        """Start to accept requests."""
        services = self._services
        services.gate.measure(services.meter, services.activity)
        services.gate.count_unsent(self._state.unsent)
        services.health.add_check(lambda: self._bound.tokens.trouble)
        services.monitor.add_clients(self._sessions.describe)
        await self._sessions.load()
        self._router = self._make_router()
        config = Config(
            self._router,
            http=HttpConnection,
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
            lambda: HttpConnection(config, self._state), sock=self._bound.listener
        )
        host = f"[{self._bound.host}]" if ":" in self._bound.host else self._bound.host
        services.status.http = f"http://{host}:{self._bound.port}"
        services.status.http_clients = self._sessions.describe
        if self._bound.tokens.are_needed:
            services.tasks.start_soon(self._watch_tokens)
        log.info("http.ready", host=self._bound.host, port=self._bound.port)

    def _make_router(self) -> Router:
        services = self._services
        operations = Operations(
            gate=services.gate,
            health=services.health,
            surface=services.surfaces(),
            meter=services.meter,
            limiter=services.limiter,
            connections=services.connections,
            sessions=self._sessions,
            leaving=services.shutdown.leaving,
            rejected=self._state.rejected,
        )
        calls = RestCalls(
            gate=services.gate,
            sessions=self._sessions,
            surface=services.surfaces(),
            subscriptions=services.subscriptions,
            frame_bytes=self._settings.frame_bytes,
        )
        self._endpoints.append(calls)
        rest = Rest(
            self._settings,
            calls=calls,
            surface=services.surfaces(),
            api=services.api,
            has_sources=services.sources is not None,
        )
        api = Api(services.api, calls)
        events = EventRoutes(
            services.events,
            services.monitor,
            leaving=services.shutdown.leaving,
            pace=self._pace,
        )
        agents = AgentRoutes(calls, services.surfaces().agents)
        documents = DocumentRoutes(calls, services.surfaces())
        sources = SourceRoutes(calls, services.sources, services.tasks)
        routes = {
            "/health": Route("/health", operations.health, ("GET",), is_open=True),
            "/health/live": Route("/health/live", operations.live, ("GET",), is_open=True),
            "/health/ready": Route("/health/ready", operations.ready, ("GET",), is_open=True),
            "/metrics": Route("/metrics", operations.metrics, ("GET",)),
            **rest.routes(),
            **agents.routes(),
            **documents.routes(),
            **sources.routes(),
            **events.routes(),
        }
        if self._settings.mcp:
            routes |= self._mcp_routes()
        pages = Pages(rest.document, beside=routes.get("/"))
        routes |= pages.routes()
        return Router(
            self._guard,
            routes,
            {
                **rest.fallback(),
                **agents.fallback(),
                **documents.fallback(),
                **sources.fallback(),
                **api.fallback(),
                **pages.fallback(),
            },
            refresh_tokens=self._refresh_tokens,
            meter=services.meter,
            clock=services.clock,
        )

    def _mcp_routes(self) -> dict[str, Route]:
        """All dialects at /mcp and at the bare origin, one dialect at /mcp/<dialect>.

        Context Harness gives its clients the bare origin.
        """
        services = self._services
        shared = McpServices(
            gate=services.gate,
            methods=services.methods,
            sessions=self._sessions,
            tasks=services.tasks,
            leaving=services.shutdown.leaving,
            pace=self._pace,
            frame_bytes=self._settings.frame_bytes,
            output_bytes=self._settings.output_bytes,
        )

        def route(path: str, dialects: str) -> Route:
            endpoint = McpEndpoint(shared, services.surfaces(dialects), dialects=dialects)
            self._endpoints.append(endpoint)
            return Route(path, endpoint, ("GET", "POST", "DELETE"), has_head=False)

        all_dialects = route("/mcp", "")
        found = {"/mcp": all_dialects, "/mcp/": all_dialects, "/": all_dialects}
        for name in chosen(self._settings.dialects) if self._settings.dialects else DIALECTS:
            path = f"/mcp/{name}"
            found[path] = route(path, name)
        return found

    def _refresh_tokens(self) -> None:
        """Reload the token file if it changed, and end the requests of tokens that lost rights."""
        lost = self._bound.tokens.refresh()
        if lost:
            self._sessions.dismiss(lost)
            self._router.dismiss(lost)

    async def _watch_tokens(self) -> None:
        """Check the token file also while no request comes in, for open streams."""
        while True:
            await anyio.sleep(self._pace.tokens)
            self._refresh_tokens()

    def refuse_new(self) -> None:
        """Accept no further connections."""
        self._server.close()

    async def close(self) -> None:
        """Send the responses under way, within a time limit, then close every connection.

        Calls that are still running are answered with an error.
        """
        self._sessions.close()
        for endpoint in self._endpoints:
            endpoint.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        with anyio.move_on_after(CLOSE_SECONDS):
            while self._state.tasks:
                await asyncio.wait(set(self._state.tasks))
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        if self._state.tasks:
            await asyncio.wait(set(self._state.tasks), timeout=CLOSE_SECONDS)
