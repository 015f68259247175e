"""The open byte-stream connections of this process (stdio and unix socket)."""

from collections.abc import Iterator
from typing import Any, Protocol

import anyio

from daemon.rpc.limiter import Clock, Limiter
from daemon.rpc.waiting import Watched


class Connected(Protocol):
    """One open connection, as the registry sees it."""

    session_id: str | None

    @property
    def name(self) -> str: ...
    @property
    def leaving(self) -> anyio.Event: ...
    def dismiss(self) -> None: ...
    def unsent(self) -> int: ...
    def describe(self) -> dict[str, Any] | None:
        """The client, for `recalld status`; None for a connection of recalld itself."""
        ...


class Connections(Watched):
    """A registry. `idle_since` is the time of the last disconnect."""

    def __init__(self, limiter: Limiter, clock: Clock) -> None:
        super().__init__()
        self.idle_since = clock()
        self._limiter = limiter
        self._clock = clock
        self._open: set[Connected] = set()
        limiter.add_holder(self._limiter_keys)

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Connected]:
        return iter(list(self._open))

    def join(self, connection: Connected) -> None:
        self._open.add(connection)

    def leave(self, connection: Connected) -> None:
        self._open.discard(connection)
        self.idle_since = self._clock()
        self._limiter.prune()
        self.notify()

    def unsent(self) -> int:
        """The bytes of finished answers that wait for their readers, on all connections."""
        return sum(each.unsent() for each in self._open)

    def active_sessions(self) -> int:
        """How many different sessions are connected."""
        return len({each.session_id for each in self._open if each.session_id is not None})

    def _limiter_keys(self) -> list[str]:
        return [each.session_id or each.name for each in self._open]
