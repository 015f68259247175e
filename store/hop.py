"""Functions that run on another thread, and their outcome on the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

import anyio

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]  # result or None, error or None


class Hop:
    """A function on its way to the thread, and its outcome on the way back.

    A thread may keep its last task while it is idle and log its repr (aiosqlite's does). So a hop
    drops its function when it starts, and its repr says nothing.
    """

    __slots__ = ("_done", "_function", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, function: Callable[[], Any], done: Done
    ) -> None:
        self._loop = loop
        self._function = function
        self._done = done

    def __call__(self) -> None:
        loop, function, done = self._loop, self._function, self._done
        del self._loop, self._function, self._done
        result = error = None
        try:
            result = function()
        except BaseException as raised:  # noqa: BLE001  (raised again where it is awaited)
            error = raised
        with suppress(RuntimeError):  # the event loop was closed, so nothing awaits the outcome
            loop.call_soon_threadsafe(done, result, error)
        del error  # it refers to this frame through its traceback


class Outcome(Generic[T]):
    """The outcome of a function that runs on another thread.

    `asyncio.shield` would do as well, but takes a second future and a turn of the event loop.
    """

    __slots__ = ("_end", "_future", "_is_over")

    def __init__(self) -> None:
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._end: asyncio.Future[None] | None = None
        self._is_over = False

    def finish(self, result: Any, error: BaseException | None) -> None:
        """Set the outcome; called on the event loop."""
        self._is_over = True
        if not self._future.done():
            if error is None:
                self._future.set_result(result)
            else:
                self._future.set_exception(error)
        elif self._end is not None and not self._end.done():
            self._end.set_result(None)

    async def wait(self) -> T:
        """Return the result or raise the error. If cancelled, wait for the end all the same."""
        try:
            return await self._future
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                while not self._is_over:
                    self._end = asyncio.get_running_loop().create_future()
                    await asyncio.wait([self._end])
            raise
