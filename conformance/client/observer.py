"""The interface by which a peer reports every frame that it sends and receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from conformance.client.frames import Frame

if TYPE_CHECKING:
    from conformance.client.peer import Peer


@dataclass(frozen=True)
class Sent:
    """A request that the client sent."""

    id: Any
    method: str
    params: dict[str, Any]
    revision: str
    raw: bytes
    honest: bool = True
    """Whether the request is valid in its revision; only replies to valid requests are judged."""


@dataclass(frozen=True)
class ReceivedFrame:
    """One frame from the server, with the request that it answers and the state of its peer."""

    frame: Frame
    revision: str
    sent: Sent | None
    is_repeated: bool
    peer: Peer


class Observer:
    """Receives a report of every frame. The context overrides both methods."""

    def sent(self, peer: Peer, data: bytes) -> None:
        pass

    def received(self, received: ReceivedFrame) -> None:
        pass
