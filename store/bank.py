"""The interface to banks in use: one bank, all banks of an engine, and the catalogue beside them.

It belongs to the storage port (`database.py`). The operations that all engines share use it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from store.database import Database
from store.model import Bank
from store.sessions import Sessions


class OpenBank(Protocol):
    """A bank in use."""

    @property
    def bank(self) -> Bank: ...

    @property
    def name(self) -> str: ...

    @property
    def database(self) -> Database: ...

    @property
    def is_shared(self) -> bool:
        """Whether other processes may write to the bank as well."""
        ...

    @property
    def snapshot(self) -> Path | None:
        """The file that holds the vector graph between two starts; None if it is not kept."""
        ...

    @property
    def files(self) -> AbstractContextManager[Any]:
        """Held by threads that write the snapshot. The event loop must not wait for it."""
        ...

    def delete_snapshot(self, *, then: Callable[[], None]) -> None:
        """Delete the snapshot and call `then`, which resets the cache it came from."""
        ...

    def disk_bytes(self) -> int | None:
        """The size of the bank's files; None if the bank has no files of its own."""
        ...


class Banks(Protocol):
    """The banks of an engine."""

    def use(self, name: str) -> AbstractAsyncContextManager[OpenBank]:
        """Keep a bank in use for the duration of a block, or raise `BankNotFound`."""
        ...

    async def ensure(self, name: str) -> Bank:
        """The bank of that name, created if there is none."""
        ...

    async def listed(self) -> list[Bank]:
        """All banks, by name."""
        ...

    def open_banks(self) -> Sequence[OpenBank]: ...


class Catalogue(Protocol):
    """What an engine stores beside its banks."""

    @property
    def database(self) -> Database: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def now(self) -> Callable[[], int]: ...
