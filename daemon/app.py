"""Composition: creates all parts of the daemon in order, and shuts them down in order.

    lock ─► engine ─► services ─► transports ─► … ─► no new work ─► last answers ─► engine closed

Everything that varies (clock, settings, surfaces) is passed down from here as an argument.
"""

import asyncio
import gc
import os
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from daemon.api.registry import build as build_api
from daemon.config import Embedding, Settings
from daemon.config.scripts import Scripts
from daemon.dialect_names import chosen
from daemon.exit_codes import CANNOT_CREATE, CONFIG, OK, Exit
from daemon.lifetime import (
    handle_signals,
    ignore_signals,
    stop_when_idle,
    stop_when_orphaned,
    stop_when_unreachable,
)
from daemon.memory.bank_administration import AnyVerb, Caretaker, refused
from daemon.memory.verbs import Done
from daemon.operations import directories, logs, read_buffers
from daemon.operations.descriptors import Descriptors
from daemon.operations.file_limit import LoopErrors, connections_within, raise_limit
from daemon.operations.locks import owned
from daemon.operations.tracing import activate, find_opentelemetry
from daemon.rpc.gate import Gate
from daemon.rpc.limiter import Limiter
from daemon.rpc.peer import DEFAULT_BANK
from daemon.rpc.services import Services, make_gate, make_services
from daemon.rpc.sessions import SessionKeeper
from daemon.rpc.shutdown import Shutdown
from daemon.setup import overview as clients
from daemon.sources import administration as source_verbs
from daemon.sources.connectors.connector import Connector
from daemon.sources.connectors.factories import Connectors
from daemon.sources.definition import Definition
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.reporting import SourceProgress, followed
from daemon.sources.sync.watch import Watcher
from daemon.storage import open_storage
from daemon.surfaces import DialectSurfaces, call_once, make_toolkit, open_offered
from daemon.transports import unix
from daemon.transports.stdio import StdioWire
from daemon.version import VERSION
from store.clock import wall_clock
from store.embedding.embedder import Embedder
from store.embedding.endpoint import EndpointSettings
from store.embedding.selection import EmbeddingSettings, choose_embedder
from store.engine import Engine, Progress
from store.errors import EmbedderFailed, InvalidInput, StoreError
from store.validate import bank_name

if TYPE_CHECKING:
    from daemon.lua.offering import OfferedScripts
    from daemon.transports.http.server import Bound, HttpServer

DRAIN_SECONDS: Final = 1.2
CLOSE_SECONDS: Final = 0.3
HOUSEKEEPING_SECONDS: Final = 30.0

log: Final = structlog.get_logger()


class Opened(NamedTuple):
    engine: Engine
    sessions: SessionKeeper
    sources: Sources


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Opened]:
    """Open the engine and its sessions; both are closed in order when the block ends."""
    embedder = _embedder(settings.embedding)
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(
            open_storage(settings.directories.data, settings.storage, embedder)
        )
        sessions = SessionKeeper(
            engine.sessions,
            idle_days=settings.session_idle_days,
            keep=settings.sessions_keep,
            resume_seconds=settings.session_resume_seconds,
        )
        try:
            # These objects live as long as the process; the garbage collector need not visit them.
            gc.freeze()
            yield Opened(engine, sessions, await _open_sources(settings, engine))
        finally:
            with anyio.CancelScope(shield=True):
                await sessions.flush()


class _LateScripts:
    """The connectors of kind `script`; most users have none, so they are imported late."""

    def __init__(self, settings: Scripts) -> None:
        self._settings = settings

    async def __call__(self, definition: Definition) -> Connector:
        from daemon.lua.connector import script_connectors

        return await script_connectors(self._settings)(definition)


async def _open_sources(settings: Settings, engine: Engine) -> Sources:
    """The configured document sources; no run is started here."""
    sources = Sources(
        engine,
        Connectors(
            settings.directories.data / "sources",
            {"script": _LateScripts(settings.scripts)},
        ),
        from_file=settings.sources,
        config=settings.directories.config,
        default_bank=settings.bank or DEFAULT_BANK,
        now=wall_clock,
    )
    await sources.load()
    return sources


