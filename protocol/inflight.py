"""The requests of one connection that have no answer yet.

A request enters when it is taken off the wire and leaves exactly once: answered or cancelled. So a
late cancellation finds nothing, a second request under a living id is seen (D30), and an answer to
a cancelled request cannot be sent.
"""

from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class InFlight(Generic[Entry]):
    """Entries by request identity (see `jsonrpc.identity`)."""

    def __init__(self) -> None:
        self._entries: dict[bytes, Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    def begin(self, key: bytes, entry: Entry) -> bool:
        """Enter; False, and nothing changes, when that id is in flight already."""
        return self._entries.setdefault(key, entry) is entry

    def finish(self, key: bytes, entry: Entry) -> bool:
        """Leave; False when this entry has left before."""
        if self._entries.get(key) is not entry:
            return False
        del self._entries[key]
        return True

    def get(self, key: bytes) -> Entry | None:
        return self._entries.get(key)

    def values(self) -> list[Entry]:
        return list(self._entries.values())
