"""Administration of banks: each operation of `recalld bank` as a value that performs itself.

`recalld bank …` sends an operation to the daemon over its socket, or performs it in its own process
if no daemon runs; both use `Caretaker.perform`. No dialect, HTTP route or bridged client can reach
these operations: they replace and destroy data and write files at a path of the caller's choice.

A bank has one operation at a time. A second one is refused with the name of the first.
"""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final

import anyio
import structlog

from daemon.exit_codes import CANNOT_CREATE, CONFIG, LOCKED, USAGE, Exit
from daemon.memory.bank_copy import copy_bank
from daemon.memory.memory_operations import Add, Change, Index, Items, Search, Show, Statistics
from daemon.memory.verbs import Done, FileRefused, Verb, moment
from daemon.storage import open_address, without_password
from store.engine import Engine, Progress
from store.errors import (
    BankExists,
    BankNotFound,
    EmbedderFailed,
    EraseIncomplete,
    ImportRefused,
    InvalidInput,
    ItemChanged,
    NotFound,
    QuotaExceeded,
    StorageBusy,
    StorageClosed,
    StorageDamaged,
    StorageError,
    StoreError,
    TooManyBanks,
    UndoExpired,
)
from store.files import file_error
from store.model import BackedUp, Bank, Checked
from store.validate import bank_name

log: Final = structlog.get_logger()


class List(Verb, frozen=True, kw_only=True):
    is_alone = False
    is_change = False

    @property
    def banks(self) -> tuple[str, ...]:
        return ()

    async def run(self, engine: Engine, progress: Progress) -> Done:
        found: list[Done] = []
        known = await engine.banks()
        for position, bank in enumerate(known):
            progress(position, len(known))
            about: Done = {"items": None, "bytes": None}
            try:
                stats = await engine.stats(bank.name)
                about = {"items": stats.items, "bytes": stats.disk_bytes}
            except StorageError as error:  # a faulty bank must not hide the others
                about["trouble"] = str(error)
            except BankNotFound:
                continue  # deleted in the meantime
            found.append(_described(bank) | about)
        return {"banks": found}


class Recover(Verb, frozen=True, kw_only=True):
    """List banks again that are on disk but not in the catalogue."""

    is_alone = False
    is_change = False

    @property
    def banks(self) -> tuple[str, ...]:
        return ()

    async def run(self, engine: Engine, progress: Progress) -> Done:
        recovered = await engine.recover_banks()
        return {
            "banks": [_described(bank) for bank in recovered.banks],
            "refused": [
                {"directory": directory, "reason": reason}
                for directory, reason in recovered.refused
            ],
        }


class Create(Verb, frozen=True, kw_only=True):
    quota: int | None = None

    async def run(self, engine: Engine, progress: Progress) -> Done:
        return _described(await engine.create_bank(self.bank, quota_bytes=self.quota))


class Rename(Verb, frozen=True, kw_only=True):
    new: str

    @property
    def banks(self) -> tuple[str, ...]:
        return (self.bank, self.new)

    async def run(self, engine: Engine, progress: Progress) -> Done:
        return _described(await engine.rename_bank(self.bank, self.new)) | {"was": self.bank}


class Quota(Verb, frozen=True, kw_only=True):
    """Set the quota in bytes; None removes it."""

    quota: int | None
    is_change = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        return _described(await engine.set_quota(self.bank, self.quota))


class Delete(Verb, frozen=True, kw_only=True):
    async def run(self, engine: Engine, progress: Progress) -> Done:
        await engine.delete_bank(self.bank)
        return {"bank": self.bank, "deleted": True}


class Backup(Verb, frozen=True, kw_only=True):
    is_change = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        made = await engine.back_up(self.bank, progress=progress)
        return {"bank": self.bank, "items": made.items} | _backup(made)


class Backups(Verb, frozen=True, kw_only=True):
    is_alone = False
    is_change = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        found = await engine.backups(self.bank)
        return {"bank": self.bank, "backups": [_backup(each) for each in found]}


