"""Checks: the registry of test functions, and the result of running one.

A check returns if the server passed, raises `Failed` if it did not, and `NotApplicable` if the
server cannot be tested. There are two kinds. A *case* sends its own requests. A *scan* inspects
every frame that the server sends during the whole run. Both are registered under their id in
`requirements.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NoReturn

if TYPE_CHECKING:
    from conformance.client.observer import ReceivedFrame
    from conformance.context import Context

Status = Literal["passed", "failed", "flaky", "error", "not applicable"]
"""A *flaky* trial failed, and passed when it was repeated alone. An *error* is trouble before the
case could begin (no start, no handshake); it says nothing about the requirement."""

SUITES = (
    "jsonrpc",
    "batch",
    "framing",
    "encoding",
    "json_grammar",
    "unix_socket",
    "lifecycle",
    "modern",
    "tools",
    "tool_results",
    "resources",
    "prompts",
    "log_messages",
    "paging",
    "progress",
    "cancellation",
    "subscriptions",
    "input_requests",
    "tasks",
    "skills",
    "concurrency",
    "process",
    "http_basics",
    "mirrored_headers",
    "event_streams",
    "sessions",
    "raw_http",
    "authorization",
    "scans",
    "everywhere",
)


class Failed(Exception):
    """The server violates the requirement."""


class NotApplicable(Exception):
    """The requirement cannot be tested on this server; the message gives the reason."""


class SetupFailed(Exception):
    """The case could not begin: no connection or no handshake."""


class RateLimited(Exception):
    """The server refused a request because of its rate limit."""

    def __init__(self, message: str, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


@contextmanager
def opening_is_tested() -> Iterator[None]:
    """For cases whose subject is the start or the connection itself: trouble there is a failure."""
    try:
        yield
    except SetupFailed as error:
        raise Failed(str(error)) from error


def fail(message: str) -> NoReturn:
    raise Failed(message)


def need(claim: object, message: str) -> None:
    """Fail with `message` unless the claim holds."""
    if not claim:
        raise Failed(message)


Check = Callable[["Context"], None]
Scan = Callable[["ReceivedFrame"], "str | bool | None"]
"""A scan returns None (not relevant), True (correct) or a description of the violation."""

CASES: dict[str, Check] = {}
SCANS: dict[str, Scan] = {}
EARLY: dict[str, Check] = {}
"""Functions that start the long waits of some cases before the first case runs."""


def case(*ids: str) -> Callable[[Check], Check]:
    """Register a case under its ids."""

    def register(check: Check) -> Check:
        for name in ids:
            if name in CASES or name in SCANS:
                raise ValueError(f"two checks for {name}")
            CASES[name] = check
        return check

    return register


def early(*ids: str) -> Callable[[Check], Check]:
    """Register a function that starts the long wait of a case; see `Context.long_waits`."""

    def register(begin: Check) -> Check:
        EARLY.update(dict.fromkeys(ids, begin))
        return begin

    return register


def scan(name: str) -> Callable[[Scan], Scan]:
    """Register a scan under its id."""

    def register(check: Scan) -> Scan:
        if name in CASES or name in SCANS:
            raise ValueError(f"two checks for {name}")
        SCANS[name] = check
        return check

    return register


def cases_of(table: Iterable[tuple[str, Any]], run: Callable[[Context, Any], None]) -> None:
    """Register one case for each row of a table: the same function with other data."""
    for name, row in table:

        def check(ctx: Context, row: Any = row) -> None:
            run(ctx, row)

        case(name)(check)


def load_suites() -> None:
    """Import every suite, which registers its checks."""
    for name in SUITES:
        import_module(f"conformance.suites.{name}")


@dataclass(frozen=True)
class Exchange:
    """Data sent or received, shortened for a report."""

    sent: bool
    data: bytes
    size: int
    connection: int
    head: str = ""
    """Over HTTP: the request line or status line, and the headers that matter."""


@dataclass
class Trial:
    """The result of one case in one revision."""

    case: str
    revision: str
    status: Status
    reason: str = ""
    seconds: float = 0.0
    connections: int = 0
    evidence: list[Exchange] = field(default_factory=list)
    stderr: bytes = b""
