"""The wiring: who is made, in what order, and how all of it ends.

    lock ─► engine ─► hub ─► transport ─► … ─► no new work ─► last answers ─► engine closed

Everything that varies (clock, settings, surfaces) is handed down from here; nothing below reaches
for it.
"""

import asyncio
import gc
import os
import signal
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio
import msgspec
import structlog
from anyio.abc import TaskGroup

from daemon.config import Embedding, Settings
from daemon.dialect_names import chosen
from daemon.dialects.registry import build
from daemon.exit_codes import CANNOT_CREATE, CONFIG, OK, Exit
from daemon.memory.bank_administration import AnyVerb, Caretaker, Done, refused
from daemon.memory.completion import MemoryCompletions
from daemon.memory.prompts import MemoryPrompts
from daemon.memory.resources import MemoryResources
from daemon.operations import directories, logs
from daemon.operations.descriptors import Descriptors
from daemon.operations.locks import owned
from daemon.operations.tracing import find_tracer
from daemon.rpc.hub import Hub
from daemon.rpc.peer import DEFAULT_BANK
from daemon.rpc.sessions import SessionKeeper
from daemon.tools.surface import Surface
from daemon.tools.toolkit import Toolkit
from daemon.transports import unix
from daemon.transports.stdio import StdioWire
from store.embedding.embedder import Embedder, EmbeddingSettings, EndpointSettings, choose_embedder
from store.engine import Engine, Progress
from store.errors import EmbedderFailed, InvalidInput, StoreError
from store.sqlite.catalogue import wall_clock
from store.sqlite.engine import open_engine
from store.sqlite.search.hybrid import HybridRanking
from store.validate import bank_name

if TYPE_CHECKING:
    from daemon.transports.http.server import Bound, HttpServer

DRAIN_SECONDS: Final = 1.2
CLOSE_SECONDS: Final = 0.3
HOUSEKEEPING_SECONDS: Final = 30.0
PARENT_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 2.0

log: Final = structlog.get_logger()


@cache
def _fixture_surface() -> Surface:
    from daemon.fixtures import surface  # test data: not even imported in ordinary use

    return surface()


class Surfaces:
    """Which surface a connection sees."""

    def __init__(self, settings: Settings, toolkit: Toolkit) -> None:
        self._settings = settings
        self._toolkit = toolkit
        self._made: dict[str, Surface] = {}

    def __call__(self, dialects: str, fixtures: bool) -> Surface:
        if self._settings.fixtures:
            return _fixture_surface()
        if fixtures:
            raise LookupError("fixtures: this daemon was started without --fixtures")
        found = self._made.get(dialects)
        if found is None:
            found = self._made[dialects] = Surface(
                name=dialects,
                tools=build(chosen(dialects), self._toolkit),
                resources=MemoryResources(self._toolkit),
                prompts=MemoryPrompts(self._toolkit),
                completions=MemoryCompletions(self._toolkit),
            )
        return found


class Opened(NamedTuple):
    engine: Engine
    sessions: SessionKeeper


@asynccontextmanager
async def opened(settings: Settings) -> AsyncGenerator[Opened]:
    """The engine and the sessions in its catalogue; closed in order, whatever ends the block."""
    embedder = _embedder(settings.embedding)
    async with AsyncExitStack() as stack:
        try:
            engine = await stack.enter_async_context(
                open_engine(
                    settings.directories.data,
                    ranking=lambda group: HybridRanking(group, embedder),
                )
            )
        except (StoreError, ExceptionGroup) as failure:
            raise Exit(CANNOT_CREATE, f"the store cannot be opened: {_first(failure)}") from None
        sessions = SessionKeeper(
            engine.sessions, idle_days=settings.session_idle_days, keep=settings.sessions_keep
        )
        try:
            # What is alive now stays alive: the collector need not look at it again and again.
            gc.freeze()
            yield Opened(engine, sessions)
        finally:
            with anyio.CancelScope(shield=True):
                await sessions.flush()