class Restore(Verb, frozen=True, kw_only=True):
    backup: str

    async def run(self, engine: Engine, progress: Progress) -> Done:
        before = {each.name for each in await engine.backups(self.bank)}
        restored = await engine.restore(self.bank, self.backup, progress=progress)
        after = await engine.backups(self.bank)
        # A bank that is too damaged to be copied leaves no backup.
        replaced = next((each.name for each in after if each.name not in before), None)
        return {
            "bank": self.bank,
            "backup": self.backup,
            "items": restored.items,
            "replaced": replaced,
        }


class Export(Verb, frozen=True, kw_only=True):
    """`path` is absolute, because the daemon has another working directory than the caller."""

    path: str
    is_change = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        made = await engine.export(self.bank, _absolute(self.path), progress=progress)
        return {
            "bank": self.bank,
            "path": self.path,
            "records": made.records,
            "digest": made.digest,
        }


class Import(Verb, frozen=True, kw_only=True):
    path: str
    is_dry: ClassVar[bool] = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        path = _absolute(self.path)
        # Open the file here first, so that the error message is that of the file system.
        await anyio.to_thread.run_sync(lambda: path.open("rb").close())
        taken = await engine.import_file(self.bank, path, progress=progress, dry_run=self.is_dry)
        return {
            "bank": self.bank,
            "path": self.path,
            "created": taken.created,
            "known": taken.known,
            "createdByType": dict(taken.created_by_type),
            "knownByType": dict(taken.known_by_type),
            "edited": taken.is_edited,
            "dryRun": self.is_dry,
        } | ({} if self.is_dry else await _pending(engine, self.bank))


class Preview(Import, frozen=True, kw_only=True):
    """Count the records of a file that an import would add, without changing anything."""

    is_alone = False
    is_change = False
    is_dry = True


class Forget(Verb, frozen=True, kw_only=True):
    ids: list[str]

    async def run(self, engine: Engine, progress: Progress) -> Done:
        gone = await engine.forget(self.bank, self.ids)
        return {
            "bank": self.bank,
            "items": gone.count,
            "undo": gone.token,
            "undoUntil": moment(gone.undo_until),
        }


class Undo(Verb, frozen=True, kw_only=True):
    undo: str

    async def run(self, engine: Engine, progress: Progress) -> Done:
        return {"bank": self.bank, "items": await engine.undo(self.bank, self.undo)}


class Erase(Verb, frozen=True, kw_only=True):
    """Erase items, also forgotten ones, and whole documents by their ids."""

    ids: list[str]

    async def run(self, engine: Engine, progress: Progress) -> Done:
        items: list[str] = []
        documents: list[str] = []
        for id in dict.fromkeys(self.ids):
            try:
                await engine.document(self.bank, id)
                documents.append(id)
            except NotFound:
                items.append(id)
        gone = await engine.erase(self.bank, items, documents=documents)
        return {
            "bank": self.bank,
            "items": gone.items,
            "documents": gone.documents,
            "copiesRemoved": gone.copies_removed,
        } | ({"remains": gone.remains} if gone.remains else {})


class Check(Verb, frozen=True, kw_only=True):
    repair: bool = False

    async def run(self, engine: Engine, progress: Progress) -> Done:
        look = engine.repair if self.repair else engine.check
        return _checked(self.bank, await look(self.bank, progress=progress))


class Rebuild(Verb, frozen=True, kw_only=True):
    async def run(self, engine: Engine, progress: Progress) -> Done:
        checked = await engine.rebuild(self.bank, progress=progress)
        return _checked(self.bank, checked) | await _pending(engine, self.bank)


class Move(Verb, frozen=True, kw_only=True):
    """Copy a bank, or all of them, to another store, and compare both. The original stays."""

    bank: str = ""
    to: str
    is_all: bool = False
    is_change = False

    @property
    def banks(self) -> tuple[str, ...]:
        return () if self.is_all else (self.bank,)

    async def run(self, engine: Engine, progress: Progress) -> Done:
        known = [bank.name for bank in await engine.banks()]
        names = known if self.is_all else [(await engine.bank(self.bank)).name]
        async with open_address(self.to) as target:
            moved = [await copy_bank(engine, target, name, progress) for name in names]
        return {"to": without_password(self.to), "banks": moved}


AnyVerb = (
    List | Create | Rename | Quota | Delete | Backup | Backups | Restore | Export | Import
    | Forget | Undo | Erase | Check | Rebuild | Recover | Preview
    | Move | Add | Search | Items | Show | Change | Statistics | Index
)  # fmt: skip


