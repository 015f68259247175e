"""Requests from the server to a legacy client (elicitation, sampling, roots).

2026-07-28 has none. In the older revisions a tool may ask the client something while its own call
waits. This module matches answers to requests and limits the time each may take; the caller decides
how a request travels.
"""

from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec

from daemon.tools.errors import ToolFailure
from protocol import jsonrpc
from protocol.jsonrpc import Response

ASK_SECONDS: Final = 60.0


class ClientRequests:
    """The unanswered requests to one client. With a label, request ids are strings."""

    __slots__ = ("_count", "_form", "_open", "_seconds")

    def __init__(self, label: str = "", *, seconds: float = ASK_SECONDS) -> None:
        self._seconds = seconds
        self._form = b'"%s-%%d"' % label.encode() if label else b"%d"
        self._open: dict[bytes, _OpenRequest] = {}
        self._count = 0

    async def ask(self, send: Callable[[bytes], None], method: str, params: bytes) -> Any:
        """The client's result; `ToolFailure` if it refuses, disconnects or takes too long."""
        self._count += 1
        key = self._form % self._count
        request = self._open[key] = _OpenRequest()
        try:
            send(jsonrpc.request(key, method, params))
            with anyio.fail_after(self._seconds):
                await request.done.wait()
        except TimeoutError:
            waited = f"in {self._seconds:g} s"
            raise ToolFailure(f"the client did not answer {method} {waited}") from None
        finally:
            del self._open[key]
        if request.error:
            raise ToolFailure(f"the client refused {method}")
        return msgspec.json.decode(request.result)

    def answered(self, response: Response) -> None:
        """Take an answer from the client; an answer without an open request is ignored."""
        request = self._open.get(response.key)
        if request is not None:
            request.result, request.error = response.result, response.error
            request.done.set()

    def close(self) -> None:
        """The client is gone: every open request fails."""
        for request in self._open.values():
            request.error = b"{}"
            request.done.set()


class _OpenRequest:
    __slots__ = ("done", "error", "result")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result = b""
        self.error = b""
