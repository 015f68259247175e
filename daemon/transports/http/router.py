"""The front: guard, route, answer, one log line. Nothing a handler raises gets past it.

/mcp  /mcp/<dialect>  POST /     the protocol
/tools/…                         REST (seed 004)
/health  /health/live  /health/ready  /metrics  /openapi.json
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final

import anyio
import structlog

from daemon.rpc.dispatcher import contained
from daemon.rpc.failures import describe
from daemon.tools.authority import Principal
from daemon.transports.http.edge.access_log import Access
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

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

log: Final = structlog.get_logger()

Endpoint = Callable[[Scope, Receive, Send, Principal, Access], Awaitable[None]]


class Route:
    """An endpoint, under the name that logs and metrics use for it."""

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
        #: What can be got has a head (RFC 9110, 9.1), but for what has no end.
        if has_head and "GET" in verbs:
            verbs = ("GET", "HEAD", *(verb for verb in verbs if verb != "GET"))
        self.verbs = verbs
        #: Answered without a token, and then with nothing but the least.
        self.is_open = is_open


class Front:
    """The ASGI application."""

    def __init__(
        self,
        hub: "Hub",
        guard: Guard,
        routes: Mapping[str, Route],
        fallback: Mapping[str, Route],
        keep_up: Callable[[], None],
    ) -> None:
        self._hub = hub
        self._guard = guard
        self._routes = dict(routes)
        #: By prefix: one route for all paths that begin like this.
        self._fallback = dict(fallback)
        self._keep_up = keep_up
        #: What runs for whom, where callers have tokens that can be revoked.
        self._present: dict[str, set[anyio.CancelScope]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = self._hub.clock()
        access = Access(scope["method"] if scope["method"] in _VERBS else "?")
        watched = access.watching(send)
        try:
            failure = await contained(self._answer(scope, receive, watched, access))
            if failure is not None:
                await self._crashed(failure, watched, access)
        finally:
            seconds = self._hub.clock() - started
            access.write(seconds)
            self._hub.meter.http_done(access.route, access.verb, access.status, seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, access: Access) -> None:
        origin: str | None = None
        try:
            origin, authorization = self._guard.admit(scope)
            send = self._sharing(send, origin)
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
                self._keep_up()
            principal = self._guard.identify(authorization)
            if principal is None:
                if not route.is_open:
                    raise _unauthorized()
                principal = NOBODY
            access.principal = principal.name
            if scope["method"] not in route.verbs:
                raise Refusal(
                    405,
                    f"{access.verb} is not for {route.name}",
                    headers=[(b"allow", allow), CLOSE],
                )
            if scope["method"] == "HEAD":
                scope = {**scope, "method": "GET"}  # the parser leaves the body out
            work = route.endpoint(scope, receive, send, principal, access)
            if self._guard.needs_token:
                await self._while_trusted(principal.name, work, send, access)
            else:
                await work
        except Refusal as refusal:
            await refuse(send, refusal)
        except ProtocolRefusal as refusal:
            await reply(send, refusal.status, refusal.body())
        except Gone:
            access.status = 499

    async def _while_trusted(
        self, name: str, work: Awaitable[None], send: Send, access: Access
    ) -> None:
        """Work that ends when its caller's token is revoked, streams included."""
        scope = anyio.CancelScope()
        running = self._present.setdefault(name, set())
        running.add(scope)
        try:
            with scope:
                await work
        finally:
            running.discard(scope)
            if not running and self._present.get(name) is running:
                del self._present[name]
        if scope.cancelled_caught:
            if not access.status:
                raise _unauthorized()
            if access.is_stream:
                await send({"type": "http.response.body", "body": b""})

    def dismiss(self, names: frozenset[str]) -> None:
        """These tokens are not what they were: what runs for them ends."""
        for name in names:
            for scope in self._present.get(name, ()):
                scope.cancel()

    async def _crashed(self, failure: Exception, send: Send, access: Access) -> None:
        """The caller hears of an id that finds the traceback in the log, and no more."""
        error_id = secrets.token_hex(6)
        log.error("http.crashed", error_id=error_id, route=access.route, **describe(failure))
        if not access.status:
            body = error_body("internal", f"Internal error: error id {error_id}")
            await reply(send, 500, body, [CLOSE])

    def _find(self, path: str) -> Route:
        route = self._routes.get(path)
        if route is not None:
            return route
        prefix = path[: path.rfind("/") + 1]
        route = self._fallback.get(prefix)
        if route is None:
            raise Refusal(404, "nothing is served at this path")
        return route

    def _sharing(self, send: Send, origin: str | None) -> Send:
        """Answers to a page on an allowed origin may be read by it, errors too."""
        extra = self._guard.shared(origin)
        if not extra:
            return send

        async def shared(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        return shared


_VERBS: Final = frozenset({"GET", "POST", "DELETE", "OPTIONS", "HEAD", "PUT", "PATCH"})
#: A caller without a token, on the routes that answer it at all.
NOBODY: Final = Principal(name="nobody", banks=frozenset(), can_write=False)


def _unauthorized() -> Refusal:
    return Refusal(
        401,
        "a bearer token is needed: Authorization: Bearer …",
        headers=[(b"www-authenticate", b'Bearer realm="recalld"'), CLOSE],
    )
