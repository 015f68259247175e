"""A thread that runs functions in order and answers on the event loop.

`concurrent.futures` would do, at twice the cost: a hop here is about 40 µs, and a durable write on
a fast disk takes only a few of those. The thread is a daemon: nothing it may be cut off from needs
a clean end (a database file recovers), and an unclosed one must not keep the process from exiting.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple["asyncio.Future[Any]", Callable[[], Any]]


class Worker:
    """Functions in, futures out, one at a time and in order."""

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Run `function` on the thread. Cancelling the future does not stop the function."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tasks.put((future, function))
        return future

    def stop(self) -> None:
        """End the thread after what was given to it before."""
        self._tasks.put(None)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, at most so long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function = task
            try:
                tell = partial(_succeed, future, function())
            except BaseException as error:  # noqa: BLE001  (raised again where it is awaited)
                tell = partial(_fail, future, error)
            with suppress(RuntimeError):  # the event loop is closed: nobody waits for this answer
                future.get_loop().call_soon_threadsafe(tell)
            del task, future, function, tell  # an idle thread holds on to nobody's data


def _succeed(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
