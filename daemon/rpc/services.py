"""The services of one process, created together.

Only the places that wire the daemon up use this record: `daemon.app`, the HTTP server and tests.
All other code takes the one or two services it needs (import contract "only wiring code sees all
services").
"""

from collections.abc import Callable, Mapping

from anyio.abc import TaskGroup
from msgspec import Struct

from daemon.api import preview
from daemon.api.administration import sources as source_operations
from daemon.api.administration import system
from daemon.api.administration.sources import SourceService
from daemon.api.events import EventHub
from daemon.api.operation import Operation
from daemon.api.registry import ApiOperations
from daemon.config import Settings
from daemon.memory.bank_administration import Caretaker
from daemon.operations.activity import Activity
from daemon.operations.metrics import Meter
from daemon.operations.tracing import Tracer
from daemon.rpc.caller import Surfaces
from daemon.rpc.connections import Connections
from daemon.rpc.gate import CallLimits, Gate, Method
from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.methods.handshake import HandshakeMethods
from daemon.rpc.methods.private import PrivateMethods
from daemon.rpc.methods.prompts import PromptMethods
from daemon.rpc.methods.resources import ResourceMethods
from daemon.rpc.methods.tasks import TaskMethods
from daemon.rpc.methods.tools import ToolMethods
from daemon.rpc.methods.utilities import UtilityMethods
from daemon.rpc.peer import PeerServices
from daemon.rpc.reports import (
    DaemonMonitor,
    HealthReporter,
    PendingVectors,
    StatusReporter,
    nothing_pending,
)
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.shutdown import Shutdown
from daemon.rpc.subscriptions import Subscriptions
from daemon.rpc.tasks.keeper import TaskKeeper
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.state import RunProgress
from daemon.tools.toolkit import iso
from daemon.version import VERSION
from protocol.mcp import ServerInfo
from protocol.shape import Shaper
from store.clock import wall_clock
from store.model import EngineHealth

SERVER: ServerInfo = ServerInfo(
    name="recalld",
    version=VERSION,
    title="recalld",
    description="Memory for AI agents, local and offline",
)


class Services(Struct, frozen=True, kw_only=True, eq=False):
    """The record; see `make_services`."""

    settings: Settings
    tasks: TaskGroup
    clock: Clock
    gate: Gate
    methods: Mapping[str, Method]
    surfaces: Surfaces
    sessions: SessionKeeper
    limiter: Limiter
    subscriptions: Subscriptions
    calls_as_tasks: TaskKeeper
    connections: Connections
    shutdown: Shutdown
    health: HealthReporter
    status: StatusReporter
    meter: Meter
    activity: Activity
    events: EventHub
    monitor: DaemonMonitor
    #: The operations of the REST API for memories.
    api: ApiOperations
    sources: Sources | None = None

    @property
    def for_peers(self) -> PeerServices:
        """The part that stdio and socket connections use."""
        return PeerServices(
            settings=self.settings,
            tasks=self.tasks,
            gate=self.gate,
            methods=self.methods,
            surfaces=self.surfaces,
            connections=self.connections,
            limiter=self.limiter,
            sessions=self.sessions,
            subscriptions=self.subscriptions,
        )


def make_gate(settings: Settings, clock: Clock, tracer: Tracer | None = None) -> Gate:
    """A gate with the configured limits."""
    limits = CallLimits(
        per_connection=settings.in_flight,
        total=settings.in_flight_total,
        seconds=settings.call_seconds,
        unsent_bytes=settings.unsent_bytes_total,
        wait_seconds=settings.wait_seconds,
    )
    return Gate(limits, clock=clock, verbose=settings.log_level == "debug", tracer=tracer)


def make_services(
    settings: Settings,
    *,
    tasks: TaskGroup,
    clock: Clock,
    gate: Gate,
    sessions: SessionKeeper,
    surfaces: Surfaces,
    engine: Callable[[], EngineHealth],
    caretaker: Caretaker | None = None,
    sources: Sources | None = None,
    api: ApiOperations | None = None,
    pending: PendingVectors = nothing_pending,
    now: Callable[[], int] = wall_clock,
) -> Services:
    """Create the services of one process; call it inside the event loop."""
    limiter = Limiter(limit=settings.requests_per_minute, clock=clock)
    connections = Connections(limiter, clock)
    gate.count_unsent(connections.unsent)
    gate.limit_principals(Limiter(limit=settings.principal_requests_per_minute, clock=clock))
    subscriptions = Subscriptions()
    events = EventHub(lambda: iso(now()))
    subscriptions.on_bank_changed = events.bank_changed
    if sources is not None:
        sources.on_change = subscriptions.bank_changed
    shutdown = Shutdown(connections)
    health = HealthReporter(
        engine=engine,
        sessions=sessions,
        limiter=limiter,
        connections=connections,
        clock=clock,
        pending=pending,
    )
    status = StatusReporter(
        settings,
        gate=gate,
        sessions=sessions,
        connections=connections,
        clock=clock,
        pending=pending,
    )
    activity = Activity(now)
    monitor = DaemonMonitor(
        engine=engine,
        reporter=health,
        gate=gate,
        activity=activity,
        connections=connections,
        sessions=sessions,
        pending=pending,
    )
    if api is None:
        api = ApiOperations(())
    api.add([*system.operations(monitor), *preview.operations(surfaces)])
    if sources is not None:
        api.add(_source_operations(sources, tasks, events))
    shaper = Shaper(SERVER)
    calls_as_tasks = TaskKeeper(
        tasks, wall_clock, lambda task: subscriptions.task_changed(task.id, task.detail())
    )
    private = PrivateMethods(
        status=status,
        shutdown=shutdown,
        subscriptions=subscriptions,
        caretaker=caretaker,
        sources=sources,
        data=str(settings.directories.data),
    )
    return Services(
        settings=settings,
        tasks=tasks,
        clock=clock,
        gate=gate,
        methods={
            **HandshakeMethods(shaper).table(),
            **UtilityMethods(shaper, subscriptions, health, calls_as_tasks).table(),
            **ToolMethods(shaper, subscriptions, calls_as_tasks).table(),
            **TaskMethods(shaper, calls_as_tasks).table(),
            **ResourceMethods(shaper, subscriptions).table(),
            **PromptMethods(shaper, subscriptions).table(),
            **private.table(),
        },
        surfaces=surfaces,
        sessions=sessions,
        limiter=limiter,
        subscriptions=subscriptions,
        calls_as_tasks=calls_as_tasks,
        connections=connections,
        shutdown=shutdown,
        health=health,
        status=status,
        meter=Meter(),
        activity=activity,
        events=events,
        monitor=monitor,
        sources=sources,
        api=api,
    )


def _source_operations(sources: Sources, tasks: TaskGroup, events: EventHub) -> list[Operation]:
    def follow(name: str, progress: RunProgress, is_running: bool) -> None:
        events.sync_went_on(
            name, progress.phase, progress.done, progress.total, is_running=is_running
        )

    return source_operations.operations(SourceService(sources, tasks, follow))