def _embedder(chosen: Embedding) -> Embedder:
    """The embedder that is configured, not loaded yet."""
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


def _first(failure: StoreError | ExceptionGroup[Exception]) -> Exception:
    """The store's own failure, out of the task group it was raised in; a crash stays a crash."""
    if isinstance(failure, StoreError):
        return failure
    inner = failure.exceptions[0]
    if isinstance(inner, StoreError):
        return inner
    raise failure


def _make_hub(settings: Settings, tasks: TaskGroup, store: Opened) -> Hub:
    toolkit = Toolkit(
        engine=store.engine,
        now=wall_clock,
        final_limit=settings.final_limit,
        api_key=settings.api_key,
    )
    return Hub(
        settings,
        tasks=tasks,
        sessions=store.sessions,
        surfaces=Surfaces(settings, toolkit),
        engine=store.engine.health,
        care=Caretaker(store.engine),
        tracer=find_tracer(),
        clock=time.monotonic,
    )


def _prepare(settings: Settings) -> None:
    """Everything that can be refused before anything is opened."""
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
    settings: Settings, *, is_spawned: bool, ready: int | None, http: bool = True
) -> int:
    """`recalld serve`: listen on the unix socket, and over HTTP, until told to stop."""
    passed = unix.passed_socket(os.environ)
    if passed is None:
        unix.check_length(settings.socket)
    _prepare(settings)
    with owned(settings.lock, "recalld serve"):
        listener = passed or unix.bind(settings.socket, is_ours=settings.is_socket_private)
        inode = 0 if passed else settings.socket.lstat().st_ino
        try:
            bound = _bind_http(settings) if http and not is_spawned else None
            async with opened(settings) as store, anyio.create_task_group() as tasks:
                hub = _make_hub(settings, tasks, store)
                _heed_signals(hub)
                # HTTP first: who is answered on the socket is told where HTTP is.
                web = await _open_http(hub, bound) if bound is not None else None
                server = await unix.listen(hub, listener)
                log.info("daemon.ready", pid=hub.pid, version=hub.version)
                _tell_ready(ready)
                tasks.start_soon(_housekeeping, hub)
                if is_spawned:
                    tasks.start_soon(_stop_when_idle, hub)
                    tasks.start_soon(_stop_when_unreachable, hub, (settings.socket, settings.lock))
                await hub.stopping.wait()
                await _drain(hub, server, web)
                tasks.cancel_scope.cancel()
        finally:
            listener.close()
            if inode:
                unix.remove(settings.socket, inode)
    _ignore_signals()
    log.info("daemon.stopped")
    logs.flush()
    return OK


def _bind_http(settings: Settings) -> "Bound":
    """Where HTTP will be; what is wrong with it is said before anything else is opened."""
    from daemon.transports.http.server import Bound  # a daemon without HTTP never imports it

    return Bound(settings)


async def _open_http(hub: Hub, bound: "Bound") -> "HttpServer":
    from daemon.transports.http.server import HttpServer

    server = HttpServer(hub, bound)
    await server.open()
    return server


async def serve_stdio(settings: Settings, descriptors: Descriptors) -> int:
    """`recalld stdio --embedded`: the engine in the client's own child process."""
    parent = os.getppid()  # before anything is answered: a client may die of our first answer
    _prepare(settings)
    # A client may start us twice, and throw the first away when it has seen enough.
    with owned(settings.lock, "recalld stdio --embedded", settings.start_seconds):
        async with opened(settings) as store, anyio.create_task_group() as tasks:
            hub = _make_hub(settings, tasks, store)
            _heed_signals(hub)
            wire = StdioWire(hub)
            await wire.open(descriptors)
            tasks.start_soon(_housekeeping, hub)
            tasks.start_soon(_until_input_ends, wire, hub)
            tasks.start_soon(_stop_when_orphaned, hub, parent)
            await hub.stopping.wait()
            hub.depart()
            await _until_quiet(hub)
            await wire.shut()
            tasks.cancel_scope.cancel()
    _ignore_signals()
    logs.flush()
    return OK


