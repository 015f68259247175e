"""Tracing: a call continues the trace of its caller, if OpenTelemetry is installed and configured.

recalld does not depend on OpenTelemetry and sends nothing anywhere by itself. If the API can be
imported and the operator has configured a tracer provider, each call is a span under the
`traceparent` of its request. Without a provider the API is a no-op, and no span, context or carrier
is created. Logs contain the trace id in any case.
"""

import importlib
import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
#: How often to look for a tracer provider while there is none. Looking costs a microsecond, which
#: is a tenth of a small call.
LOOK_SECONDS: Final = 1.0


def trace_id(traceparent: str | None) -> str:
    """The id of a W3C trace; empty if `traceparent` is absent or malformed."""
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    return found[1] if found else ""


class Tracer(Protocol):
    def is_active(self) -> bool:
        """Whether spans go anywhere; if not, none need be created."""
        ...

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        """A span for the duration of the block, in the caller's trace if there is one."""
        ...


class OpenTelemetry:
    """Spans through OpenTelemetry's API (`opentelemetry.trace` and `opentelemetry.propagate`)."""

    def __init__(
        self, trace: Any, propagate: Any, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._trace = trace
        self._propagate = propagate
        self._clock = clock
        self._tracer: Any = None
        self._look_at = float("-inf")

    def is_active(self) -> bool:
        """A provider that is configured later is noticed within `LOOK_SECONDS`."""
        if self._tracer is not None:
            return True
        now = self._clock()
        if now < self._look_at:
            return False
        self._look_at = now + LOOK_SECONDS
        self._tracer = self._find_tracer()
        return self._tracer is not None

    def _find_tracer(self) -> Any:
        """The tracer of the configured provider; None while the API is a no-op."""
        trace = self._trace
        provider = trace.get_tracer_provider()
        if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
            return None
        tracer = trace.get_tracer("recalld")
        return None if isinstance(tracer, trace.NoOpTracer) else tracer

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        parent = None
        if trace_id(traceparent):
            parent = self._propagate.extract({"traceparent": traceparent})
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(name, context=parent)
        return span


def find_tracer() -> Tracer | None:
    """OpenTelemetry if its API is installed, else None."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
        propagate = importlib.import_module("opentelemetry.propagate")
    except ImportError:
        return None
    return OpenTelemetry(trace, propagate)
