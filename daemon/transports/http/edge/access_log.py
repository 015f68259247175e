"""One structured line a request: who asked for what, how it ended, how long it took.

Paths are named by route, methods and tools by their known names: what a stranger makes up never
becomes a label or a log field. Contents, queries, tokens and session handles are never logged.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import structlog
from msgspec import Struct

from daemon.operations.tracing import trace_id
from daemon.transports.http.edge.messages import Send

log: Final = structlog.get_logger()


class Access(Struct, eq=False):
    """What is known of a request when it ends."""

    verb: str
    route: str = "?"
    status: int = 0
    principal: str = ""
    session: str | None = None
    era: str = ""
    method: str = ""
    tool: str = ""
    trace_id: str = ""
    traceparent: str | None = None
    took: int = 0
    gave: int = 0
    is_stream: bool = False

    def trace(self, traceparent: str | None) -> None:
        """Carry on a W3C trace; what is not one is simply not carried on."""
        found = trace_id(traceparent)
        if found:
            self.trace_id, self.traceparent = found, traceparent

    def watching(self, send: Send) -> Send:
        """A `send` that notes the status and the size of what goes out."""

        async def watched(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif self.verb != "HEAD":
                self.gave += len(message.get("body", b""))
            await send(message)

        return watched

    def write(self, seconds: float) -> None:
        fields: dict[str, object] = {
            "verb": self.verb,
            "route": self.route,
            "status": self.status,
            "ms": round(seconds * 1000, 2),
            "bytes_in": self.took,
            "bytes_out": self.gave,
        }
        for name in ("principal", "session", "era", "method", "tool", "trace_id"):
            value = getattr(self, name)
            if value:
                fields[name] = value
        if self.is_stream:
            fields["stream"] = True
        log.info("http.done", **fields)
