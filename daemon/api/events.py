"""Events for pages: a bank was changed, a sync goes on, the health has changed.

A subscriber keeps only the latest event of each subject, so a slow reader costs little memory and
many writes in a short time become one event.
"""

from collections.abc import Callable
from typing import Any, Final

import anyio
import msgspec
from msgspec import Struct

from daemon.tools.authority import Principal

_encoder: Final = msgspec.json.Encoder()


class Event(Struct, frozen=True, kw_only=True):
    """One event. Events of the same kind and subject replace each other."""

    kind: str
    subject: str
    data: dict[str, Any]

    def frame(self) -> bytes:
        """The event as server-sent events spell it."""
        return b"event: %s\ndata: %s\n\n" % (self.kind.encode(), _encoder.encode(self.data))


class EventSubscriber:
    """The waiting events of one reader; a bank or None for all that the caller may read."""

    def __init__(self, principal: Principal, bank: str | None) -> None:
        self._principal = principal
        self._bank = bank
        self._waiting: dict[tuple[str, str], Event] = {}
        self._arrived = anyio.Event()

    def offer(self, event: Event) -> None:
        if self._is_wanted(event):
            self._waiting[event.kind, event.subject] = event
            self._arrived.set()

    def _is_wanted(self, event: Event) -> bool:
        granted = self._principal.banks
        match event.kind:
            case "change":
                is_seen = granted is None or event.subject in granted
                return is_seen and self._bank in (None, event.subject)
            case "sync":
                return self._principal.is_owner
            case _:
                return True

    async def next(self) -> list[Event]:
        """Wait for events; those that arrived, oldest first."""
        await self._arrived.wait()
        self._arrived = anyio.Event()
        events = list(self._waiting.values())
        self._waiting.clear()
        return events


class EventHub:
    """The readers of this process. `now` returns the time in ISO 8601."""

    def __init__(self, now: Callable[[], str]) -> None:
        self._now = now
        self._subscribers: set[EventSubscriber] = set()

    def join(self, subscriber: EventSubscriber) -> None:
        self._subscribers.add(subscriber)

    def leave(self, subscriber: EventSubscriber) -> None:
        self._subscribers.discard(subscriber)

    def __len__(self) -> int:
        return len(self._subscribers)

    def bank_changed(self, bank: str) -> None:
        self._publish("change", bank, {"bank": bank, "name": "changed", "ids": None})

    def sync_went_on(
        self, source: str, phase: str, done: int, total: int, *, is_running: bool
    ) -> None:
        data = {"source": source, "phase": phase, "done": done, "total": total}
        self._publish("sync", source, {**data, "running": is_running})

    def _publish(self, kind: str, subject: str, data: dict[str, Any]) -> None:
        if self._subscribers:
            event = Event(kind=kind, subject=subject, data={**data, "at": self._now()})
            for subscriber in self._subscribers:
                subscriber.offer(event)
