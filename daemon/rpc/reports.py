"""Health and status reports: `health/check`, `/health/ready`, `/metrics` and `recalld status`."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import UNSET

from daemon.config import Settings
from daemon.operations.health import Health, LimiterState, SessionCounts, memory_use
from daemon.rpc.connections import Connections
from daemon.rpc.gate import Gate
from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.surface import Surface
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
            ],
        }
