"""Operations on banks: list, create, describe, change, check, back up, restore and delete."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.api.operation import Operation
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.specification import NoArguments, ToolSpec
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
    """A backup of a bank, kept in the data directory."""

    name: str
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


async def create(toolkit: Toolkit, arguments: CreateArguments, _context: Context) -> BankView:
    bank = await toolkit.engine.create_bank(arguments.name, quota_bytes=arguments.quota_bytes)
    return _bank(bank)


async def describe(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> BankStats:
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


async def change(toolkit: Toolkit, arguments: ChangeArguments, _context: Context) -> BankView:
    """Rename a bank or set its quota."""
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


async def delete(toolkit: Toolkit, arguments: DeleteArguments, _context: Context) -> BankDeleted:
    if arguments.confirm != arguments.bank:
        raise ArgumentsRefused("confirm: must repeat the name of the bank")
    await toolkit.engine.delete_bank(arguments.bank)
    return BankDeleted(deleted=arguments.bank)


async def check(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Checked:
    return await toolkit.engine.check(arguments.bank)


async def back_up(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Backup:
    return _backup(await toolkit.engine.back_up(arguments.bank))


async def backups(toolkit: Toolkit, arguments: BankArguments, _context: Context) -> Backups:
    found = await toolkit.engine.backups(arguments.bank)
    return Backups(backups=[_backup(each) for each in found])


async def restore(toolkit: Toolkit, arguments: RestoreArguments, _context: Context) -> Backup:
    """Replace a bank by one of its backups; the replaced state is backed up first."""
    return _backup(await toolkit.engine.restore(arguments.bank, arguments.backup))


def _bank(bank: Bank) -> BankView:
    return BankView(name=bank.name, created_at=iso(bank.created_at), quota_bytes=bank.quota_bytes)


def _backup(backup: BackedUp) -> Backup:
    return Backup(
        name=backup.name, bytes=backup.bytes, items=backup.items, made_at=iso(backup.made_at)
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    bank = "/banks/{bank}"
    return [
        Operation(
            verb="GET",
            path="/banks",
            tag=TAG,
            spec=ToolSpec(
                name="list_banks",
                description="The banks that the caller may read.",
                run=partial(list_banks, toolkit),
                output=Banks,
                read_only=True,
            ),
        ),
        Operation(
            verb="POST",
            path="/banks",
            tag=TAG,
            status=201,
            for_owner=True,
            example={"name": "work"},
            spec=ToolSpec(
                name="create_bank",
                description="Create an empty bank.",
                arguments=CreateArguments,
                run=partial(create, toolkit),
                output=BankView,
            ),
        ),
        Operation(
            verb="GET",
            path=bank,
            tag=TAG,
            spec=ToolSpec(
                name="get_bank",
                description="A bank with its counts and its size on disk.",
                arguments=BankArguments,
                run=partial(describe, toolkit),
                output=BankStats,
                read_only=True,
            ),
        ),
        Operation(
            verb="PATCH",
            path=bank,
            tag=TAG,
            for_owner=True,
            example={"quota_bytes": 1_000_000_000},
            spec=ToolSpec(
                name="change_bank",
                description="Rename a bank or set its quota; a quota of 0 removes it.",
                arguments=ChangeArguments,
                run=partial(change, toolkit),
                output=BankView,
                fields={"new_name": "name"},
            ),
        ),
        Operation(
            verb="DELETE",
            path=bank,
            tag=TAG,
            for_owner=True,
            spec=ToolSpec(
                name="delete_bank",
                description="Delete a bank and its files. `confirm` repeats the bank's name.",
                arguments=DeleteArguments,
                run=partial(delete, toolkit),
                output=BankDeleted,
                destructive=True,
            ),
        ),
        Operation(
            verb="POST",
            path=f"{bank}/check",
            tag=TAG,
            for_owner=True,
            spec=ToolSpec(
                name="check_bank",
                description="Verify every row and index of a bank.",
                arguments=BankArguments,
                run=partial(check, toolkit),
                output=Checked,
                read_only=True,
            ),
        ),
        Operation(
            verb="GET",
            path=f"{bank}/backups",
            tag=TAG,
            for_owner=True,
            spec=ToolSpec(
                name="list_backups",
                description="The backups of a bank, newest first.",
                arguments=BankArguments,
                run=partial(backups, toolkit),
                output=Backups,
                read_only=True,
            ),
        ),
        Operation(
            verb="POST",
            path=f"{bank}/backups",
            tag=TAG,
            status=201,
            for_owner=True,
            spec=ToolSpec(
                name="back_up_bank",
                description="Make a verified backup of a bank.",
                arguments=BankArguments,
                run=partial(back_up, toolkit),
                output=Backup,
            ),
        ),
        Operation(
            verb="POST",
            path=f"{bank}/restore",
            tag=TAG,
            for_owner=True,
            example={"backup": "2026-11-16T10-00-00Z"},
            spec=ToolSpec(
                name="restore_bank",
                description="Replace a bank by a backup. The present state is backed up first.",
                arguments=RestoreArguments,
                run=partial(restore, toolkit),
                output=Backup,
                destructive=True,
                fields={"name": "backup"},
            ),
        ),
    ]
