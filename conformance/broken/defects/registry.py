"""What a defect is: a name, the cases it must fail, and a hook that spoils one behaviour.

Hooks see bytes and messages as they pass, so most defects are two lines. Where the behaviour lies
deeper, a defect sets a *quirk*, which the reference server looks up at that one place.
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
NoteHook = Callable[["Connection", Message], Any]
OutHook = Callable[["Connection", bytes], bytes]


@dataclass(frozen=True)
class Defect:
    """One way to be wrong."""

    name: str
    cases: tuple[str, ...]
    about: str
    line: LineHook | None = None
    message: MessageHook | None = None
    reply: ReplyHook | None = None
    note: NoteHook | None = None
    out: OutHook | None = None
    quirks: Mapping[str, Any] = field(default_factory=dict)
    revision: str | None = None
    """Where the cases are tried; otherwise the newest legacy revision they apply to."""


DEFECTS: dict[str, Defect] = {}


def add(defect: Defect) -> Defect:
    if defect.name in DEFECTS:
        raise ValueError(f"two defects called {defect.name}")
    DEFECTS[defect.name] = defect
    return defect


def quirk(name: str, cases: str, about: str, *, revision: str | None = None, **quirks: Any) -> None:
    """A defect the reference server knows about itself."""
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
"""Spoils or swallows a line before it is read: (connection, bytes) -> bytes or None."""

on_message = _hook("message")
"""Spoils or swallows a message that was read: (connection, value) -> value or None."""

on_reply = _hook("reply")
"""Spoils a response: (connection, request, response) -> response, None, bytes or a list."""

on_note = _hook("note")
"""Spoils a notification or a request of the server: (connection, message) -> as for a reply."""

on_out = _hook("out")
"""Spoils the bytes of a frame, LF included: (connection, bytes) -> bytes."""

NO_DEFECT = Defect("none", (), "the reference server as it is")
