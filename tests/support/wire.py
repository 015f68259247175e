"""A peer on an in-memory wire: bytes in, frames out, no transport."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec

from daemon.api.registry import ApiOperations
from daemon.config import Settings, load
from daemon.fixtures import surface as fixture_surface
from daemon.operations.tracing import Tracer
from daemon.rpc.gate import Gate
from daemon.rpc.methods.private import PRIVATE
from daemon.rpc.peer import Peer
from daemon.rpc.services import Services, make_gate, make_services
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.surface import Surface
from store.model import EngineHealth
from store.sqlite.catalogue import Catalogue


class MemoryWire:
    """Keeps the output of a peer; with a `capacity`, output is queued until `drain` is called."""

    def __init__(self, capacity: int | None = None) -> None:
        self.out = b""
        self.capacity = capacity
        self.backlog = b""
        self.is_paused = False
        self.is_closed = False
        self.peer: Peer | None = None
        self._wrote = anyio.Event()

    def write(self, data: bytes) -> None:
        if self.capacity is None:
            self.out += data
        else:
            self.backlog += data
        self._wrote.set()

    def unsent(self) -> int:
        return len(self.backlog)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def close(self) -> None:
        self.is_closed = True

    def drain(self) -> None:
        """The slow reader takes everything."""
        self.out += self.backlog
        self.backlog = b""
        self._wrote.set()
        assert self.peer is not None
        self.peer.resume()

    def frames(self) -> list[Any]:
        return [msgspec.json.decode(line) for line in self.out.splitlines()]

    async def wait_for(self, count: int) -> list[Any]:
        """The frames, once there are `count` of them."""
        with anyio.fail_after(5):
            while self.out.count(b"\n") < count:
                self._wrote = anyio.Event()
                await self._wrote.wait()
        return self.frames()


def settings_for(home: Path, **flags: Any) -> Settings:
    named = {key.replace("__", "."): value for key, value in flags.items()}
    return load(named, {"RECALLD_HOME": str(home)})


_WELL = EngineHealth(is_ready=True)


class OneSurface:
    """The same surface for all dialects."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface

    def __call__(self, dialects: str = "", *, fixtures: bool = False) -> Surface:
        return self._surface


@asynccontextmanager
async def running_services(
    home: Path,
    *,
    clock: Any = None,
    surface: Surface | None = None,
    api: ApiOperations | None = None,
    engine: EngineHealth = _WELL,
    tracer: Tracer | None = None,
    gate: Callable[[Gate], Gate] | None = None,
    **flags: Any,
) -> AsyncGenerator[Services]:
    """The services of a daemon with the fixture surface over a real catalogue.

    `gate` may replace the gate by one of its own.
    """
    settings = settings_for(home, **flags)
    catalogue = await Catalogue.open(home)
    served = surface or fixture_surface()
    try:
        async with anyio.create_task_group() as tasks:
            keeper = SessionKeeper(
                catalogue.sessions,
                idle_days=settings.session_idle_days,
                keep=settings.sessions_keep,
                resume_seconds=settings.session_resume_seconds,
            )
            timer = clock or anyio.current_time
            made = make_gate(settings, timer, tracer)
            yield make_services(
                settings,
                tasks=tasks,
                clock=timer,
                gate=gate(made) if gate is not None else made,
                sessions=keeper,
                surfaces=OneSurface(served),
                engine=lambda: engine,
                api=api,
            )
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await catalogue.close()


def join(
    services: Services, *, capacity: int | None = None, private: bool = False
) -> tuple[Peer, MemoryWire]:
    """A new peer on a memory wire."""
    wire = MemoryWire(capacity)
    offered = PRIVATE if private else frozenset[str]()
    peer = Peer(services.for_peers, wire, transport="memory", private=offered)
    wire.peer = peer
    return peer, wire


def request(id: Any, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return msgspec.json.encode(message) + b"\n"


def initialize(revision: str = "2025-11-25", **capabilities: Any) -> bytes:
    """The two lines that open a legacy connection; the answer has id 0."""
    opening = request(
        0,
        "initialize",
        protocolVersion=revision,
        capabilities=capabilities,
        clientInfo={"name": "test", "version": "1"},
    )
    return opening + b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def modern(id: Any, method: str, meta: dict[str, Any] | None = None, **params: Any) -> bytes:
    """A request of 2026-07-28."""
    described = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        **(meta or {}),
    }
    return request(id, method, _meta=described, **params)


def call(id: Any, tool: str, **arguments: Any) -> bytes:
    return request(id, "tools/call", name=tool, arguments=arguments)