def _embedder(chosen: Embedding) -> Embedder:
    """The configured embedder; its model is not loaded yet."""
    endpoint = None
    if chosen.url:
        endpoint = EndpointSettings(
            url=chosen.url, model=chosen.model, dims=chosen.dims, key=chosen.key or None
        )
    file = Path(chosen.file).expanduser().absolute() if chosen.file else None
    try:
        return choose_embedder(
            EmbeddingSettings(endpoint=endpoint, model_path=file, hashed=chosen.hashed)
        )
    except EmbedderFailed as failure:
        where = f"embedding.file {chosen.file}" if chosen.file else "embedding"
        raise Exit(CONFIG, f"{where}: {failure}") from None


def _make_services(
    settings: Settings, tasks: TaskGroup, store: Opened, scripts: "OfferedScripts | None"
) -> Services:
    toolkit = make_toolkit(settings, store.engine, store.sources)
    surfaces = DialectSurfaces(settings, toolkit, scripts)
    gate = make_gate(settings, time.monotonic)
    telemetry = find_opentelemetry()
    if telemetry is not None:
        tasks.start_soon(activate, telemetry, gate.trace)
    services = make_services(
        settings,
        tasks=tasks,
        clock=time.monotonic,
        gate=gate,
        sessions=store.sessions,
        surfaces=surfaces,
        engine=store.engine.health,
        caretaker=Caretaker(store.engine),
        sources=store.sources,
        api=build_api(toolkit, clients.operations(clients.Overview(settings.directories.state))),
        pending=store.engine.pending_vectors,
    )
    if scripts is not None:

        def announce() -> None:
            for surface in surfaces.made:
                services.subscriptions.announce(surface, "tools")
                services.subscriptions.announce(surface, "prompts")

        tasks.start_soon(scripts.watch, announce)
    return services


def _prepare(settings: Settings) -> None:
    """Check everything that can be checked before anything is opened."""
    read_buffers.keep_on_heap()
    logs.configure(settings.log_level)
    try:
        chosen(settings.dialects)
        bank_name(settings.bank or DEFAULT_BANK)
    except LookupError as error:
        raise Exit(CONFIG, str(error.args[0])) from None
    except InvalidInput as error:
        raise Exit(CONFIG, f"--bank: {error.rule}") from None
    for directory in (settings.directories.data, settings.directories.state):
        directories.keep_private(directory)


async def serve(
    settings: Settings,
    *,
    is_spawned: bool,
    ready: int | None,
    http: bool = True,
    start_lock: int | None = None,
) -> int:
    """`recalld serve`: listen on the unix socket and over HTTP until asked to stop.

    `start_lock` is the lock of a takeover, held until this daemon listens.
    """
    passed = unix.passed_socket(os.environ)
    if passed is None:
        unix.check_length(settings.socket)
    _prepare(settings)
    settings.connections = connections_within(raise_limit(), settings.connections)
    asyncio.get_running_loop().set_exception_handler(LoopErrors())
    with owned(settings.lock, "recalld serve"):
        listener = passed or unix.bind(settings.socket, is_ours=settings.is_socket_private)
        inode = 0 if passed else settings.socket.lstat().st_ino
        try:
            bound = _bind_http(settings) if http else None
            async with (
                opened(settings) as store,
                open_offered(settings, store.engine, store.sources) as scripts,
                anyio.create_task_group() as tasks,
            ):
                services = _make_services(settings, tasks, store, scripts)
                shutdown = services.shutdown
                services.status.is_spawned = is_spawned
                handle_signals(shutdown)
                # HTTP first, so that `recalld status` over the socket can report its address.
                web = await _open_http(services, bound) if bound is not None else None
                server = await unix.listen(services.for_peers, listener)
                log.info("daemon.ready", pid=os.getpid(), version=VERSION)
                _report_ready(ready)
                if start_lock is not None:
                    os.close(start_lock)
                tasks.start_soon(_housekeeping, services.sessions, services.limiter)
                Watcher(store.sources, tasks).start()
                if is_spawned:
                    files = (settings.socket, settings.lock)
                    tasks.start_soon(stop_when_unreachable, shutdown, files)
                if is_spawned and web is None:
                    tasks.start_soon(
                        stop_when_idle,
                        services.connections,
                        lambda: store.sources.is_busy or services.calls_as_tasks.is_busy,
                        shutdown,
                        settings.idle_seconds,
                    )
                await shutdown.stopping.wait()
                await _drain(services, server, web)
                tasks.cancel_scope.cancel()
        finally:
            listener.close()
            if inode:
                unix.remove(settings.socket, inode)
    ignore_signals()
    log.info("daemon.stopped")
    logs.flush()
    return OK


