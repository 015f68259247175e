"""One structured log line per HTTP request: caller, route, outcome, duration.

Paths are logged by route, methods and tools by their registered names, so that no invented string
becomes a label or a log field. Contents, queries, tokens and session handles are never logged.
"""

from collections.abc import MutableMapping
from typing import Any, Final

import structlog
from msgspec import Struct

from daemon.operations.tracing import trace_id
from daemon.transports.http.edge.messages import Send

log: Final = structlog.get_logger()


class AccessRecord(Struct, eq=False):
    """The facts about one request; handlers fill it in, the router writes it."""

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
    bytes_in: int = 0
    bytes_out: int = 0
    is_stream: bool = False

    def trace(self, traceparent: str | None) -> None:
        """Continue a W3C trace; a malformed `traceparent` is ignored."""
        found = trace_id(traceparent)
        if found:
            self.trace_id, self.traceparent = found, traceparent

    def watch(self, send: Send) -> Send:
        """Wrap `send`, so that the status and the size of the response are recorded."""

        async def watched(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif self.verb != "HEAD":
                self.bytes_out += len(message.get("body", b""))
            await send(message)

        return watched

    def write(self, seconds: float) -> None:
        """Write the log line."""
        fields: dict[str, object] = {
            "verb": self.verb,
            "route": self.route,
            "status": self.status,
            "ms": round(seconds * 1000, 2),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
        }
        for name in ("principal", "session", "era", "method", "tool", "trace_id"):
            value = getattr(self, name)
            if value:
                fields[name] = value
        if self.is_stream:
            fields["stream"] = True
        log.info("http.done", **fields)
