"""Operations on banks: list, create, describe, change, check, back up, restore and delete."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.api.operation import Operation, operation
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments
from daemon.tools.toolkit import Toolkit, iso
from store.model import BackedUp, Bank, Checked

TAG = "banks"
#: An empty bank takes some 200 KB, so a smaller quota would refuse every memory.
LEAST_QUOTA = 1_048_576
Quota = Annotated[int, Meta(ge=LEAST_QUOTA)]


class BankView(Struct, frozen=True, kw_only=True):
    """A bank."""

    name: str
    created_at: str
    quota_bytes: int | None


class Banks(Struct, frozen=True, kw_only=True):
    banks: list[BankView]


class BankStats(Struct, frozen=True, kw_only=True):
    """A bank with exact counts."""

    name: str
    created_at: str
    quota_bytes: int | None
    items: int
    by_kind: Mapping[str, int]
    by_category: Mapping[str, int]
    by_source: Mapping[str, int]
    sessions: int
    documents: int
    forgotten: int
    pending_vectors: int
    oldest_at: str | None
    newest_at: str | None
    disk_bytes: int
    model: str | None


class BankArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str


class CreateArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    quota_bytes: Quota | None = None


class ChangeArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    name: str | UnsetType = UNSET
    #: 0 removes the quota.
    quota_bytes: Annotated[int, Meta(ge=0)] | UnsetType = UNSET


class DeleteArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    confirm: str


class RestoreArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    backup: str


class BankDeleted(Struct, frozen=True, kw_only=True):
    deleted: str


class Backup(Struct, frozen=True, kw_only=True):
    """A backup of a bank, kept in the data directory at `path`."""

    name: str
    path: str | None
    bytes: int
    items: int
    made_at: str


class Backups(Struct, frozen=True, kw_only=True):
    backups: list[Backup]


async def list_banks(toolkit: Toolkit, _arguments: NoArguments, context: Context) -> Banks:
    """The banks that the caller may read; others are not mentioned."""
    granted = context.principal.banks
    return Banks(
        banks=[
            _bank(bank)
            for bank in await toolkit.engine.banks()
            if granted is None or bank.name in granted
        ]
    )


async def create_bank(toolkit: Toolkit, arguments: CreateArguments, _context: Context) -> BankView:
    """Create an empty bank."""
    bank = await toolkit.engine.create_bank(arguments.name, quota_bytes=arguments.quota_bytes)
    return _bank(bank)


async def get_bank(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> BankStats:
    """A bank with its counts and its size on disk."""
    bank = await toolkit.engine.bank(arguments.bank)
    stats = await toolkit.engine.stats(arguments.bank)
    return BankStats(
        name=bank.name,
        created_at=iso(bank.created_at),
        quota_bytes=bank.quota_bytes,
        items=stats.items,
        by_kind=stats.by_kind,
        by_category=stats.by_category,
        by_source=stats.by_label,
        sessions=stats.sessions,
        documents=stats.documents,
        forgotten=stats.forgotten,
        pending_vectors=stats.pending_vectors,
        oldest_at=None if stats.oldest_at is None else iso(stats.oldest_at),
        newest_at=None if stats.newest_at is None else iso(stats.newest_at),
        disk_bytes=stats.disk_bytes,
        model=stats.model,
    )


async def change_bank(toolkit: Toolkit, arguments: ChangeArguments, _context: Context) -> BankView:
    """Rename a bank or set its quota; a quota of 0 removes it."""
    if arguments.name is UNSET and arguments.quota_bytes is UNSET:
        raise ArgumentsRefused("name: give name or quota_bytes, else nothing changes")
    if arguments.quota_bytes is not UNSET and 0 < arguments.quota_bytes < LEAST_QUOTA:
        raise ArgumentsRefused(f"quota_bytes: must be 0 or at least {LEAST_QUOTA}")
    bank = await toolkit.engine.bank(arguments.bank)
    if arguments.quota_bytes is not UNSET:
        bank = await toolkit.engine.set_quota(bank.name, arguments.quota_bytes or None)
    if arguments.name is not UNSET and arguments.name != bank.name:
        bank = await toolkit.engine.rename_bank(bank.name, arguments.name)
    return _bank(bank)


async def delete_bank(
    toolkit: Toolkit, arguments: DeleteArguments, _context: Context
) -> BankDeleted:
    """Delete a bank and its files. `confirm` repeats the bank's name."""
    if arguments.confirm != arguments.bank:
        raise ArgumentsRefused("confirm: must repeat the name of the bank")
    await toolkit.engine.delete_bank(arguments.bank)
    return BankDeleted(deleted=arguments.bank)


async def check_bank(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Checked:
    """Verify every row and index of a bank."""
    return await toolkit.engine.check(arguments.bank)


async def repair_bank(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Checked:
    """Move damaged rows out of a bank, rebuild derived data where needed, and check again."""
    return await toolkit.engine.repair(arguments.bank)


async def back_up_bank(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Backup:
    """Make a verified backup of a bank."""
    return _backup(await toolkit.engine.back_up(arguments.bank))


async def list_backups(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Backups:
    """The backups of a bank, newest first."""
    found = await toolkit.engine.backups(arguments.bank)
    return Backups(backups=[_backup(each) for each in found])


async def restore_bank(toolkit: Toolkit, arguments: RestoreArguments, _context: Context) -> Backup:
    """Replace a bank by a backup. The present state is backed up first."""
    return _backup(await toolkit.engine.restore(arguments.bank, arguments.backup))


def _bank(bank: Bank) -> BankView:
    return BankView(name=bank.name, created_at=iso(bank.created_at), quota_bytes=bank.quota_bytes)


def _backup(backup: BackedUp) -> Backup:
    return Backup(
        name=backup.name,
        path=backup.path,
        bytes=backup.bytes,
        items=backup.items,
        made_at=iso(backup.made_at),
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    bank, quota = "/banks/{bank}", {"quota_bytes": 1_000_000_000}
    backup = {"backup": "001763460000000-0123abcd"}
    return [
        add("GET", "/banks", list_banks),
        add("POST", "/banks", create_bank, status=201, for_owner=True, example={"name": "work"}),
        add("GET", bank, get_bank),
        add("PATCH", bank, change_bank, for_owner=True, example=quota, fields={"new_name": "name"}),
        add("DELETE", bank, delete_bank, for_owner=True),
        add("POST", f"{bank}/check", check_bank, for_owner=True, reads=True, is_long=True),
        add("POST", f"{bank}/repair", repair_bank, for_owner=True, is_long=True),
        add("GET", f"{bank}/backups", list_backups, for_owner=True),
        add("POST", f"{bank}/backups", back_up_bank, status=201, for_owner=True, is_long=True),
        add(
            "POST",
            f"{bank}/restore",
            restore_bank,
            for_owner=True,
            destroys=True,
            is_long=True,
            example=backup,
            fields={"name": "backup"},
        ),
    ]
