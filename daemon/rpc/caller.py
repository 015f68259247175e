"""Who is calling, as the methods see it, whatever the transport.

On a byte stream the caller is the connection; over HTTP it is one request, with the session it
belongs to behind it. The difference that matters: what belongs to a call (progress, log messages,
questions to the client) travels with that call (`tell`, `ask`), and what does not goes to the
follower, wherever that leads.
"""

from typing import TYPE_CHECKING, Any, Protocol

import anyio

from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.subscriptions import Follower
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from protocol.connection import Call
from protocol.headers import Headers
from protocol.lifecycle import Handshake

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub


class Caller(Protocol):
    """What methods and tools may know of a caller, and do for it."""

    window: SlidingWindow | None

    @property
    def log_level(self) -> str | None:
        """The level a legacy client asked for; modern requests say their own."""
        ...

    @log_level.setter
    def log_level(self, level: str | None) -> None: ...

    @property
    def listens(self) -> int:
        """Open `subscriptions/listen` of this caller."""
        ...

    @listens.setter
    def listens(self, count: int) -> None: ...

    @property
    def leaving(self) -> anyio.Event:
        """Set when this caller will ask no more, or we are about to go."""
        ...

    @property
    def hub(self) -> "Hub": ...
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
        """What `initialize` agreed, if it happened."""
        ...

    @property
    def headers(self) -> Headers | None:
        """The HTTP headers of the request; None where there are none to mirror a message."""
        ...

    def tell(self, call: Call, frame: bytes) -> None:
        """Send a notification that belongs to a call; nothing once it is answered."""
        ...

    async def room(self) -> None:
        """Wait until the reader has taken enough of what is waiting for it."""
        ...

    async def ask(self, method: str, params: bytes) -> Any:
        """A request of ours to a legacy client; raises `ToolFailure` without an answer."""
        ...

    def detach(self) -> None:
        """Let go of the connection a call came on, if its answer can be fetched later."""
        ...

    def end_listening(self, call: Call) -> None:
        """We are about to end a subscription ourselves (D32)."""
        ...

    async def session(self) -> str:
        """The id of this caller's session, committed."""
        ...
