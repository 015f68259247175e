"""Watching of sources: an event means that a part of a source is compared soon.

Events are hints. A folder that is renamed produces no events for the files in it, and a full queue
loses events. So an event leads to a comparison of its path, and the whole source is compared at the
start and at intervals. If the kernel's watches are used up, the source is compared more often
instead, and the log says so once.
"""

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol, cast

import anyio
import structlog
from anyio.abc import TaskGroup

from daemon.exit_codes import LOCKED, Exit
from daemon.sources.connectors.ignore import IGNORE_FILES
from daemon.sources.definition import Definition
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.state import Outcome
from store.errors import StoreError

log: Final = structlog.get_logger()

DEBOUNCE_MS: Final = 500
STEP_MS: Final = 50
#: Seconds between comparisons of a whole source, by kind; `interval` overrides them.
INTERVALS: Final = {"filesystem": 3600.0, "git": 300.0, "s3": 300.0, "script": 900.0}
POLL_SECONDS: Final = 30.0
RETRY_SECONDS: Final = 10.0
BUSY_SECONDS: Final = 0.2
#: More paths than this are compared as the whole source.
MOST_PATHS: Final = 500


class WatchLimited(Exception):
    """The system has no more watches."""


class Notifier(Protocol):
    """Waits for changes below a folder."""

    def wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        """The changed paths, empty after `seconds` without a change; None after `stop`.

        Raises `WatchLimited` if a new folder cannot be watched.
        """
        ...


class InotifyNotifier:
    """The watches of watchfiles."""

    def __init__(self, root: str) -> None:
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        self._broken: type[Exception] = WatchfilesRustInternalError
        try:
            self._notify: Any = RustNotify([root], False, False, 300, True, False)
        except PermissionError:
            # With this flag watchfiles leaves out folders that may not be read. It also hides that
            # the watches are used up, so it is not given at first.
            self._notify = RustNotify([root], False, False, 300, True, True)
        except WatchfilesRustInternalError as error:  # no more instances of inotify, for example
            raise WatchLimited(str(error)) from None
        except OSError as error:
            if "limit" in str(error) or "space" in str(error).lower():
                raise WatchLimited(str(error)) from None
            raise

    def wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        try:
            found: Any = self._notify.watch(DEBOUNCE_MS, STEP_MS, int(seconds * 1000), stop)
        except self._broken as error:  # a new folder could not be watched
            raise WatchLimited(str(error)) from None
        if isinstance(found, set):
            return {path for _, path in cast("set[tuple[int, str]]", found)}
        return None if found in ("stop", "signal") else set()


class Watcher:
    """Watches every source whose definition says `watch`."""

    def __init__(
        self,
        sources: Sources,
        tasks: TaskGroup,
        notifier: Callable[[str], Notifier] = InotifyNotifier,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._sources = sources
        self._tasks = tasks
        self._notifier = notifier
        self._poll_seconds = poll_seconds
        self._watched: dict[str, tuple[Definition, anyio.CancelScope]] = {}

    def start(self) -> None:
        """Begin to watch, and follow changes of the definitions."""
        self._sources.on_definitions = self._refresh
        self._refresh()

    def _refresh(self) -> None:
        wanted = {name: found for name, found in self._sources.definitions().items() if found.watch}
        for name, (definition, scope) in list(self._watched.items()):
            if wanted.get(name) != definition:
                scope.cancel()
                del self._watched[name]
        for name, definition in wanted.items():
            if name not in self._watched:
                scope = anyio.CancelScope()
                self._watched[name] = (definition, scope)
                self._tasks.start_soon(self._keep, definition, scope)

    async def _keep(self, definition: Definition, scope: anyio.CancelScope) -> None:
        with scope:
            if definition.kind == "filesystem":
                await self._watch(definition)
            else:
                await self._poll(definition, _interval(definition))

    async def _poll(self, definition: Definition, seconds: float) -> None:
        while True:
            await self._compare(definition, ())
            await anyio.sleep(seconds)

    async def _watch(self, definition: Definition) -> None:
        while True:
            try:
                notifier = await anyio.to_thread.run_sync(self._notifier, definition.root)
                await self._follow(definition, notifier)
            except WatchLimited as error:
                log.warning(
                    "source.watch.limited",
                    source=definition.name,
                    reason=str(error),
                    remedy="raise fs.inotify.max_user_watches or max_user_instances with sysctl",
                    limit=_watch_limit(),
                    seconds=self._poll_seconds,
                )
                await self._poll(definition, self._poll_seconds)
            except OSError:
                await self._compare(definition, ())  # reports that the root is missing
                await anyio.sleep(RETRY_SECONDS)

    async def _follow(self, definition: Definition, notifier: Notifier) -> None:
        """Compare the whole source, then every part that changes, until the root is gone."""
        await self._compare(definition, ())
        stop = threading.Event()
        limiter = anyio.CapacityLimiter(1)
        seconds = _interval(definition)
        root = await anyio.to_thread.run_sync(Path(definition.root).resolve)
        try:
            while True:
                changed = await anyio.to_thread.run_sync(
                    notifier.wait, seconds, stop, abandon_on_cancel=True, limiter=limiter
                )
                if changed is None:
                    return
                paths = _relative(changed, root)
                if paths or not changed:
                    await self._compare(definition, paths if changed else ())
                if not await anyio.to_thread.run_sync(root.is_dir):
                    return  # the watches are gone with the root
        finally:
            stop.set()

    async def _compare(self, definition: Definition, paths: tuple[str, ...]) -> None:
        """Run a sync; a failure is remembered by the source and does not end the watching."""
        under = () if len(paths) > MOST_PATHS or "" in paths else paths
        outcome = await self._sync(definition.name, under)
        if outcome is not None and outcome.withheld and under:
            await self._sync(definition.name, ())  # for the exact number

    async def _sync(self, name: str, under: tuple[str, ...]) -> Outcome | None:
        while True:
            try:
                return await self._sources.sync(name, RunOptions(under=under), with_vectors=False)
            except Exit as exit:
                if exit.code != LOCKED:
                    return None
            except StoreError:
                return None
            await anyio.sleep(BUSY_SECONDS)  # another run of this source is in progress


def _relative(changed: Iterable[str], root: Path) -> tuple[str, ...]:
    """The changed paths below the root; a changed ignore file stands for its folder."""
    found: set[str] = set()
    for name in changed:
        path = Path(name)
        if path.name in IGNORE_FILES:
            path = path.parent
        if path == root:
            found.add("")
        elif path.is_relative_to(root):
            found.add(path.relative_to(root).as_posix())
    return tuple(sorted(found))


def _interval(definition: Definition) -> float:
    return float(definition.interval or INTERVALS[definition.kind])


def _watch_limit() -> int | None:
    try:
        return int(Path("/proc/sys/fs/inotify/max_user_watches").read_text("utf-8"))
    except (OSError, ValueError):
        return None
