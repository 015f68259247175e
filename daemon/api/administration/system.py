"""The state of the daemon: health, recent calls and connected clients."""

from functools import partial
from typing import Final, Protocol

from msgspec import UNSET, Struct, UnsetType

from daemon.api.operation import Operation, operation
from daemon.tools.context import Context
from daemon.tools.specification import NoArguments

TAG: Final = "system"


class HealthProblem(Struct, frozen=True, kw_only=True):
    """Something that is degraded, and the remedy."""

    text: str
    remedy: str


class CallCounts(Struct, frozen=True, kw_only=True):
    """Calls of all clients. `per_minute` has 60 counts, oldest first; the last is this minute."""

    per_minute: list[int]
    total: int
    in_flight: int


class Latency(Struct, frozen=True, kw_only=True):
    """The duration of one search."""

    at: str
    ms: float


class SearchLatency(Struct, frozen=True, kw_only=True):
    """The durations of the last searches, oldest first, and two percentiles of them."""

    p50: float | None
    p95: float | None
    recent: list[Latency]


class SlowCallView(Struct, frozen=True, kw_only=True):
    """A slow call. `length` is the size of its arguments in bytes; no content is recorded."""

    at: str
    name: str
    milliseconds: float
    length: int


class HealthReport(Struct, frozen=True, kw_only=True):
    """The health of the daemon. Callers other than the owner get the first two members only."""

    status: str
    version: str
    uptime_seconds: int | UnsetType = UNSET
    rss_bytes: int | UnsetType = UNSET
    engine: str | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    banks: int | UnsetType = UNSET
    pending_vectors: int | UnsetType = UNSET
    problems: list[HealthProblem] | UnsetType = UNSET
    calls: CallCounts | UnsetType = UNSET
    search_latency_ms: SearchLatency | UnsetType = UNSET
    slow_calls: list[SlowCallView] | UnsetType = UNSET


class ClientView(Struct, frozen=True, kw_only=True):
    """A connected client. A client over HTTP is connected while its session is in memory."""

    name: str | None
    version: str | None
    transport: str
    bank: str
    dialects: str
    session: str | None
    connected_at: str | None
    calls: int


class Clients(Struct, frozen=True, kw_only=True):
    clients: list[ClientView]


class Monitor(Protocol):
    """The measurements of a daemon; `daemon.rpc.reports` implements it."""

    async def health(self, *, for_owner: bool) -> HealthReport: ...
    async def clients(self) -> list[ClientView]: ...


async def get_health(monitor: Monitor, _arguments: NoArguments, context: Context) -> HealthReport:
    """The health of the daemon, with problems, remedies and recent calls for the owner."""
    return await monitor.health(for_owner=context.principal.is_owner)


async def list_clients(monitor: Monitor, _arguments: NoArguments, _context: Context) -> Clients:
    """The clients that are connected now."""
    return Clients(clients=await monitor.clients())


def operations(monitor: Monitor) -> list[Operation]:
    add = partial(operation, service=monitor, tag=TAG)
    return [
        add("GET", "/health", get_health),
        add("GET", "/clients", list_clients, for_owner=True),
    ]
