"""From a call to its outcome: limiter, method, and the one broad `except` of the product.

A handler returns finished JSON, or an awaitable of it. Those that return at once are answered at
once, in the order they came; only calls that wait cost a task. Nothing a handler raises gets past
this module: what it means is said by `daemon.failures`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

import structlog
from msgspec import Struct

from daemon.failures import RateLimited, error_for
from daemon.ratelimit import Clock, SlidingWindow
from protocol.connection import Call
from protocol.errors import ErrorObject

log: Final = structlog.get_logger()

#: Finished JSON of a result, or what to refuse with.
Outcome = bytes | ErrorObject


class Caller(Protocol):
    """What the dispatcher needs to know of who is calling."""

    window: SlidingWindow | None

    @property
    def session_id(self) -> str | None: ...


Handler = Callable[[Call, "Caller"], bytes | Awaitable[bytes]]


class Method(Struct, frozen=True, eq=False):
    """A method's handler, and whether the rate limiter counts it."""

    handle: Callable[..., bytes | Awaitable[bytes]]
    counted: bool = True


class Dispatcher:
    """The method table and the way through it."""

    def __init__(
        self, methods: Mapping[str, Method], *, limit: int, clock: Clock, verbose: bool
    ) -> None:
        self._methods = dict(methods)
        self._limit = limit
        self._clock = clock
        self._verbose = verbose

    def begin(self, call: Call, caller: Caller) -> Outcome | Awaitable[Outcome]:
        """Start a call. An `Outcome` is final; an awaitable gives one, and never raises."""
        started = self._clock() if self._verbose else 0.0
        method = self._methods[call.method]
        try:
            if method.counted and caller.window is not None:
                wait = caller.window.admit()
                if wait:
                    raise RateLimited(self._limit, wait)
            given = method.handle(call, caller)
        except Exception as failure:
            return self._failed(failure, call, caller)
        if isinstance(given, bytes):
            if self._verbose:
                self._done(call, caller, started)
            return given
        return self._finish(given, call, caller, started)

    async def _finish(
        self, given: Awaitable[bytes], call: Call, caller: Caller, started: float
    ) -> Outcome:
        try:
            result = await given
        except Exception as failure:
            return self._failed(failure, call, caller)
        if self._verbose:
            self._done(call, caller, started)
        return result

    def _failed(self, failure: Exception, call: Call, caller: Caller) -> ErrorObject:
        error = error_for(failure, call.revision, method=call.method, session=caller.session_id)
        log.info("call.refused", method=call.method, session=caller.session_id, code=error.code)
        return error

    def _done(self, call: Call, caller: Caller, started: float) -> None:
        elapsed = round((self._clock() - started) * 1000, 3)
        log.debug("call.done", method=call.method, session=caller.session_id, ms=elapsed)
