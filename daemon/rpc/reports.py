"""Reports on the daemon: health and status, for MCP, HTTP, the REST API and `recalld status`."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from msgspec import UNSET

from daemon.api.administration.system import (
    CallCounts,
    ClientView,
    HealthProblem,
    HealthReport,
    Latency,
    SearchLatency,
    SlowCallView,
)
from daemon.config import Settings
from daemon.operations.activity import Activity, percentile
from daemon.operations.health import Health, LimiterState, SessionCounts, memory_use
from daemon.operations.remedies import remedy_for
from daemon.rpc.connections import Connections
from daemon.rpc.gate import Gate
from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.surface import Surface
from daemon.tools.toolkit import iso
from daemon.version import VERSION
from store.model import EngineHealth

#: The items without a vector, by bank.
PendingVectors = Callable[[], Awaitable[Mapping[str, int]]]


async def nothing_pending() -> Mapping[str, int]:
    return {}


class HealthReporter:
    """The health of this process: engine, sessions, limiter, memory."""

    def __init__(
        self,
        *,
        engine: Callable[[], EngineHealth],
        sessions: SessionKeeper,
        limiter: Limiter,
        connections: Connections,
        clock: Clock,
        pending: PendingVectors = nothing_pending,
    ) -> None:
        self._engine = engine
        self._pending = pending
        self._sessions = sessions
        self._limiter = limiter
        self._connections = connections
        self._clock = clock
        self._started = clock()
        self._checks: list[Callable[[], str]] = []

    def add_check(self, check: Callable[[], str]) -> None:
        """Register a function that returns a problem, or an empty string while there is none."""
        self._checks.append(check)

    async def report(self, surface: Surface) -> Health:
        """Measure everything now."""
        degraded = await self.degraded()
        total = await self._sessions.total()
        engine = self._engine()
        trouble = self._sessions.trouble
        pending = sum((await self._pending()).values())
        return Health(
            status="degraded" if degraded or not engine.is_ready else "healthy",
            version=VERSION,
            uptime=self.uptime,
            memory=memory_use(),
            sessions=SessionCounts(total=total, active=self._connections.active_sessions()),
            tools_registered=len(surface.tools),
            database="connected" if engine.is_ready and not trouble else "error",
            rate_limiter=LimiterState(
                requests_per_minute=self._limiter.limit, current_requests=self._limiter.current()
            ),
            degraded=degraded or UNSET,
            pending_vectors=pending or UNSET,
        )

    async def degraded(self) -> list[str]:
        """The names of everything that is degraded now."""
        if self._sessions.trouble:
            await self._sessions.flush()  # the problem may be over; saving again is the test
        problems = [
            self._sessions.trouble,
            *(check() for check in self._checks),
            *self._engine().degraded,
        ]
        return [problem for problem in problems if problem]

    @property
    def uptime(self) -> int:
        """Seconds since the start."""
        return int(self._clock() - self._started)

    def engine_gauges(self) -> list[tuple[str, str, float]]:
        """The engine's metrics: (name, help, value)."""
        engine = self._engine()
        return [
            ("recalld_banks", "Number of banks.", engine.banks),
            ("recalld_open_banks", "Number of open banks.", engine.open_banks),
            ("recalld_engine_ready", "1 if the engine is ready.", engine.is_ready),
            (
                "recalld_engine_degradations",
                "Degraded parts of the engine (index, embedder, files).",
                len(engine.degraded),
            ),
        ]


