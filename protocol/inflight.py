"""Table of the requests of one connection that are in flight.

A request is added when it is decoded and removed exactly once, when it is answered or cancelled.
Therefore a late cancellation finds nothing, a second request with an id in flight is detected, and
the answer to a cancelled request is never sent.
"""

from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class InFlight(Generic[Entry]):
    """Entries by request identity (`jsonrpc.identity`)."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def begin(self, key: bytes, entry: Entry) -> bool:
        """Add an entry; False, without a change, when that id is already in flight."""
        return self._entries.setdefault(key, entry) is entry

    def finish(self, key: bytes, entry: Entry) -> bool:
        """Remove an entry; False when it was removed before."""
        if self._entries.get(key) is not entry:
            return False
        del self._entries[key]
        return True

    def get(self, key: bytes) -> Entry | None:
        return self._entries.get(key)

    def values(self) -> list[Entry]:
        return list(self._entries.values())
