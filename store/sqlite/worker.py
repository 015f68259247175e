"""A thread that runs functions in order and answers on the event loop.

`concurrent.futures` would do, at twice the cost: a hop here is about 60 µs, and a durable write on
a fast disk takes only a few of those. The thread is a daemon: nothing it may be cut off from needs
a clean end (a database file recovers), and an unclosed one must not keep the process from exiting.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")
Tell = Callable[[Any, BaseException | None], None]
_Task = tuple[asyncio.AbstractEventLoop, Callable[[], Any], Tell]


class Worker:
    """Functions in, answers out, one at a time and in order."""

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def post(self, function: Callable[[], Any], tell: Tell) -> None:
        """Run `function` on the thread, then `tell` its result, or its error, on the event loop."""
        if self._is_stopped:
            raise RuntimeError("the thread was stopped: nothing would ever be answered")
        self._tasks.put((asyncio.get_running_loop(), function, tell))

    def call(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """The same as a future. Cancelling it does not stop the function."""
        errand = Errand[T]()
        self.post(function, errand.finish)
        return errand.future

    async def see_through(self, function: Callable[[], T]) -> T:
        """The same, for what must be known: a cancelled caller waits for the end all the same."""
        errand = Errand[T]()
        self.post(function, errand.finish)
        return await errand.outcome()

    def stop(self) -> None:
        """End the thread after what was given to it before."""
        self._is_stopped = True
        self._tasks.put(None)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, at most so long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            loop, function, tell = task
            result = error = None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001  (raised again where it is awaited)
                error = raised
            with suppress(RuntimeError):  # the event loop is closed: nobody waits for this answer
                loop.call_soon_threadsafe(tell, result, error)
            del task, loop, function, tell, result, error  # an idle thread holds nobody's data


class Errand(Generic[T]):
    """Something a thread was sent to do, and who waits for it.

    `asyncio.shield` would do too; it takes a second future, and another turn of the event loop.
    """

    __slots__ = ("_end", "_is_over", "future")

    def __init__(self) -> None:
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[None] | None = None
        self._is_over = False

    def finish(self, result: Any, error: BaseException | None) -> None:
        """It is done; called on the event loop."""
        self._is_over = True
        if not self.future.done():
            if error is None:
                self.future.set_result(result)
            else:
                self.future.set_exception(error)
        elif self._end is not None and not self._end.done():
            self._end.set_result(None)

    async def outcome(self) -> T:
        """What came of it. Cancelled, still wait for the end: the thread goes on anyway."""
        try:
            return await self.future
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                while not self._is_over:
                    self._end = asyncio.get_running_loop().create_future()
                    await asyncio.wait([self._end])
            raise