class StatusReporter:
    """The report that `recalld status` prints."""

    def __init__(
        self,
        settings: Settings,
        *,
        gate: Gate,
        sessions: SessionKeeper,
        connections: Connections,
        clock: Clock,
        pending: PendingVectors = nothing_pending,
    ) -> None:
        self._pending = pending
        #: Whether a client started this daemon, so that it ends when it is idle.
        self.is_spawned = False
        #: The base URL of HTTP while it is open.
        self.http: str | None = None
        #: The clients over HTTP.
        self.http_clients: Callable[[], list[dict[str, Any]]] = list
        self._settings = settings
        self._gate = gate
        self._sessions = sessions
        self._connections = connections
        self._clock = clock
        self._started = clock()

    async def report(self) -> dict[str, Any]:
        """The connection and the call that ask for the report are not counted."""
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "uptime": int(self._clock() - self._started),
            "connections": len(self._connections) - 1,
            "inFlight": self._gate.in_flight - 1,
            "sessions": {
                "total": await self._sessions.total(),
                "active": self._connections.active_sessions(),
            },
            "socket": str(self._settings.socket),
            "http": self.http,
            "data": str(self._settings.directories.data),
            "config": str(self._settings.directories.config),
            "log": str(self._settings.log_file) if self.is_spawned else None,
            "spawned": self.is_spawned,
            "pendingVectors": sum((await self._pending()).values()),
            "clients": [
                client
                for client in (each.describe() for each in self._connections)
                if client is not None
            ]
            # A caller without a handshake and without a call is not attached.
            + [each for each in self.http_clients() if each["session"] or each["version"]],
        }


#: The clients of a transport, as `Connected.describe` describes them.
ClientLister = Callable[[], Iterable[dict[str, Any]]]


class DaemonMonitor:
    """Health, recent calls and clients for the REST API; implements `Monitor` there."""

    def __init__(
        self,
        *,
        engine: Callable[[], EngineHealth],
        reporter: HealthReporter,
        gate: Gate,
        activity: Activity,
        connections: Connections,
        sessions: SessionKeeper,
        pending: PendingVectors,
    ) -> None:
        self._engine = engine
        self._reporter = reporter
        self._gate = gate
        self._activity = activity
        self._sessions = sessions
        self._pending = pending
        self._listers: list[ClientLister] = [
            lambda: [each for each in (peer.describe() for peer in connections) if each]
        ]

    def add_clients(self, lister: ClientLister) -> None:
        """Register the clients of another transport."""
        self._listers.append(lister)

    async def health(self, *, for_owner: bool) -> HealthReport:
        degraded = await self._reporter.degraded()
        engine = self._engine()
        status = "degraded" if degraded or not engine.is_ready else "healthy"
        if not for_owner:
            return HealthReport(status=status, version=VERSION)
        activity = self._activity
        times = [each.milliseconds for each in activity.searches]
        return HealthReport(
            status=status,
            version=VERSION,
            uptime_seconds=self._reporter.uptime,
            rss_bytes=memory_use().rss,
            engine="sqlite" if engine.storage.startswith("sqlite") else "postgres",
            model=engine.embedder,
            banks=engine.banks,
            pending_vectors=sum((await self._pending()).values()),
            problems=[
                HealthProblem(text=text, remedy=remedy)
                for text, remedy in map(remedy_for, degraded)
            ],
            calls=CallCounts(
                per_minute=activity.per_minute(),
                total=activity.total,
                in_flight=max(0, self._gate.in_flight - 1),  # not the call that asks
            ),
            search_latency_ms=SearchLatency(
                p50=percentile(times, 0.5),
                p95=percentile(times, 0.95),
                recent=[
                    Latency(at=iso(each.at), ms=each.milliseconds) for each in activity.searches
                ],
            ),
            slow_calls=[
                SlowCallView(
                    at=iso(each.at),
                    name=each.name,
                    milliseconds=each.milliseconds,
                    length=each.length,
                )
                for each in reversed(activity.slow)
            ],
        )

    async def clients(self) -> list[ClientView]:
        found = [client for lister in self._listers for client in lister()]
        return [await self._client(each) for each in found]

    async def _client(self, described: dict[str, Any]) -> ClientView:
        session = described["session"]
        stored = None if session is None else await self._sessions.get(session)
        return ClientView(
            name=described["client"],
            version=described["version"],
            transport=described["transport"],
            bank=described["bank"],
            dialects=described["dialects"],
            session=session,
            connected_at=None if stored is None else iso(stored.created_at),
            calls=0 if stored is None else stored.calls,
        )
