"""Health, readiness and metrics: what those who run the daemon ask it.

Anybody may learn whether we are well; only the owner learns more than that. Liveness is about the
process, readiness about its work: a daemon whose catalogue cannot be written is alive, not ready.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from daemon.operations.health import memory_use
from daemon.operations.metrics import CONTENT_TYPE, counter, gauge
from daemon.tools.authority import Principal
from daemon.transports.http.edge.access_log import Access
from daemon.transports.http.edge.messages import Receive, Refusal, Scope, Send, reply
from daemon.transports.http.mcp.sessions import HttpSessions

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

_OK: Final = b'{"status":"ok"}'


class Operate:
    """The endpoints; all of them are GET."""

    def __init__(
        self, hub: "Hub", sessions: HttpSessions, refused: dict[tuple[str, ...], int]
    ) -> None:
        self._hub = hub
        self._refused = refused
        self._sessions = sessions

    async def health(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: Access
    ) -> None:
        """Seed 004: `{"status": "ok"}`, and nothing else."""
        await reply(send, 200, _OK)

    async def live(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: Access
    ) -> None:
        await reply(send, 200, _OK)

    async def ready(
        self, _scope: Scope, _receive: Receive, send: Send, who: Principal, _access: Access
    ) -> None:
        """200 when work can be done, 503 when it cannot; the owner is told why."""
        health = await self._hub.health(self._hub.surface_for(""))
        is_ready = health.database == "connected" and not self._hub.leaving.is_set()
        status = "ok" if is_ready else "unavailable"
        body: dict[str, object] = {"status": status}
        if who.is_owner:
            body["health"] = health
        await reply(send, 200 if is_ready else 503, msgspec.json.encode(body))

    async def metrics(
        self, _scope: Scope, _receive: Receive, send: Send, who: Principal, _access: Access
    ) -> None:
        if not who.is_owner:
            raise Refusal(403, "metrics are for the owner")
        hub = self._hub
        lines = [
            *hub.meter.lines(),
            *counter(
                "recalld_http_refused_total",
                "Connections refused at the door, before there was a request, by status.",
                ("status",),
                self._refused,
            ),
        ]
        health = await hub.health(hub.surface_for(""))
        limiter = hub.limiter
        for name, about, value in (
            ("recalld_calls_in_flight", "Calls that are running.", hub.in_flight),
            ("recalld_connections", "Open stdio and socket connections.", len(hub.peers)),
            ("recalld_http_sessions", "Legacy HTTP sessions in memory.", len(self._sessions)),
            ("recalld_sessions", "Sessions on record.", health.sessions.total),
            (
                "recalld_limiter_requests",
                "Requests in the limiter's window.",
                limiter.current(),
            ),
            (
                "recalld_limiter_limit",
                "Requests a minute a session; 0 is no limit.",
                limiter.limit,
            ),
            ("recalld_resident_bytes", "Resident memory.", memory_use().rss),
            ("recalld_uptime_seconds", "Seconds since the start.", health.uptime),
            ("recalld_healthy", "1 when nothing is degraded.", health.status == "healthy"),
            *hub.gauges(),
        ):
            lines.extend(gauge(name, about, float(value)))
        lines.extend(gauge("recalld_info", "The version that runs.", 1, version=hub.version))
        body = "\n".join(lines).encode() + b"\n"
        await reply(send, 200, body, [(b"content-type", CONTENT_TYPE.encode())])
