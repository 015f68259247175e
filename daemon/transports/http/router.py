"""The ASGI application: guard, route, answer, one log line. It catches every exception.

/mcp  /mcp/<dialect>  POST /     MCP
/tools/…                         REST, the tools
/api/v1/…                        REST, the memories
/  /web/…  /docs                 pages for people
/health  /health/live  /health/ready  /metrics  /openapi.json
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

import anyio
import structlog

from daemon.operations.metrics import Meter
from daemon.rpc.failures import describe
from daemon.rpc.gate import contained
from daemon.rpc.limiter import Clock
from daemon.tools.authority import Principal
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.guard import Guard, preflight
from daemon.transports.http.edge.messages import (
    CLOSE,
    Gone,
    Receive,
    Refusal,
    Scope,
    Send,
    error_body,
    refuse,
    reply,
)
from daemon.transports.http.mcp.refusals import ProtocolRefusal

log: Final = structlog.get_logger()

Endpoint = Callable[[Scope, Receive, Send, Principal, AccessRecord], Awaitable[None]]


class Route:
    """An endpoint and its name in logs and metrics."""

    __slots__ = ("endpoint", "is_open", "name", "verbs")

    def __init__(
        self,
        name: str,
        endpoint: Endpoint,
        verbs: tuple[str, ...],
        *,
        is_open: bool = False,
        has_head: bool = True,
    ) -> None:
        self.name = name
        self.endpoint = endpoint
        #: Every GET has a HEAD (RFC 9110 section 9.1), except event streams, which have no end.
        if has_head and "GET" in verbs:
            verbs = ("GET", "HEAD", *(verb for verb in verbs if verb != "GET"))
        self.verbs = verbs
        #: Whether requests without a token are answered, with minimal content.
        self.is_open = is_open


class Router:
    """The ASGI application. `fallback` maps a path prefix to one route for all its paths."""

    def __init__(
        self,
        guard: Guard,
        routes: Mapping[str, Route],
        fallback: Mapping[str, Route],
        *,
        refresh_tokens: Callable[[], None],
        meter: Meter,
        clock: Clock,
    ) -> None:
        self._guard = guard
        self._routes = dict(routes)
        self._fallback = dict(fallback)
        self._refresh_tokens = refresh_tokens
        self._meter = meter
        self._clock = clock
        #: The running requests of each token, so that revoking the token ends them.
        self._running: dict[str, set[anyio.CancelScope]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = self._clock()
        access = AccessRecord(scope["method"] if scope["method"] in _VERBS else "?")
        watched = access.watch(send)
        try:
            failure = await contained(self._answer(scope, receive, watched, access))
            if failure is not None:
                await self._crashed(failure, watched, access)
        finally:
            seconds = self._clock() - started
            access.write(seconds)
            self._meter.http_done(access.route, access.verb, access.status, seconds)

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, access: AccessRecord
    ) -> None:
        origin: str | None = None
        try:
            origin, authorization = self._guard.admit(scope)
            send = self._with_cors(send, origin)
            route = self._find(scope["path"])
            access.route = route.name
            for name, value in scope["headers"]:
                if name == b"traceparent":
                    access.trace(value.decode("latin-1"))
            allow = ", ".join([*route.verbs, "OPTIONS"]).encode()
            if scope["method"] == "OPTIONS":
                await reply(send, 204, b"", preflight(scope, allow))
                return
            if self._guard.needs_token:
                self._refresh_tokens()
            principal = self._guard.identify(authorization)
            if principal is None:
                if not route.is_open:
                    raise unauthorized()
                principal = ANONYMOUS
            access.principal = principal.name
            if scope["method"] not in route.verbs:
                raise Refusal(
                    405,
                    f"{access.verb} is not allowed on {route.name}; see the Allow header",
                    headers=[(b"allow", allow), CLOSE],
                )
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET"}  # uvicorn omits the body
            work = route.endpoint(scope, receive, send, principal, access)
            if self._guard.needs_token:
                await self._run_for_token(principal.name, work, send, access)
            else:
                await work
        except Refusal as refusal:
            await refuse(send, refusal)
        except ProtocolRefusal as refusal:
            await reply(send, refusal.status, refusal.body())
        except Gone:
            access.status = 499

    async def _run_for_token(
        self, name: str, work: Awaitable[None], send: Send, access: AccessRecord
    ) -> None:
        """Run a request that ends when its token is revoked, streams included."""
        scope = anyio.CancelScope()
        running = self._running.setdefault(name, set())
        running.add(scope)
        try:
            with scope:
                await work
        finally:
            running.discard(scope)
            if not running and self._running.get(name) is running:
                del self._running[name]
        if scope.cancelled_caught:
            if not access.status:
                raise unauthorized()
            if access.is_stream:
                await send({"type": "http.response.body", "body": b""})

    def dismiss(self, names: frozenset[str]) -> None:
        """Cancel the running requests of these tokens."""
        for name in names:
            for scope in self._running.get(name, ()):
                scope.cancel()

    async def _crashed(self, failure: Exception, send: Send, access: AccessRecord) -> None:
        """Log the traceback under an error id; the response contains only that id."""
        error_id = secrets.token_hex(6)
        log.error("http.crashed", error_id=error_id, route=access.route, **describe(failure))
        if not access.status:
            body = error_body("internal", f"Internal error: error id {error_id}")
            await reply(send, 500, body, [CLOSE])

    def _find(self, path: str) -> Route:
        route = self._routes.get(path)
        if route is not None:
            return route
        # `/tools/{name}`, `/agents/{name}/prompt`, `/api/v1/…`: the part up to the second slash.
        route = self._fallback.get(path[: path.find("/", 1) + 1])
        if route is None:
            raise Refusal(404, "nothing is served at this path")
        return route

    def _with_cors(self, send: Send, origin: str | None) -> Send:
        """Add CORS headers, so that a page on an allowed origin can read the response."""
        extra = self._guard.cors_headers(origin)
        if not extra:
            return send

        async def shared(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        return shared


_VERBS: Final = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"})
#: The caller of a request without a token, on the routes that allow it.
ANONYMOUS: Final = Principal(name="nobody", banks=frozenset(), can_write=False)


def unauthorized() -> Refusal:
    return Refusal(
        401,
        "a bearer token is required: Authorization: Bearer …",
        headers=[(b"www-authenticate", b'Bearer realm="recalld"'), CLOSE],
    )
