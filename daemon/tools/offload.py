"""Runs pure computations in a worker thread, so that they do not hold up the event loop."""

from collections.abc import Callable
from typing import Final, TypeVar

import anyio.to_thread

T = TypeVar("T")

#: Up to this many characters a computation is cheaper than the change of threads.
SMALL: Final = 4_096
#: For computations over input whose length is unknown.
LARGE: Final = SMALL + 1


async def offload(work: Callable[[], T], characters: int) -> T:
    """The result of `work`, computed in a worker thread if it reads more than `SMALL` characters.

    `work` must not touch shared state. Other threads get the interpreter lock every few
    milliseconds, except during a single call into C such as one regular-expression search.
    """
    if characters <= SMALL:
        return work()
    return await anyio.to_thread.run_sync(work)