async def tend_bank(settings: Settings, asked: Mapping[str, Any], progress: Progress) -> Done:
    """`recalld bank` where no daemon runs: one verb, with the data directory to ourselves."""
    verb = msgspec.convert(asked, AnyVerb)
    settings.log_level = "error"  # what was done is said on stdout, by the command
    _prepare(settings)
    with owned(settings.lock, f"recalld bank {verb.name}"):
        async with opened(settings) as store:
            try:
                return await Caretaker(store.engine).perform(verb, progress)
            except StoreError as failure:
                raise refused(failure, verb) from failure


async def _until_input_ends(wire: StdioWire, hub: Hub) -> None:
    await wire.serve()
    hub.stop()


async def _stop_when_orphaned(hub: Hub, parent: int) -> None:
    """Our client may die while somebody else still holds the other end of our input."""
    while os.getppid() == parent:  # noqa: ASYNC110  (the kernel tells nobody; one has to look)
        await anyio.sleep(PARENT_SECONDS)
    log.info("daemon.orphaned")
    hub.stop()


def _heed_signals(hub: Hub) -> None:
    """SIGTERM and SIGINT end us in order; losing a terminal does not.

    Plain handlers rather than the event loop's: asyncio takes its own away when the loop closes,
    and a second signal in that moment would end us with the wrong code.
    """
    loop = asyncio.get_running_loop()

    def stop(_number: int, _frame: object) -> None:
        loop.call_soon_threadsafe(hub.stop)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def _ignore_signals() -> None:
    """We are leaving anyway; the interpreter would fall back to dying of them."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


async def _stop_when_idle(hub: Hub) -> None:
    """A daemon nobody started by hand leaves when nobody has needed it for a while."""
    linger = hub.settings.idle_seconds
    while True:
        idle = time.monotonic() - hub.idle_since
        if not hub.peers and idle >= linger:
            log.info("daemon.idle", seconds=round(idle))
            hub.stop()
            return
        await anyio.sleep(max(0.05, linger - idle if not hub.peers else min(linger, 5.0)))


async def _stop_when_unreachable(hub: Hub, files: tuple[Path, ...]) -> None:
    """A daemon whose socket or data directory is gone serves nobody, and keeps who comes next out.

    What was acknowledged is on the disk already, or was deleted with it; bridges that are attached
    find or start the next daemon.
    """
    ours = [_inode(path) for path in files]
    while [_inode(path) for path in files] == ours:  # noqa: ASYNC110  (one has to look)
        await anyio.sleep(LOOK_SECONDS)
    log.warning("daemon.unreachable", gone=[p.name for p in files if _inode(p) is None])
    hub.stop()


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except OSError:
        return None


async def _housekeeping(hub: Hub) -> None:
    while True:
        await anyio.sleep(HOUSEKEEPING_SECONDS)
        await hub.sessions.flush()
        hub.prune()


async def _drain(hub: Hub, server: asyncio.Server, web: "HttpServer | None") -> None:
    """No new connections; answers under way go out; then every connection is closed."""
    server.close()
    if web is not None:
        web.refuse_new()
    hub.depart()
    await _until_quiet(hub)
    if web is not None:
        await web.close()
    for peer in list(hub.peers):
        peer.dismiss()
    with anyio.move_on_after(CLOSE_SECONDS):
        await hub.until(lambda: not hub.peers)


async def _until_quiet(hub: Hub) -> None:
    with anyio.move_on_after(DRAIN_SECONDS):
        await hub.until(lambda: not hub.in_flight)


def _tell_ready(ready: int | None) -> None:
    """Tell the process that started us that the socket is open."""
    if ready is not None:
        os.write(ready, b"ready\n")
        os.close(ready)
