"""The context of a tool call: facts about the caller, and messages a tool may send to it."""

from typing import Any, Protocol

from daemon.tools.authority import Principal
from protocol.headers import Headers
from protocol.lifecycle import ClientCapabilities, Implementation
from protocol.revisions import Revision


class Context(Protocol):
    """One call from the tool's side. Every transport provides its own implementation."""

    @property
    def revision(self) -> Revision: ...
    @property
    def client(self) -> Implementation | None: ...
    @property
    def capabilities(self) -> ClientCapabilities: ...
    @property
    def transport(self) -> str: ...
    @property
    def principal(self) -> Principal:
        """The caller. Its access to the bank that the arguments name has been checked already."""
        ...

    @property
    def bank(self) -> str:
        """The bank for tools that name none: the client's `--bank`, else the daemon's default."""
        ...

    @property
    def inputs(self) -> dict[str, Any]:
        """The client's answers to an `InputRequired` of an earlier round."""
        ...

    @property
    def state(self) -> str | None:
        """The `request_state` of an earlier round, as the client sent it back."""
        ...

    @property
    def headers(self) -> Headers | None:
        """The HTTP headers of the call; None on other transports."""
        ...

    async def session(self) -> str:
        """The id of the caller's session. The session row is committed before this returns."""
        ...

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None: ...

    async def log(self, level: str, data: Any) -> None: ...

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send a request to a legacy client; raises `ToolFailure` if it cannot answer."""
        ...

    def announce(self, change: str, uri: str | None = None) -> None:
        """Notify subscribers that a list or a resource changed."""
        ...

    def changed(self, bank: str) -> None:
        """Notify subscribers of this bank's resources that the bank was written to."""
        ...

    def detach(self) -> None:
        """Release the connection if the client can fetch the answer later (SSE polling)."""
        ...
