"""What a check is: a function that talks to a server and either returns, fails, or does not apply.

There are two kinds. A *case* holds a conversation of its own. A *scan* looks at every frame the
server sends during the whole run, whoever asked for it, and tells what is wrong with it.
Both are registered under the id that `requirements.toml` describes.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module, resources
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from conformance import revisions

if TYPE_CHECKING:
    from conformance.client.observer import ReceivedFrame
    from conformance.context import Context

Level = Literal["MUST", "SHOULD", "ours"]
Status = Literal["passed", "failed", "not applicable"]

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
    "concurrency",
    "process",
    "http_basics",
    "mirrored_headers",
    "event_streams",
    "sessions",
    "raw_http",
    "scans",
)


class Failed(Exception):
    """The server did not do what the requirement says."""


class NotApplicable(Exception):
    """The requirement cannot be tried on this server; the message says why."""


def fail(message: str) -> NoReturn:
    raise Failed(message)


def need(claim: object, message: str) -> None:
    """Fail with `message` unless the claim holds."""
    if not claim:
        raise Failed(message)


Check = Callable[["Context"], None]
Scan = Callable[["ReceivedFrame"], "str | bool | None"]
"""A scan answers None (not its business), True (looked, fine) or what is wrong."""

CASES: dict[str, Check] = {}
SCANS: dict[str, Scan] = {}
EARLY: dict[str, Check] = {}
"""What a case that mostly waits sets going before the first case, so that nobody waits for it."""


def case(*ids: str) -> Callable[[Check], Check]:
    """Register a conversation under an id."""

    def register(check: Check) -> Check:
        for name in ids:
            if name in CASES or name in SCANS:
                raise ValueError(f"two checks for {name}")
            CASES[name] = check
        return check

    return register


def early(*ids: str) -> Callable[[Check], Check]:
    """Register what is begun ahead of a case; it keeps what it needs in `Context.vigils`."""

    def register(begin: Check) -> Check:
        EARLY.update(dict.fromkeys(ids, begin))
        return begin

    return register


def scan(name: str) -> Callable[[Scan], Scan]:
    """Register a look at every frame under an id."""

    def register(check: Scan) -> Scan:
        if name in CASES or name in SCANS:
            raise ValueError(f"two checks for {name}")
        SCANS[name] = check
        return check

    return register


def cases_of(table: Iterable[tuple[str, Any]], run: Callable[[Context, Any], None]) -> None:
    """Register one case for each row of a table: the same conversation with other bytes."""
    for name, row in table:

        def check(ctx: Context, row: Any = row) -> None:
            run(ctx, row)

        case(name)(check)


def load_suites() -> None:
    """Import every suite, which registers its checks."""
    for name in SUITES:
        import_module(f"conformance.suites.{name}")


@dataclass(frozen=True)
class Requirement:
    """One row of `requirements.toml`."""

    id: str
    text: str
    source: str
    level: Level
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    once: str = ""
    """Where trying it in every revision would teach nothing: see requirements.toml."""

    @property
    def group(self) -> str:
        return self.id[0]


@cache
def requirements() -> dict[str, Requirement]:
    """Every requirement, in the order of the file."""
    text = resources.files("conformance").joinpath("requirements.toml").read_text("utf-8")
    return {
        name: Requirement(
            id=name,
            text=row["requirement"],
            source=row["source"],
            level=row["level"],
            revisions=revisions.expand(row["revisions"]),
            transports=tuple(row["transports"]),
            once=row.get("once", ""),
        )
        for name, row in tomllib.loads(text).items()
        if name != "groups"
    }


@cache
def group_titles() -> dict[str, str]:
    text = resources.files("conformance").joinpath("requirements.toml").read_text("utf-8")
    titles: dict[str, str] = tomllib.loads(text)["groups"]
    return titles


@dataclass(frozen=True)
class Exchange:
    """A piece of the conversation, shortened, for a report."""

    sent: bool
    data: bytes
    size: int
    connection: int


@dataclass
class Trial:
    """One case tried in one revision."""

    case: str
    revision: str
    status: Status
    reason: str = ""
    seconds: float = 0.0
    evidence: list[Exchange] = field(default_factory=list)
    stderr: bytes = b""
