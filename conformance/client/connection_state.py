"""The state that requests of earlier cases have left on a connection."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.client.frames import key
from conformance.client.observer import Sent

LISTEN = "subscriptions/listen"


class ConnectionState:
    """A log level cannot be undone; subscriptions to resources can."""

    def __init__(self) -> None:
        self.has_level = False
        self.uris: set[str] = set()
        self.listens: dict[tuple[str, Any], Any] = {}
        """The ids of subscriptions that may still be open, by their key."""
        self.asked_for_logs = False
        self.tokens: dict[tuple[str, Any], set[tuple[str, Any]]] = {}
        """The requests of each progress token."""

    def note(self, sent: Sent) -> None:
        """Remember the change of a request that succeeded."""
        uri = str(sent.params.get("uri"))
        if sent.method == "logging/setLevel":
            self.has_level = True
        elif sent.method == "resources/subscribe":
            self.uris.add(uri)
        elif sent.method == "resources/unsubscribe":
            self.uris.discard(uri)

    def note_meta(self, sent: Sent) -> None:
        """Remember the progress token of a request, and whether it wants log messages."""
        if sent.method == LISTEN:
            self.listens[key(sent.id)] = sent.id
        meta = sent.params.get("_meta")
        if isinstance(meta, dict):
            self.asked_for_logs = self.asked_for_logs or revisions.LOG_LEVEL in meta
            if "progressToken" in meta:
                self.tokens.setdefault(key(meta["progressToken"]), set()).add(key(sent.id))

    @property
    def is_changed(self) -> bool:
        return self.has_level or bool(self.uris)