class Caretaker:
    """Performs operations on one engine, in a daemon or in a process of its own."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._running: dict[str, str] = {}

    async def perform(self, verb: Verb, progress: Progress) -> Done:
        """The result of the operation; raises `StoreError`, which `refused` explains."""
        with self._alone(verb):
            try:
                done = await verb.run(self._engine, progress)
            except (OSError, InvalidInput) as failure:
                error = failure if isinstance(failure, OSError) else failure.__cause__
                if not isinstance(error, OSError):
                    raise
                if isinstance(verb, Export | Import):
                    raise FileRefused(verb.path, error) from error
                raise file_error(error) from error
        record = log.info if verb.is_alone else log.debug
        record("bank.operation_done", operation=verb.name, bank=verb.bank)
        return done

    @contextmanager
    def _alone(self, verb: Verb) -> Generator[None]:
        names = [bank_name(name) for name in dict.fromkeys(verb.banks)] if verb.is_alone else []
        for name in names:
            if name in self._running:
                other = self._running[name]
                raise StorageBusy(f"bank {name!r} is busy: `{other}` is under way")
        self._running |= dict.fromkeys(names, verb.name)
        try:
            yield
        finally:
            for name in names:
                del self._running[name]


#: The exit code of a failure, and the remedy that the message names.
_REFUSALS: Final[tuple[tuple[type[StoreError], int, str], ...]] = (
    (BankNotFound, USAGE, "; `recalld bank list` shows those there are"),
    (BankExists, USAGE, "; choose another name"),
    (UndoExpired, USAGE, ""),
    (ItemChanged, LOCKED, ""),
    (InvalidInput, USAGE, ""),
    (TooManyBanks, CANNOT_CREATE, "; delete one first"),
    (StorageBusy, LOCKED, "; try again when it is done"),
    (StorageClosed, LOCKED, "; try again"),
    (EraseIncomplete, LOCKED, ""),
    (EmbedderFailed, CONFIG, ""),
)


def refused(failure: StoreError, verb: Verb) -> Exit:
    """Exit code and message for a failed operation."""
    bank = verb.bank
    match failure:
        case ImportRefused():
            path = verb.path if isinstance(verb, Import) else failure.field
            return Exit(USAGE, f"{path}: {failure.rule}; nothing was imported")
        case NotFound(kind="backup"):
            return Exit(USAGE, f"{failure}; `recalld bank backups {bank}` shows those there are")
        case NotFound():
            return Exit(USAGE, f"{failure} in bank {bank!r}; nothing was changed")
        case QuotaExceeded():
            more = "; what came before is kept, and importing again goes on from there"
            return Exit(CANNOT_CREATE, f"{failure}{more if isinstance(verb, Import) else ''}")
        case StorageDamaged():
            return Exit(
                CANNOT_CREATE,
                f"bank {bank!r}: {failure}; try `recalld bank check {bank} --repair`, or restore"
                " a backup",
            )
        case _:
            for kind, code, advice in _REFUSALS:
                if isinstance(failure, kind):
                    return Exit(code, f"{failure}{advice}")
            return Exit(CANNOT_CREATE, str(failure))


async def _pending(engine: Engine, bank: str) -> Done:
    """The vectors that the daemon computes in the background after an operation."""
    return {"pendingVectors": (await engine.stats(bank)).pending_vectors}


def _absolute(path: str) -> Path:
    if not path.startswith("/") or "\0" in path:
        raise InvalidInput("path", "must be absolute")
    return Path(path)


def _described(bank: Bank) -> Done:
    return {
        "bank": bank.name,
        "quotaBytes": bank.quota_bytes,
        "created": moment(bank.created_at),
    }


def _backup(made: BackedUp) -> Done:
    return {"backup": made.name, "bytes": made.bytes, "made": moment(made.made_at)}


def _checked(bank: str, checked: Checked) -> Done:
    return {
        "bank": bank,
        "items": checked.items,
        "documents": checked.documents,
        "problems": [
            {
                "name": problem.name,
                "part": problem.part,
                "count": problem.count,
                "remedy": problem.remedy,
            }
            for problem in checked.problems
        ],
    }
