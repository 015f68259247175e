"""From a call to its outcome: limiter, method, and the one broad `except` around a call.

A handler returns finished JSON, or an awaitable of it. Those that return at once are answered at
once, in the order they came; only calls that wait cost a task. Nothing a handler raises gets past
this module: what it means is said by `daemon.rpc.failures`.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

import structlog
from msgspec import Struct

from daemon.operations.metrics import Meter
from daemon.operations.tracing import Tracer, trace_id
from daemon.rpc.caller import Caller
from daemon.rpc.failures import RateLimited, error_for
from daemon.rpc.limiter import Clock
from protocol.connection import Call
from protocol.errors import ErrorObject

log: Final = structlog.get_logger()

#: Finished JSON of a result, or what to refuse with.
Outcome = bytes | ErrorObject


class Method(Struct, frozen=True, eq=False):
    """A method's handler, and whether the rate limiter counts it."""

    handle: Callable[..., bytes | Awaitable[bytes]]
    counted: bool = True


class Dispatcher:
    """The method table and the way through it."""

    def __init__(
        self,
        methods: Mapping[str, Method],
        *,
        limit: int,
        clock: Clock,
        verbose: bool,
        meter: Meter | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._methods = dict(methods)
        self._limit = limit
        self._clock = clock
        self._verbose = verbose
        #: Who counts calls; nobody unless somebody can ask for the numbers.
        self.meter = meter
        self._tracer = tracer

    def begin(self, call: Call, caller: Caller) -> Outcome | Awaitable[Outcome]:
        """Start a call. An `Outcome` is final; an awaitable gives one, and never raises."""
        is_timed = self._verbose or self.meter is not None
        started = self._clock() if is_timed else 0.0
        method = self._methods[call.method]
        try:
            if method.counted and caller.window is not None:
                wait = caller.window.admit()
                if wait:
                    raise RateLimited(caller.window.limit, wait)
            if self._tracer is None:
                given = method.handle(call, caller)
            else:
                given = self._traced(self._tracer, method, call, caller)
        except Exception as failure:
            return self._failed(failure, call, caller, started)
        if isinstance(given, bytes):
            if is_timed:
                self._done(call, caller, started)
            return given
        return self._finish(given, call, caller, started)

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        """A span for work that is no call of the protocol's; nothing where nobody traces."""
        if self._tracer is None:
            return nullcontext()
        return self._tracer.span(name, traceparent)

    async def _traced(self, tracer: Tracer, method: Method, call: Call, caller: Caller) -> bytes:
        with tracer.span(call.method, call.meta.traceparent):
            given = method.handle(call, caller)
            return given if isinstance(given, bytes) else await given

    async def _finish(
        self, given: Awaitable[bytes], call: Call, caller: Caller, started: float
    ) -> Outcome:
        try:
            result = await given
        except Exception as failure:
            return self._failed(failure, call, caller, started)
        if self._verbose or self.meter is not None:
            self._done(call, caller, started)
        return result

    def _failed(
        self, failure: Exception, call: Call, caller: Caller, started: float
    ) -> ErrorObject:
        if self.meter is not None:
            self.meter.call_done(call.method, call.tool, "error", self._clock() - started)
        error = error_for(failure, call.revision, method=call.method, session=caller.session_id)
        log.info("call.refused", code=error.code, **_about(call, caller))
        return error

    def _done(self, call: Call, caller: Caller, started: float) -> None:
        seconds = self._clock() - started
        if self.meter is not None:
            self.meter.call_done(call.method, call.tool, "ok", seconds)
        if self._verbose:
            elapsed = round(seconds * 1000, 3)
            log.debug("call.done", ms=elapsed, **_about(call, caller))


def _about(call: Call, caller: Caller) -> dict[str, str | None]:
    """What a log line says of a call, with the trace it belongs to."""
    fields: dict[str, str | None] = {"method": call.method, "session": caller.session_id}
    trace = trace_id(call.meta.traceparent)
    return {**fields, "trace_id": trace} if trace else fields


async def contained(work: Awaitable[None]) -> Exception | None:
    """Work that is no call but must not take its surroundings down: what it raised, if it did."""
    try:
        await work
    except Exception as failure:
        return failure
    return None
