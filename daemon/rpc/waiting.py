"""Objects whose changes can be awaited."""

from collections.abc import Callable

import anyio


class Watched:
    """A base class: `until` waits for a condition, `notify` makes it check again."""

    def __init__(self) -> None:
        self._changed: anyio.Event | None = None

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds; it is checked after each change of this object."""
        while not condition():
            self._changed = anyio.Event()
            await self._changed.wait()

    def notify(self) -> None:
        if self._changed is not None:
            self._changed.set()
