"""Tracing: a call continues the trace of its caller, if OpenTelemetry is installed and configured.

recalld does not depend on OpenTelemetry and sends nothing anywhere by itself. If the API can be
imported and the operator has configured a tracer provider, each call is a span under the
`traceparent` of its request. Without a provider the API is a no-op, and no span, context or carrier
is created: an inactive tracer costs a call nothing. Logs contain the trace id in any case.
"""

import importlib
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import anyio

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
#: How often to look for a tracer provider while there is none.
LOOK_SECONDS: Final = 1.0


def trace_id(traceparent: str | None) -> str:
    """The id of a W3C trace; empty if `traceparent` is absent or malformed."""
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    return found[1] if found else ""


class Tracer(Protocol):
    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        """A span for the duration of the block, in the caller's trace if there is one."""
        ...


class OpenTelemetry:
    """Spans through OpenTelemetry's API (`opentelemetry.trace` and `opentelemetry.propagate`)."""

    def __init__(self, trace: Any, propagate: Any) -> None:
        self._trace = trace
        self._propagate = propagate
        self._tracer: Any = None

    def is_active(self) -> bool:
        """Whether a tracer provider is configured; if not, every span would be a no-op."""
        trace = self._trace
        provider = trace.get_tracer_provider()
        if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
            return False
        self._tracer = trace.get_tracer("recalld")
        return not isinstance(self._tracer, trace.NoOpTracer)

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        parent = None
        if trace_id(traceparent):
            parent = self._propagate.extract({"traceparent": traceparent})
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(name, context=parent)
        return span


async def activate(
    telemetry: OpenTelemetry, use: Callable[[Tracer], None], seconds: float = LOOK_SECONDS
) -> None:
    """Call `use` once a tracer provider is configured; look for it every so many seconds."""
    while not telemetry.is_active():  # noqa: ASYNC110  (there is no event to wait for)
        await anyio.sleep(seconds)
    use(telemetry)


def find_opentelemetry() -> OpenTelemetry | None:
    """OpenTelemetry if its API is installed, else None."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
        propagate = importlib.import_module("opentelemetry.propagate")
    except ImportError:
        return None
    return OpenTelemetry(trace, propagate)
