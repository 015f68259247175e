"""Traces: a call carries on the trace its caller began, where OpenTelemetry is installed.

recalld does not depend on OpenTelemetry and sends nothing anywhere by itself. Where its API can be
imported, each call is a span under the `traceparent` of the request; what becomes of spans is what
the operator configured. Logs carry the trace id in any case.
"""

import importlib
import re
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")


def trace_id(traceparent: str | None) -> str:
    """The id of a W3C trace; empty for what is none."""
    found = _TRACEPARENT.fullmatch(traceparent) if traceparent else None
    return found[1] if found else ""


class Tracer(Protocol):
    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        """A span for as long as the block lasts, under the caller's trace if there is one."""
        ...


class OpenTelemetry:
    """Spans by OpenTelemetry's API."""

    def __init__(self, trace: Any, propagate: Any) -> None:
        self._tracer = trace.get_tracer("recalld")
        self._propagate = propagate

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        parent = None
        if trace_id(traceparent):
            parent = self._propagate.extract({"traceparent": traceparent})
        span: AbstractContextManager[Any] = self._tracer.start_as_current_span(name, context=parent)
        return span


def find_tracer() -> Tracer | None:
    """OpenTelemetry if it is installed; None, and no cost, otherwise."""
    try:
        trace = importlib.import_module("opentelemetry.trace")
        propagate = importlib.import_module("opentelemetry.propagate")
    except ImportError:
        return None
    return OpenTelemetry(trace, propagate)
