"""The base of the operations that the command line sends to a daemon, as values.

`bank_administration` has the operations of `recalld bank`, and `memory_operations` those of
`recalld add`, `search` and the other commands about single memories.
"""

import os
from datetime import UTC, datetime
from typing import Any, ClassVar

from msgspec import Struct

from store.engine import Engine, Progress
from store.errors import StoreError

#: The result of an operation: plain JSON, as `--json` prints it.
Done = dict[str, Any]


class FileRefused(StoreError):
    """A file named by the caller cannot be read or written; the message shows its path."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(f"{path}: {os.strerror(error.errno) if error.errno else error}")


class Verb(Struct, frozen=True, kw_only=True, tag_field="verb", tag=str.lower):
    """An operation on the bank of this name."""

    bank: str = ""
    #: Whether no other operation may run on the bank at the same time.
    is_alone: ClassVar[bool] = True
    #: Whether subscribers of the bank are notified.
    is_change: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    @property
    def banks(self) -> tuple[str, ...]:
        """The banks that the operation affects."""
        return (self.bank,)

    async def run(self, engine: Engine, progress: Progress) -> Done:
        raise NotImplementedError


def moment(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
