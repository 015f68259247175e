"""The caller of a method, on every transport.

On a byte stream the caller is the connection. Over HTTP it is one request, together with the
session it belongs to. Messages that belong to a call (progress, log messages, requests to the
client) travel with that call (`send_for`, `ask`). All other notifications go to the follower.
"""

from typing import Any, Protocol

import anyio

from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.subscriptions import Follower
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from protocol.connection import Call
from protocol.headers import Headers
from protocol.lifecycle import Handshake


class Surfaces(Protocol):
    """Finds the surface of a connection."""

    def __call__(self, dialects: str = "", *, fixtures: bool = False) -> Surface:
        """The surface for these dialects (empty: the configured ones); `LookupError` if unknown."""
        ...


class Caller(Protocol):
    """The interface that methods and tools use."""

    window: SlidingWindow | None

    @property
    def log_level(self) -> str | None:
        """The level a legacy client asked for; modern requests carry their own."""
        ...

    @log_level.setter
    def log_level(self, level: str | None) -> None: ...

    @property
    def listens(self) -> int:
        """The number of open `subscriptions/listen` requests of this caller."""
        ...

    @listens.setter
    def listens(self, count: int) -> None: ...

    @property
    def leaving(self) -> anyio.Event:
        """Set when this caller sends no more requests or the daemon is about to leave."""
        ...

    @property
    def surface(self) -> Surface: ...
    @property
    def principal(self) -> Principal: ...
    @property
    def transport(self) -> str: ...
    @property
    def bank(self) -> str: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def follower(self) -> Follower: ...
    @property
    def handshake(self) -> Handshake | None:
        """The result of `initialize`, if it happened."""
        ...

    @property
    def headers(self) -> Headers | None:
        """The HTTP headers of the request; None on other transports."""
        ...

    def send_for(self, call: Call, frame: bytes) -> None:
        """Send a notification that belongs to a call; dropped once the call is answered."""
        ...

    async def room(self) -> None:
        """Wait until the client has read enough of the output that is queued for it."""
        ...

    async def ask(self, method: str, params: bytes) -> Any:
        """Send a request to a legacy client; raises `ToolFailure` without an answer."""
        ...

    def detach(self) -> None:
        """Close the connection a call came on, if its answer can be fetched later."""
        ...

    def end_listening(self, call: Call) -> None:
        """Announce that the server is about to end a subscription."""
        ...

    async def session(self) -> str:
        """The id of this caller's session, committed."""
        ...
