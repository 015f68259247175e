"""What all peers of one daemon share: the services, the counters, and when to leave."""

import asyncio
import os
from collections.abc import Callable, Iterable
from typing import Any

import anyio
from anyio.abc import TaskGroup
from msgspec import UNSET

from daemon.config import Settings
from daemon.memory.bank_administration import Caretaker
from daemon.operations.health import Health, LimiterState, SessionCounts, memory_use
from daemon.operations.metrics import Meter
from daemon.operations.tracing import Tracer
from daemon.rpc.dispatcher import Dispatcher
from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.methods import METHODS
from daemon.rpc.peer import Peer
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.subscriptions import Changes
from daemon.tools.surface import Surface
from daemon.version import VERSION
from protocol.mcp import ServerInfo
from protocol.shape import Shaper
from store.model import EngineHealth

SERVER: ServerInfo = ServerInfo(
    name="recalld",
    version=VERSION,
    title="recalld",
    description="Memory for AI agents, local and offline",
)


class Hub:
    """The services of one process; made by `daemon.app`, handed to every peer."""

    def __init__(
        self,
        settings: Settings,
        *,
        tasks: TaskGroup,
        sessions: SessionKeeper,
        surfaces: Callable[[str, bool], Surface],
        engine: Callable[[], EngineHealth],
        care: Caretaker | None = None,
        tracer: Tracer | None = None,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.tasks = tasks
        self.sessions = sessions
        self.version = VERSION
        self.pid = os.getpid()
        self.shaper = Shaper(SERVER)
        self.limiter = Limiter(limit=settings.requests_per_minute, clock=clock)
        self.changes = Changes()
        #: Who does the verbs of `recalld bank`; nobody where there is no engine to do them to.
        self.care = care
        self.dispatcher = Dispatcher(
            METHODS,
            limit=settings.requests_per_minute,
            clock=clock,
            verbose=settings.log_level == "debug",
            tracer=tracer,
        )
        #: Filled in where somebody can ask for it (HTTP); see `Dispatcher.meter`.
        self.meter = Meter()
        self.methods = frozenset(METHODS)
        self.clock = clock
        self.peers: set[Peer] = set()
        #: Who says which windows of the limiter somebody holds.
        self.holders: list[Callable[[], Iterable[str]]] = [self._peer_keys]
        self.in_flight = 0
        #: Where HTTP is open, if it is.
        self.http: str | None = None
        #: Why nobody gets in over HTTP, if that is so.
        self.http_trouble = ""
        self.leaving = anyio.Event()
        self.stopping = anyio.Event()
        self.idle_since = clock()
        self._clock = clock
        self._started = clock()
        self._surfaces = surfaces
        self._engine = engine
        self._change: anyio.Event | None = None
        self._loop = asyncio.get_running_loop()

    def surface_for(self, dialects: str, *, fixtures: bool = False) -> Surface:
        """What a connection asking for these dialects sees; LookupError names a wrong one."""
        return self._surfaces(dialects or self.settings.dialects, fixtures)

    def soon(self, callback: Callable[[], None]) -> None:
        """Call back in the loop's next turn."""
        self._loop.call_soon(callback)

    def join(self, peer: Peer) -> None:
        self.peers.add(peer)

    def leave(self, peer: Peer) -> None:
        self.peers.discard(peer)
        self.idle_since = self._clock()
        self.prune()
        self._changed()

    def prune(self) -> None:
        """Forget the limiter's windows that are empty and that nobody holds."""
        self.limiter.prune({key for holder in self.holders for key in holder()})

    def _peer_keys(self) -> list[str]:
        return [peer.session_id or peer.name for peer in self.peers]

    def begin(self) -> None:
        """A call started that somebody waits for."""
        self.in_flight += 1
        self._changed()

    def finish(self) -> None:
        """A call ended, in whatever way."""
        self.in_flight -= 1
        self._changed()

    async def until(self, claim: Callable[[], bool]) -> None:
        """Wait until a claim about our peers and calls is true."""
        while not claim():
            self._change = anyio.Event()
            await self._change.wait()

    def _changed(self) -> None:
        if self._change is not None:
            self._change.set()

    def depart(self) -> None:
        """We are leaving: whoever listens for changes is told that it is over."""
        self.leaving.set()
        for peer in self.peers:
            peer.leaving.set()

    def stop(self) -> None:
        """Ask the process to leave: in an orderly way, soon."""
        self.stopping.set()

    async def health(self, surface: Surface) -> Health:
        """Seed 003's health/check, with true numbers."""
        if self.sessions.trouble:
            await self.sessions.flush()  # it may be over, and nobody has tried since
        total = await self.sessions.total()
        engine = self._engine()
        trouble = self.sessions.trouble
        ours = [reason for reason in (trouble, self.http_trouble) if reason]
        degraded = [*ours, *engine.degraded]
        return Health(
            status="degraded" if degraded or not engine.is_ready else "healthy",
            version=self.version,
            uptime=int(self._clock() - self._started),
            memory=memory_use(),
            sessions=SessionCounts(total=total, active=self._active()),
            tools_registered=len(surface.tools),
            database="connected" if engine.is_ready and not trouble else "error",
            rate_limiter=LimiterState(
                requests_per_minute=self.limiter.limit, current_requests=self.limiter.current()
            ),
            degraded=degraded or UNSET,
        )

    def gauges(self) -> list[tuple[str, str, float]]:
        """What the engine adds to the metrics: (name, help, value)."""
        engine = self._engine()
        return [
            ("recalld_banks", "Banks on record.", engine.banks),
            ("recalld_open_banks", "Banks that are open.", engine.open_banks),
            ("recalld_engine_ready", "1 when the engine works.", engine.is_ready),
            (
                "recalld_engine_degradations",
                "Parts of the engine (index, embedder, files) that work less well.",
                len(engine.degraded),
            ),
        ]

    async def status(self, *, besides: int = 0) -> dict[str, Any]:
        """What `recalld status` prints; `besides` who asks, on a connection and by a call."""
        return {
            "version": self.version,
            "pid": self.pid,
            "uptime": int(self._clock() - self._started),
            "connections": len(self.peers) - besides,
            "inFlight": self.in_flight - besides,
            "sessions": {"total": await self.sessions.total(), "active": self._active()},
            "socket": str(self.settings.socket),
            "http": self.http,
            "data": str(self.settings.directories.data),
        }

    def _active(self) -> int:
        return len({peer.session_id for peer in self.peers if peer.session_id is not None})
