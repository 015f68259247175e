"""The storage port: the interface between the rows of a bank and the database that holds them.

The engines share the modules above this port (`rows`, `search`, `vectors`, `exporting`, `sources`
and `operations`). An engine implements the port and contains everything that only its database
has. `store.sqlite` is one implementation, `store.postgres` another one.

**SQL is shared as text.** A statement that passes through `Connection.execute` must be valid for
all engines. So it uses this subset:

- Parameters are `?`. The same parameter is never bound twice with one number.
- `INSERT` names its columns. Conflicts are `ON CONFLICT … DO NOTHING` or `DO UPDATE` with a target.
- A sub-select in FROM has a name. No `rowid`, no `IS ?`, no functions that only one database has.
- A statement concerns one bank. It does not name the bank: the connection adds it where the tables
  of several banks are one table.

Where the databases differ, the statement is composed with a member of `Connection.dialect`, or it
is a method of `Connection.words`.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

#: An SQL condition on `items`, composed of constants, and the values of its parameters.
Condition = tuple[str, Sequence[Any]]
EVERYTHING: Condition = ("", ())


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Words(Protocol):
    """The tokens of the live items of a bank, and for each token the items that have it."""

    def add(self, item: int, tokens: str) -> None: ...

    def replace(self, item: int, tokens: str) -> None: ...

    def remove(self, item: int) -> None: ...

    def tokens(self, items: Sequence[int]) -> list[tuple[int, str]]:
        """The tokens of those of these items that have any, in no particular order."""
        ...

    def postings(
        self, terms: Sequence[str], most: int, among: Condition = EVERYTHING
    ) -> dict[str, list[int]]:
        """For each term the newest items that have it, at most `most`, newest first."""
        ...

    def with_all(
        self,
        terms: Sequence[str],
        most: int,
        among: Condition = EVERYTHING,
        *,
        oldest_first: bool = False,
    ) -> list[int]:
        """The items that have every one of these terms, at most `most`, in order of age."""
        ...


class Dialect(Protocol):
    """The parts of statements in which databases differ."""

    @property
    def locked(self) -> str:
        """Follows a SELECT of the bank's counters that are about to be changed."""
        ...

    @property
    def contains(self) -> str:
        """Whether an item's title or text contains the parameter, which is case-folded."""
        ...

    @property
    def has_tag(self) -> str:
        """Whether the parameter is a tag of the item."""
        ...

    @property
    def asks(self) -> str:
        """Whether the text of an item ends with a question mark."""
        ...

    @property
    def each_tag(self) -> str:
        """Joins `items` with its tags; a tag is `tag.value`."""
        ...

    @property
    def texts(self) -> str:
        """A SELECT of the texts in the parameter, which is a JSON array."""
        ...

    @property
    def numbers(self) -> str:
        """A SELECT of the whole numbers in the parameter, which is a JSON array."""
        ...

    def member(self, column: str, name: str) -> str:
        """The member of a JSON column, as text."""
        ...

    def has_member(self, name: str, wanted: Any) -> tuple[str, list[Any]]:
        """Whether a member of the item's metadata equals a JSON value, with the parameters.

        The number 1 equals neither true nor the string "1".
        """
        ...


class Connection(Protocol):
    """A connection to the tables of one bank, inside a transaction."""

    @property
    def words(self) -> Words: ...

    @property
    def dialect(self) -> Dialect: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Sequence[Sequence[Any]], /) -> object: ...

    def stored_bytes(self) -> int:
        """The space that the bank takes in the database; for its quota."""
        ...


Work = Callable[[Connection], T]


class Database(Protocol):
    """Where units of work run. A unit of work may run twice (`store/README.md`, rule 3)."""

    @property
    def is_full(self) -> bool:
        """Whether the last write failed for lack of space."""
        ...

    async def read(self, work: Work[T], *, seconds: float = ...) -> T:
        """Run `work` without the right to write; all its statements see one state of the data."""
        ...

    async def write(self, work: Work[T], *, then: Callable[[], None] | None = None) -> T:
        """Run `work` in a transaction and return after its COMMIT.

        `then` updates state in memory. It is called once, on the event loop, after the COMMIT.
        """
        ...
