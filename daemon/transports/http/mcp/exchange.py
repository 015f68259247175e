"""One HTTP request as a caller: what belongs to its calls travels in its own response."""

from typing import TYPE_CHECKING, Any

import anyio

from daemon.rpc.subscriptions import Follower
from daemon.tools.authority import Principal
from daemon.tools.errors import ToolFailure
from daemon.tools.surface import Surface
from daemon.transports.http.mcp.event_stream import Stream
from daemon.transports.http.mcp.sessions import HttpSession, Visitor
from protocol.connection import Call, Connection
from protocol.headers import Headers
from protocol.lifecycle import Handshake

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub


class Exchange:
    """A request and its response; `visitor` is the session, if there is one."""

    __slots__ = ("connection", "headers", "stream", "surface", "visitor", "window")

    transport = "http"

    def __init__(
        self,
        visitor: Visitor,
        connection: Connection,
        surface: Surface,
        stream: Stream,
        headers: Headers,
    ) -> None:
        self.visitor = visitor
        self.connection = connection
        self.surface = surface
        self.stream = stream
        self.headers: Headers | None = headers
        self.window = visitor.window

    @property
    def hub(self) -> "Hub":
        return self.visitor.hub

    @property
    def leaving(self) -> anyio.Event:
        return self.visitor.hub.leaving  # a request that is dropped is cancelled, not ended

    @property
    def principal(self) -> Principal:
        return self.visitor.principal

    @property
    def bank(self) -> str:
        return self.visitor.bank

    @property
    def session_id(self) -> str | None:
        return self.visitor.session_id

    @property
    def handshake(self) -> Handshake | None:
        return self.connection.lifecycle.handshake

    @property
    def follower(self) -> Follower:
        assert isinstance(self.visitor, HttpSession)  # only legacy methods follow anything
        return self.visitor.follower

    @property
    def log_level(self) -> str | None:
        return self.visitor.log_level

    @log_level.setter
    def log_level(self, level: str | None) -> None:
        self.visitor.log_level = level

    @property
    def listens(self) -> int:
        return self.visitor.listens

    @listens.setter
    def listens(self, count: int) -> None:
        self.visitor.listens = count

    def tell(self, call: Call, frame: bytes) -> None:
        if call.key in self.connection.inflight:
            self.stream.send(frame)

    async def room(self) -> None:
        await self.stream.room()

    async def ask(self, method: str, params: bytes) -> Any:
        if not isinstance(self.visitor, HttpSession):
            raise ToolFailure("this client cannot be asked anything")
        return await self.visitor.ask(self.stream, method, params)

    def detach(self) -> None:
        self.stream.detach()

    def end_listening(self, call: Call) -> None:
        """Over HTTP the result ends a subscription, and the response with it (D32)."""

    async def session(self) -> str:
        return await self.visitor.session()
