"""Registry of defects: each has a name, the cases that must fail, and a hook or a quirk.

A hook changes bytes or messages on their way through the reference server; most hooks are two
lines. A quirk is a named switch that the reference server reads at the one place that it changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from conformance.broken.reference import Connection

Message = dict[str, Any]
LineHook = Callable[["Connection", bytes], bytes | None]
MessageHook = Callable[["Connection", Any], Any]
ReplyHook = Callable[["Connection", Message, Message], Any]
NotificationHook = Callable[["Connection", Message], Any]
OutHook = Callable[["Connection", bytes], bytes]


@dataclass(frozen=True)
class Defect:
    """One deliberate violation of the protocol."""

    name: str
    cases: tuple[str, ...]
    about: str
    line: LineHook | None = None
    message: MessageHook | None = None
    reply: ReplyHook | None = None
    notification: NotificationHook | None = None
    out: OutHook | None = None
    quirks: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    """The revision to try the cases in; by default the newest legacy one that they apply to."""


DEFECTS: dict[str, Defect] = {}


def add(defect: Defect) -> Defect:
    if defect.name in DEFECTS:
        raise ValueError(f"two defects are called {defect.name}")
    DEFECTS[defect.name] = defect
    return defect


def quirk(name: str, cases: str, about: str, *, revision: str | None = None, **quirks: Any) -> None:
    """Register a defect that only sets quirks."""
    quirks = quirks or {name.replace("-", "_"): True}
    add(Defect(name, tuple(cases.split()), about, quirks=quirks, revision=revision))


class Registrar(Protocol):
    def __call__(
        self, name: str, cases: str, about: str, revision: str | None = None, **quirks: Any
    ) -> Callable[[Any], Any]: ...


def _hook(kind: str) -> Registrar:
    def named(
        name: str, cases: str, about: str, revision: str | None = None, **quirks: Any
    ) -> Callable[[Any], Any]:
        def register(hook: Any) -> Any:
            hooks: dict[str, Any] = {kind: hook}
            ids = tuple(cases.split())
            add(Defect(name, ids, about, quirks=quirks, revision=revision, **hooks))
            return hook

        return register

    return named


on_line = _hook("line")
"""Changes or drops a line before it is parsed: (connection, bytes) -> bytes or None."""

on_message = _hook("message")
"""Changes or drops a parsed message: (connection, value) -> value or None."""

on_reply = _hook("reply")
"""Changes a response: (connection, request, response) -> response, None, bytes or a list."""

on_notification = _hook("notification")
"""Changes a notification or request of the server: (connection, message) -> as for a reply."""

on_out = _hook("out")
"""Changes the bytes of a frame, LF included: (connection, bytes) -> bytes."""

NO_DEFECT = Defect("none", (), "the reference server without a defect")
