"""The gate: every call of every transport passes through `Gate.begin`.

    admit (calls in flight) ─► rate limit ─► authorise and run ─► record ─► map the failure

stdio, the unix socket, both HTTP eras and REST hand their calls to one gate. The gate alone decides
whether a call may run, how long it may take and how it ended. The bank in a tool's arguments is
authorised by the tool's handler (`BoundTool.admit`), because the arguments are decoded there.

A handler returns finished JSON or an awaitable of it. JSON is answered at once, in the order of the
requests. Only a call that waits becomes a `Pending` and costs its transport a task.

This module contains the only broad `except` clauses around a call.
"""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Final, Protocol

import anyio
import structlog
from msgspec import Struct

from daemon.operations.activity import Activity
from daemon.operations.metrics import Meter
from daemon.operations.tracing import Tracer, trace_id
from daemon.rpc.congestion import Congestion
from daemon.rpc.failures import (
    AnswerDiscarded,
    DeadlineExceeded,
    Failure,
    Overloaded,
    RateLimited,
    failure_for,
)
from daemon.rpc.limiter import Clock, Limiter, SlidingWindow
from daemon.rpc.waiting import Watched
from daemon.tools.authority import OWNER, Principal
from protocol.connection import Call

log: Final = structlog.get_logger()

#: Answers up to this size are never discarded: `CallLimits.total` bounds their number.
SMALL_ANSWER: Final = 64 * 1024

#: The end of a call: the finished JSON of its result, or its failure.
Outcome = bytes | Failure


class GateCaller(Protocol):
    """The things the gate needs to know about a caller."""

    @property
    def window(self) -> SlidingWindow | None: ...
    @property
    def session_id(self) -> str | None: ...
    @property
    def principal(self) -> Principal: ...


class Method(Struct, frozen=True, eq=False):
    """A handler and the limits that apply to it."""

    handle: Callable[..., bytes | Awaitable[bytes]]
    #: Whether a call takes a slot of the caller's rate limiter.
    is_rate_limited: bool = True
    #: Whether a call is refused when many calls wait for the engine.
    waits_for_engine: bool = False
    #: Whether a call must finish within `CallLimits.seconds`.
    has_deadline: bool = False


class CallLimits(Struct, frozen=True, kw_only=True):
    """The limits that the gate enforces."""

    per_connection: int
    total: int
    #: The deadline of methods that have one.
    seconds: float
    #: Bytes of finished but unsent answers on all connections.
    unsent_bytes: int = 256 * 1024 * 1024
    #: When tool calls typically take longer and many wait, new ones are refused.
    wait_seconds: float = 5.0