def _bind_http(settings: Settings) -> "Bound":
    """Bind the HTTP port; errors are reported before anything else is opened."""
    from daemon.transports.http.server import Bound  # a daemon without HTTP never imports it

    return Bound(settings)


async def _open_http(services: Services, bound: "Bound") -> "HttpServer":
    from daemon.transports.http.server import HttpServer

    server = HttpServer(services, bound)
    await server.open()
    return server


async def serve_stdio(settings: Settings, descriptors: Descriptors) -> int:
    """`recalld stdio --embedded`: the engine in the client's own child process."""
    parent = os.getppid()  # read first: the client may exit as soon as it has an answer
    _prepare(settings)
    # A client may start a second process before the first one has ended, so wait for the lock.
    with owned(settings.lock, "recalld stdio --embedded", settings.start_seconds):
        async with (
            opened(settings) as store,
            open_offered(settings, store.engine, store.sources) as scripts,
            anyio.create_task_group() as tasks,
        ):
            services = _make_services(settings, tasks, store, scripts)
            shutdown = services.shutdown
            handle_signals(shutdown)
            wire = StdioWire(services.for_peers)
            await wire.open(descriptors)
            tasks.start_soon(_housekeeping, services.sessions, services.limiter)
            tasks.start_soon(_until_input_ends, wire, shutdown)
            tasks.start_soon(stop_when_orphaned, shutdown, parent)
            await shutdown.stopping.wait()
            shutdown.depart()
            await _until_quiet(services.gate)
            await wire.shut()
            tasks.cancel_scope.cancel()
    ignore_signals()
    logs.flush()
    return OK


async def tend_bank(settings: Settings, asked: Mapping[str, Any], progress: Progress) -> Done:
    """`recalld bank` without a daemon: one verb, under the lock of the data directory."""
    verb = msgspec.convert(asked, AnyVerb)
    settings.log_level = "error"  # the command reports on stdout
    _prepare(settings)
    with owned(settings.lock, f"recalld bank {verb.name}"):
        async with opened(settings) as store:
            try:
                return await Caretaker(store.engine).perform(verb, progress)
            except StoreError as failure:
                raise refused(failure, verb) from failure


async def tend_source(
    settings: Settings, asked: Mapping[str, Any], progress: SourceProgress
) -> Done:
    """`recalld source` without a daemon: one verb, under the lock of the data directory."""
    verb = msgspec.convert(asked, source_verbs.AnyVerb)
    settings.log_level = "error"  # the command reports on stdout
    _prepare(settings)
    with owned(settings.lock, f"recalld source {asked['verb']}"):
        async with opened(settings) as store:
            try:
                async with followed(progress) as following:
                    return await source_verbs.perform(verb, store.sources, following)
            except StoreError as failure:
                raise Exit(CANNOT_CREATE, str(failure)) from failure


async def call_tool(settings: Settings, name: str, arguments: Mapping[str, Any]) -> Done:
    """`recalld ctx` without a daemon: one call of a Context Harness tool, as the owner."""
    settings.log_level = "error"
    _prepare(settings)
    with owned(settings.lock, f"recalld ctx {name}"):
        async with opened(settings) as store:
            toolkit = make_toolkit(settings, store.engine, store.sources)
            return await call_once(toolkit, name, arguments, settings.bank or DEFAULT_BANK)


async def _until_input_ends(wire: StdioWire, shutdown: Shutdown) -> None:
    await wire.serve()
    shutdown.stop()


async def _housekeeping(sessions: SessionKeeper, limiter: Limiter) -> None:
    while True:
        await anyio.sleep(HOUSEKEEPING_SECONDS)
        await sessions.flush()
        limiter.prune()


async def _drain(services: Services, server: asyncio.Server, web: "HttpServer | None") -> None:
    """Accept no new connections, send the answers under way, then close every connection."""
    server.close()
    if web is not None:
        web.refuse_new()
    services.shutdown.depart()
    await _until_quiet(services.gate)
    if web is not None:
        await web.close()
    connections = services.connections
    for connection in connections:
        connection.dismiss()
    with anyio.move_on_after(CLOSE_SECONDS):
        await connections.until(lambda: not len(connections))


async def _until_quiet(gate: Gate) -> None:
    with anyio.move_on_after(DRAIN_SECONDS):
        await gate.until(lambda: not gate.in_flight)


def _report_ready(ready: int | None) -> None:
    """Tell the process that started this one that the socket is open."""
    if ready is not None:
        os.write(ready, b"ready\n")
        os.close(ready)
