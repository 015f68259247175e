"""The engine's errors. Each is a fact with its data.

No error knows a JSON-RPC code or an HTTP status; the daemon maps them. Messages name the thing and
the rule that was broken. They contain no memory text, no SQL and no path except one that the caller
gave, because a caller may show them to others.
"""


class StoreError(Exception):
    """An operation failed, and nothing of it was written."""


# --- invalid arguments ------------------------------------------------------------------------


class InvalidInput(StoreError):
    """A value breaks a rule of the engine. `field` and `rule` name both."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule

    def within(self, place: str) -> "InvalidInput":
        """The same error with a longer path: `text` becomes `memories[3].text`."""
        self.field = f"{place}.{self.field}"
        self.args = (f"{self.field}: {self.rule}",)
        return self


class TextTooLong(InvalidInput):
    """A text is longer than its limit."""

    def __init__(self, field: str, size: int, limit: int) -> None:
        super().__init__(field, f"is {size} bytes of UTF-8, the limit is {limit}")
        self.size = size
        self.limit = limit


class TextNotStorable(InvalidInput):
    """A text contains U+0000 or an unpaired surrogate and could not be returned byte-identical."""


class NumberNotFinite(InvalidInput):
    """A number is NaN or infinite."""

    def __init__(self, field: str) -> None:
        super().__init__(field, "must be a finite number")


class BankNameInvalid(InvalidInput):
    """A bank name breaks the rules for bank names."""

    def __init__(self, rule: str) -> None:
        super().__init__("bank", rule)


class ImportRefused(InvalidInput):
    """A file cannot be imported: it is damaged or has another format."""


# --- missing or existing things ---------------------------------------------------------------


class BankNotFound(StoreError):
    """No bank has this name."""

    def __init__(self, bank: str) -> None:
        super().__init__(f"no memory bank named {bank!r}")
        self.bank = bank


class BankExists(StoreError):
    """Another bank has this name."""

    def __init__(self, bank: str) -> None:
        super().__init__(f"a memory bank named {bank!r} exists already")
        self.bank = bank


class NotFound(StoreError):
    """The bank has no item, document or other thing of this kind with this id."""

    def __init__(self, kind: str, id: str) -> None:
        super().__init__(f"no {kind} with id {id!r}")
        self.kind = kind
        self.id = id


class KeyReused(StoreError):
    """An idempotency key was used again with other content."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used before with other content")
        self.key = key


class ItemChanged(StoreError):
    """The item was changed in the meantime, so this change was not made."""

    def __init__(self, id: str) -> None:
        super().__init__(f"item {id!r} was changed in the meantime; this change was not made")
        self.id = id


class UndoExpired(StoreError):
    """The time to undo a forget is over, or nothing was forgotten with this token."""

    def __init__(self, id: str) -> None:
        super().__init__(f"{id!r} is not within an undo window")
        self.id = id


class QuotaExceeded(StoreError):
    """A write was refused because the bank would then have `used` bytes or more."""

    def __init__(self, bank: str, used: int, quota: int) -> None:
        super().__init__(f"bank {bank!r} would hold {used} bytes, its quota is {quota}")
        self.bank = bank
        self.used = used
        self.quota = quota


class TooManyBanks(StoreError):
    """The limit of banks is reached."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"there are {limit} banks already, which is the limit")
        self.limit = limit


# --- models -----------------------------------------------------------------------------------


class WrongModel(StoreError):
    """The bank contains vectors of another model."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"vectors are of model {found!r}, this bank uses {expected!r}")
        self.found = found
        self.expected = expected


class EmbedderFailed(StoreError):
    """The embedding model returned no usable vector."""


# --- storage ----------------------------------------------------------------------------------


class StorageError(StoreError):
    """The database or the disk reported an error."""


class StorageFull(StorageError):
    """The disk is full. Reads still work; writes work again as soon as there is space."""


class StorageReadOnly(StorageError):
    """The file system or the file is read-only."""


class StorageBusy(StorageError):
    """Another process holds the database, or a read exceeded its time limit."""


class StorageFailed(StorageError):
    """An I/O error occurred. Only reading shows whether the last write was stored."""


class StorageDamaged(StorageError):
    """Stored data is damaged."""


class StorageReplaced(StorageError):
    """The database file was deleted or replaced while it was open. Writing has stopped."""


class StorageForeign(StorageError):
    """The file in the place of a database is not one of recalld. It was not changed."""


class StorageClosed(StorageError):
    """The engine, or this bank, is closed."""


class SchemaTooNew(StorageError):
    """A newer version of this program wrote the database. It was not changed."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(
            f"the database has schema {found}, this program knows up to {known}: use a newer one"
        )
        self.found = found
        self.known = known


class EraseIncomplete(StorageError):
    """The erased items are unreachable, but some copies of them may still exist on the disk.

    The engine keeps trying. `erase`, or opening the bank again, completes the erase.
    """
