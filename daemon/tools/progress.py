"""Progress notifications for one engine call.

Work that must be done completely or not at all is a single call of the engine, which counts rows on
its own thread. This module forwards the latest count to the client a few times a second. The final
count is sent after the engine has returned, because no row is durable before the commit.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import anyio

from daemon.tools.context import Context
from store.engine import Progress
from store.errors import StoreError

T = TypeVar("T")

INTERVAL_SECONDS: Final = 0.1
#: Fewer rows than this are written too fast for progress to be useful.
MANY: Final = 50


async def counted(context: Context, things: str, work: Callable[[Progress], Awaitable[T]]) -> T:
    """The result of `work`. While it runs, the client receives `12 of 500 things`."""
    reporter = _Reporter(context, things)
    results: list[T] = []
    failure: StoreError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(reporter.run)
        try:
            results.append(await work(reporter.count))
        except StoreError as error:  # raised below, so that the group does not wrap it
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    await reporter.finish()
    return results[0]


class _Reporter:
    """Sends the counts of the engine's thread to the client."""

    def __init__(self, context: Context, things: str) -> None:
        self._context = context
        self._things = things
        self._loop = asyncio.get_running_loop()
        self._moved = anyio.Event()
        self._done = 0
        self._total = 0
        self._sent_at = float("-inf")

    def count(self, done: int, total: int) -> None:
        """Record a count. The engine calls this on its own thread."""
        self._done, self._total = done, total
        now = time.monotonic()
        if total >= MANY and done < total and now - self._sent_at >= INTERVAL_SECONDS:
            self._sent_at = now
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._moved.set()

    async def run(self) -> None:
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            await self._send(min(self._done, self._total - 1))

    async def finish(self) -> None:
        if self._total >= MANY:
            await self._send(self._total)

    async def _send(self, done: int) -> None:
        message = f"{done} of {self._total} {self._things}"
        await self._context.progress(done, self._total, message)
