"""The interface by which a peer reports every frame that it sends and receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.client.frames import Frame

if TYPE_CHECKING:
    from conformance.client.peer import Peer


@dataclass(frozen=True)
class Sent:
    """A request we made."""

    id: Any
    method: str
    params: dict[str, Any]
    revision: str
    raw: bytes


@dataclass(frozen=True)
class ReceivedFrame:
    """One frame from the server, and what a scan may want to know about the moment it came."""

    frame: Frame
    revision: str
    sent: Sent | None
    again: bool
    peer: Peer


class Observer:
    """Where a peer reports its bytes; the context replaces this with one that remembers."""

    def sent(self, peer: Peer, data: bytes) -> None:
        pass

    def received(self, received: ReceivedFrame) -> None:
        pass
