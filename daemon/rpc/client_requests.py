"""Questions to a legacy client: requests of ours, each until it is answered.

2026-07-28 has none. Before it, a tool may ask the client something (elicitation, sampling, roots)
while its own call waits. How the question travels is the caller's business; here is who asked what,
for how long we wait, and what an answer means.
"""

from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec

from daemon.tools.errors import ToolFailure
from protocol import jsonrpc
from protocol.jsonrpc import Response

ASK_SECONDS: Final = 60.0


class Questions:
    """What one client has been asked and not answered. A label makes the ids strings."""

    __slots__ = ("_asked", "_count", "_form", "_seconds")

    def __init__(self, label: str = "", *, seconds: float = ASK_SECONDS) -> None:
        self._seconds = seconds
        self._form = b'"%s-%%d"' % label.encode() if label else b"%d"
        self._asked: dict[bytes, _Asked] = {}
        self._count = 0

    async def ask(self, send: Callable[[bytes], None], method: str, params: bytes) -> Any:
        """The client's result; `ToolFailure` when it refuses, leaves, or takes too long."""
        self._count += 1
        key = self._form % self._count
        asked = self._asked[key] = _Asked()
        try:
            send(jsonrpc.request(key, method, params))
            with anyio.fail_after(self._seconds):
                await asked.done.wait()
        except TimeoutError:
            waited = f"in {self._seconds:g} s"
            raise ToolFailure(f"the client did not answer {method} {waited}") from None
        finally:
            del self._asked[key]
        if asked.error:
            raise ToolFailure(f"the client refused {method}")
        return msgspec.json.decode(asked.result)

    def answered(self, response: Response) -> None:
        """An answer arrived; one that nobody waits for is nothing."""
        asked = self._asked.get(response.key)
        if asked is not None:
            asked.result, asked.error = response.result, response.error
            asked.done.set()

    def close(self) -> None:
        """The client is gone: whoever still waits is refused."""
        for asked in self._asked.values():
            asked.error = b"{}"
            asked.done.set()


class _Asked:
    """One question."""

    __slots__ = ("done", "error", "result")

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.result = b""
        self.error = b""
