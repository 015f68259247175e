"""What the engine can fail at, in its own words: each failure is a fact that carries its data.

Nothing here knows a number, a status or a wire. Messages name the thing and the rule that was
broken; they never hold memory text, SQL or a path (but one the caller gave), because a caller may
pass them on to a stranger.
"""


class StoreError(Exception):
    """The engine could not do what was asked; nothing of it was written."""


# --- what the caller asked for cannot be asked ------------------------------------------------


class InvalidInput(StoreError):
    """A value breaks a rule of the engine. `field` and `rule` say which."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def within(self, place: str) -> "InvalidInput":
        """The same fault, seen from further out: `text` becomes `memories[3].text`."""
        self.field = f"{place}.{self.field}"
        self.args = (f"{self.field}: {self.rule}",)
        return self


class TextTooLong(InvalidInput):
    """A text is longer than the engine keeps."""

    def __init__(self, field: str, size: int, limit: int) -> None:
        super().__init__(field, f"is {size} bytes of UTF-8, the limit is {limit}")
        self.size = size
        self.limit = limit


class TextNotStorable(InvalidInput):
    """A text holds U+0000 or half a surrogate pair, which cannot come back byte-identical."""


class NumberNotFinite(InvalidInput):
    """A number is NaN or infinite."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "must be a finite number")


class BankNameInvalid(InvalidInput):
    """A bank name breaks the rules for bank names."""

    def __init__(self, rule: str) -> None:
        super().__init__("bank", rule)


class ImportRefused(InvalidInput):
    """A file offered for import is not what it says it is."""


# --- what was named is not there, or is there already -----------------------------------------


class BankNotFound(StoreError):
    def __init__(self, bank: str) -> None:
        super().__init__(f"no memory bank named {bank!r}")
        self.bank = bank


class BankExists(StoreError):
    def __init__(self, bank: str) -> None:
        super().__init__(f"a memory bank named {bank!r} exists already")
        self.bank = bank


class NotFound(StoreError):
    """No item, document or other thing of that kind has this id in this bank."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"no {kind} with id {id!r}")
        self.kind = kind
        self.id = id


class KeyReused(StoreError):
    """An idempotency key came back with other content than the first time."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used before with other content")
        self.key = key


class UndoExpired(StoreError):
    """The undo window of a forget is over, or the thing was never forgotten."""

    def __init__(self, id: str) -> None:
        super().__init__(f"{id!r} is not within an undo window")
        self.id = id


class QuotaExceeded(StoreError):
    """What was to be written does not fit: with it the bank would hold `used` bytes or more."""

    def __init__(self, bank: str, used: int, quota: int) -> None:
        super().__init__(f"bank {bank!r} would hold {used} bytes, its quota is {quota}")
        self.bank = bank
        self.used = used
        self.quota = quota


class TooManyBanks(StoreError):
    def __init__(self, limit: int) -> None:
        super().__init__(f"there are {limit} banks already, which is the limit")
        self.limit = limit


# --- models -----------------------------------------------------------------------------------


class WrongModel(StoreError):
    """Vectors of one model were offered where another model's live."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"vectors are of model {found!r}, this bank uses {expected!r}")
        self.found = found
        self.expected = expected


class EmbedderFailed(StoreError):
    """The embedding model gave no usable vector."""


# --- the storage below us ---------------------------------------------------------------------


class StorageError(StoreError):
    """The database or the disk below it said no."""


class StorageFull(StorageError):
    """No space left; reading goes on, and writing works again as soon as there is space."""


class StorageReadOnly(StorageError):
    """The file system or the file may not be written."""


class StorageBusy(StorageError):
    """Another process holds the database, or a read took longer than it may."""


class StorageFailed(StorageError):
    """Input/output failed below us. Whether the last write survives is unknown until it is read."""


class StorageDamaged(StorageError):
    """What the disk gave back is not what was stored."""


class StorageReplaced(StorageError):
    """The database file was deleted or exchanged under a running engine; writing has stopped."""


class StorageForeign(StorageError):
    """A file where our database should be is not ours; it was not touched."""


class StorageClosed(StorageError):
    """The engine, or this bank, is closed."""


class SchemaTooNew(StorageError):
    """The database was written by a newer version of this program; it was not touched."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database has schema {found}, this program knows up to {known}: use a newer one"
        )
        self.found = found
        self.known = known


class EraseIncomplete(StorageError):
    """What was erased is unreachable, but copies could not be shown to be gone yet.

    The engine keeps trying; `erase` again, or opening the bank again, completes it.
    """
