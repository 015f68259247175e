"""Progress of one engine call: what its thread counts, told to the client while it runs.

Work that must be done whole (all notes of a call or none) is one call of the engine, which counts
what it has written so far. Here that count becomes progress: the newest one, a few times a second,
and the whole only when the engine has answered, since a row is not kept before its commit.
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
#: Fewer than this are done before anybody could read about it.
MANY: Final = 50


async def counted(context: Context, things: str, work: Callable[[Progress], Awaitable[T]]) -> T:
    """The result of `work`; meanwhile the client hears `12 of 500 things`."""
    steps = _Steps(context, things)
    kept: list[T] = []
    failure: StoreError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(steps.tell)
        try:
            kept.append(await work(steps.count))
        except StoreError as error:  # raised below, as itself and not in the group's wrapping
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
    await steps.finish()
    return kept[0]


class _Steps:
    """How far the work is, as its thread last said."""

    def __init__(self, context: Context, things: str) -> None:
        self._context = context
        self._things = things
        self._loop = asyncio.get_running_loop()
        self._moved = anyio.Event()
        self._done = 0
        self._total = 0
        self._said_at = float("-inf")

    def count(self, done: int, total: int) -> None:
        """Called on the engine's thread."""
        self._done, self._total = done, total
        now = time.monotonic()
        if total >= MANY and done < total and now - self._said_at >= INTERVAL_SECONDS:
            self._said_at = now
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._moved.set()

    async def tell(self) -> None:
        while True:
            await self._moved.wait()
            self._moved = anyio.Event()
            await self._say(min(self._done, self._total - 1))

    async def finish(self) -> None:
        if self._total >= MANY:
            await self._say(self._total)

    async def _say(self, done: int) -> None:
        told = f"{done} of {self._total} {self._things}"
        await self._context.progress(done, self._total, told)