class Gate(Watched):
    """Admits, limits, times, records and answers calls; counts the calls in flight."""

    def __init__(
        self,
        limits: CallLimits,
        *,
        clock: Clock,
        verbose: bool = False,
        tracer: Tracer | None = None,
    ) -> None:
        super().__init__()
        #: Pending calls whose answer has not been handed to the transport yet.
        self.in_flight = 0
        self._limits = limits
        self._per_connection = limits.per_connection
        self._total = limits.total
        self._congestion = Congestion(limits.wait_seconds)
        self._principals: Limiter | None = None
        self._unsent: list[Callable[[], int]] = []
        self._clock = clock
        self._verbose = verbose
        self._tracer = tracer
        self._meter: Meter | None = None
        self._activity: Activity | None = None
        self._is_timed = verbose

    def measure(self, meter: Meter, activity: Activity) -> None:
        """Count calls from now on. Only HTTP shows the figures, so only HTTP asks for this."""
        self._meter = meter
        self._activity = activity
        self._is_timed = True

    def count_unsent(self, count: Callable[[], int]) -> None:
        """Register a transport's count of the bytes that wait for its readers."""
        self._unsent.append(count)

    def trace(self, tracer: Tracer) -> None:
        """Create a span for each call from now on."""
        self._tracer = tracer

    def begin(
        self, method: Method, call: Call, caller: GateCaller, concurrent: int
    ) -> "Outcome | Pending":
        """Start a call. `concurrent` counts the calls of its connection, this one included.

        An `Outcome` is final. A `Pending` is counted as in flight until it is exited.
        """
        started = self._clock() if self._is_timed else 0.0
        try:
            if concurrent > self._per_connection:
                raise Overloaded(f"at most {self._per_connection} calls at once on a connection")
            if self.in_flight >= self._total:
                raise Overloaded(f"at most {self._total} calls at once in all")
            if method.waits_for_engine and (delay := self._congestion.delay(self.in_flight)):
                raise Overloaded(f"{self.in_flight} calls are waiting; try again later", delay)
            if method.is_rate_limited:
                window = caller.window
                seconds = 0.0 if window is None else window.admit()
                if window is not None and seconds:
                    raise RateLimited(window.limit, seconds)
                self._limit_principal(caller.principal)
            if self._tracer is None:
                result = method.handle(call, caller)
            else:
                result = _traced(self._tracer, method, call, caller)
        except Exception as error:
            return self._failed(error, call, caller, started)
        if isinstance(result, bytes):
            if self._is_timed:
                self._succeeded(call, caller, started)
            return result
        self.in_flight += 1
        self.notify()
        return Pending(self, self._finish(result, method, call, caller, started))

    async def _finish(
        self,
        result: Awaitable[bytes],
        method: Method,
        call: Call,
        caller: GateCaller,
        started: float,
    ) -> Outcome:
        began = self._clock()
        try:
            if method.has_deadline:
                finished = await _within(self._limits.seconds, result)
            else:
                finished = await result
            if method.waits_for_engine:
                self._congestion.finished(self._clock() - began)
            if len(finished) > SMALL_ANSWER:
                self._check_room(len(finished))
        except Exception as error:
            return self._failed(error, call, caller, started)
        if self._is_timed:
            self._succeeded(call, caller, started)
        return finished

    def limit_principals(self, limiter: Limiter) -> None:
        """Limit the requests of each token as well, so that many sessions are no way around."""
        self._principals = limiter

    def _limit_principal(self, principal: Principal) -> None:
        """The owner's own processes have no token; they are limited by session only."""
        if principal is OWNER or self._principals is None:
            return
        window = self._principals.window(principal.name)
        seconds = 0.0 if window is None else window.admit()
        if window is not None and seconds:
            raise RateLimited(window.limit, seconds)

    def _check_room(self, size: int) -> None:
        limit = self._limits.unsent_bytes
        if size + sum(count() for count in self._unsent) > limit:
            raise AnswerDiscarded(size, limit, "limits.unsent_bytes_total")

    def release(self) -> None:
        """A pending call ended; `Pending` calls this exactly once."""
        self.in_flight -= 1
        self.notify()

    # --- the outcome -------------------------------------------------------------------------

    def _failed(self, error: Exception, call: Call, caller: GateCaller, started: float) -> Failure:
        self._record(call, "error", self._clock() - started)
        failure = failure_for(error, call.revision, method=call.method, session=caller.session_id)
        log.info("call.refused", code=failure.error.code, **_log_fields(call, caller))
        return failure

    def _succeeded(self, call: Call, caller: GateCaller, started: float) -> None:
        seconds = self._clock() - started
        self._record(call, "ok", seconds)
        if self._verbose:
            log.debug("call.done", ms=round(seconds * 1000, 3), **_log_fields(call, caller))

    def _record(self, call: Call, outcome: str, seconds: float) -> None:
        if self._meter is not None and self._activity is not None:
            self._meter.call_done(call.method, call.tool, outcome, seconds)
            self._activity.call_done(call.method, call.tool, seconds, len(call.params))


class Pending:
    """A call that is running. Enter it, await `outcome` and deliver the answer inside the block.

    The call counts as in flight until the block is left. `cancel` ends the block; it may be called
    before the block is entered.
    """

    __slots__ = ("_gate", "_scope", "outcome")

    def __init__(self, gate: Gate, outcome: Awaitable[Outcome]) -> None:
        self.outcome = outcome
        self._gate = gate
        self._scope = anyio.CancelScope()

    def __enter__(self) -> "Pending":
        self._scope.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            return self._scope.__exit__(kind, error, trace)
        finally:
            self._gate.release()

    def cancel(self) -> None:
        self._scope.cancel()

    @property
    def was_cancelled(self) -> bool:
        """Whether `cancel` ended the block before it was done."""
        return self._scope.cancelled_caught


async def _traced(tracer: Tracer, method: Method, call: Call, caller: GateCaller) -> bytes:
    with tracer.span(call.method, call.meta.traceparent):
        result = method.handle(call, caller)
        return result if isinstance(result, bytes) else await result


async def _within(seconds: float, result: Awaitable[bytes]) -> bytes:
    with anyio.move_on_after(seconds):
        return await result
    raise DeadlineExceeded(seconds)


def _log_fields(call: Call, caller: GateCaller) -> dict[str, str | None]:
    fields: dict[str, str | None] = {"method": call.method, "session": caller.session_id}
    trace = trace_id(call.meta.traceparent)
    return {**fields, "trace_id": trace} if trace else fields


async def contained(work: Awaitable[None]) -> Exception | None:
    """Await work that is not a call and must not stop its surroundings; return its exception."""
    try:
        await work
    except Exception as failure:
        return failure
    return None
