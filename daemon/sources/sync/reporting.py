"""Progress of a run, sent to its caller a few times a second."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio

from daemon.sources.sync.state import RunProgress
from daemon.tools.context import Context

INTERVAL_SECONDS: Final = 0.25

#: Called with the finished steps, the total (0 if unknown) and a message.
SourceProgress = Callable[[int, int, str], None]

_PHASES: Final = {
    "listing": "files listed",
    "reading": "files read",
    "deleting": "documents deleted",
    "embedding": "vectors computed",
}


def message_of(progress: RunProgress) -> str:
    total = f" of {progress.total}" if progress.total else ""
    return f"{progress.done}{total} {_PHASES[progress.phase]}"


@asynccontextmanager
async def reported(context: Context) -> AsyncGenerator[Callable[[RunProgress], None]]:
    """Progress notifications for the caller of a method, while the block runs."""

    async def send(progress: RunProgress) -> None:
        total = progress.before + progress.total if progress.total else None
        await context.progress(progress.before + progress.done, total, message_of(progress))

    async with _following(send) as following:
        yield following


@asynccontextmanager
async def followed(show: SourceProgress) -> AsyncGenerator[Callable[[RunProgress], None]]:
    """Progress for a caller in this process."""

    async def send(progress: RunProgress) -> None:
        show(progress.done, progress.total, message_of(progress))

    async with _following(send) as following:
        yield following


@asynccontextmanager
async def _following(
    send: Callable[[RunProgress], Awaitable[None]],
) -> AsyncGenerator[Callable[[RunProgress], None]]:
    runs: list[RunProgress] = []

    async def follow() -> None:
        last = ""
        while True:
            await anyio.sleep(INTERVAL_SECONDS)
            if runs and message_of(runs[-1]) != last:
                last = message_of(runs[-1])
                await send(runs[-1])

    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        try:
            yield runs.append
        except Exception as error:  # noqa: BLE001  (raised below, so that no group wraps it)
            failure = error
        group.cancel_scope.cancel()
    if failure is not None:
        raise failure
