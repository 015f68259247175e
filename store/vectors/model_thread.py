"""A thread that runs functions in order, for the embedding model and the vector graph.

The thread is a daemon thread, so that a model which is still loading does not keep the process
from exiting. `concurrent.futures` joins its threads at exit, and costs twice as much per call.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple["asyncio.Future[Any]", Callable[[], Any]]


class ModelThread:
    """Runs one function at a time, in the order of the calls."""

    def __init__(self, name: str) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._is_stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], T]) -> "asyncio.Future[T]":
        """Run `function` on the thread. Cancelling the future does not stop the function."""
        if self._is_stopped:
            raise RuntimeError("the thread was stopped, so the function would never run")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._tasks.put((future, function))
        return future

    def stop(self) -> None:
        """End the thread after the functions it was given before."""
        self._is_stopped = True
        self._tasks.put(None)

    def join(self, seconds: float) -> None:
        """Wait until the thread has ended, for at most this long."""
        self._thread.join(seconds)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, function = task
            result = error = None
            try:
                result = function()
            except BaseException as raised:  # noqa: BLE001  (raised again where it is awaited)
                error = raised
            with suppress(RuntimeError):  # the event loop was closed, so nothing awaits the result
                future.get_loop().call_soon_threadsafe(_finish, future, result, error)
            del task, future, function, result, error  # an idle thread must not keep texts alive


def _finish(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
