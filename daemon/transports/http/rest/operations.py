"""Health, readiness and metrics: the endpoints for operators.

Everyone may see whether the daemon is healthy; only the owner sees details. Liveness is about the
process, readiness about its work: a daemon whose catalogue cannot be written is alive but not
ready.
"""

from typing import Final

import anyio
import msgspec

from daemon.operations.health import memory_use
from daemon.operations.metrics import CONTENT_TYPE, Meter, counter, gauge
from daemon.rpc.connections import Connections
from daemon.rpc.gate import Gate
from daemon.rpc.limiter import Limiter
from daemon.rpc.reports import HealthReporter
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import Receive, Refusal, Scope, Send, reply
from daemon.transports.http.mcp.sessions import HttpSessions
from daemon.version import VERSION

_OK: Final = b'{"status":"ok"}'


class Operations:
    """The endpoints; all of them are GET. `rejected` counts connections rejected by status."""

    def __init__(
        self,
        *,
        gate: Gate,
        health: HealthReporter,
        surface: Surface,
        meter: Meter,
        limiter: Limiter,
        connections: Connections,
        sessions: HttpSessions,
        leaving: anyio.Event,
        rejected: dict[tuple[str, ...], int],
    ) -> None:
        self._gate = gate
        self._health = health
        self._surface = surface
        self._meter = meter
        self._limiter = limiter
        self._connections = connections
        self._sessions = sessions
        self._leaving = leaving
        self._rejected = rejected

    async def health(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: AccessRecord
    ) -> None:
        """`{"status": "ok"}`, as Context Harness defines it."""
        await reply(send, 200, _OK)

    async def live(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: AccessRecord
    ) -> None:
        await reply(send, 200, _OK)

    async def ready(
        self,
        _scope: Scope,
        _receive: Receive,
        send: Send,
        principal: Principal,
        _access: AccessRecord,
    ) -> None:
        """200 if the daemon can do its work, else 503; the owner gets the reasons."""
        health = await self._health.report(self._surface)
        is_ready = health.database == "connected" and not self._leaving.is_set()
        body: dict[str, object] = {"status": "ok" if is_ready else "unavailable"}
        if principal.is_owner:
            body["health"] = health
        await reply(send, 200 if is_ready else 503, msgspec.json.encode(body))

    async def metrics(
        self,
        _scope: Scope,
        _receive: Receive,
        send: Send,
        principal: Principal,
        _access: AccessRecord,
    ) -> None:
        """All metrics in the Prometheus text format."""
        if not principal.is_owner:
            raise Refusal(403, "metrics are for the owner")
        lines = [
            *self._meter.lines(),
            *counter(
                "recalld_http_refused_total",
                "Connections rejected before they sent a complete request, by status.",
                ("status",),
                self._rejected,
            ),
        ]
        for name, about, value in await self._gauges():
            lines.extend(gauge(name, about, float(value)))
        lines.extend(gauge("recalld_info", "The running version.", 1, version=VERSION))
        body = "\n".join(lines).encode() + b"\n"
        await reply(send, 200, body, [(b"content-type", CONTENT_TYPE.encode())])

    async def _gauges(self) -> list[tuple[str, str, float]]:
        health = await self._health.report(self._surface)
        return [
            ("recalld_calls_in_flight", "Running calls.", self._gate.in_flight),
            (
                "recalld_connections",
                "Open stdio and socket connections.",
                len(self._connections),
            ),
            ("recalld_http_sessions", "Legacy HTTP sessions in memory.", len(self._sessions)),
            ("recalld_sessions", "Stored sessions.", health.sessions.total),
            (
                "recalld_limiter_requests",
                "Requests in the rate limiter's windows.",
                self._limiter.current(),
            ),
            (
                "recalld_limiter_limit",
                "Requests a minute per session; 0 means no limit.",
                self._limiter.limit,
            ),
            ("recalld_resident_bytes", "Resident memory.", memory_use().rss),
            ("recalld_uptime_seconds", "Seconds since the start.", health.uptime),
            ("recalld_healthy", "1 if nothing is degraded.", health.status == "healthy"),
            *self._health.engine_gauges(),
        ]
