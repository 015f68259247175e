"""The state of the daemon for `/api/v1/health` and `/api/v1/clients`."""

from collections.abc import Callable, Iterable
from typing import Any

from daemon.api.administration.system import (
    CallCounts,
    ClientView,
    HealthProblem,
    HealthReport,
    Latency,
    SearchLatency,
    SlowCallView,
)
from daemon.operations.activity import Activity, percentile
from daemon.operations.health import memory_use
from daemon.operations.remedies import remedy_for
from daemon.rpc.connections import Connections
from daemon.rpc.gate import Gate
from daemon.rpc.reports import HealthReporter, PendingVectors
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.toolkit import iso
from daemon.version import VERSION
from store.model import EngineHealth

#: The clients of a transport, as `Connected.describe` describes them.
ClientLister = Callable[[], Iterable[dict[str, Any]]]


class DaemonMonitor:
    """Implements `daemon.api.administration.system.Monitor`."""

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
            engine="sqlite" if engine.sqlite else "postgres",
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
