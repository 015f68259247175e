"""Operations on memories: list, read, add, edit, forget and undo."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from daemon.api.filters import FilterArguments, is_empty
from daemon.api.operation import Operation, operation
from daemon.api.views import Memory, cursor_of, memory_of, position_of, version_of
from daemon.tools.answer_size import fitting
from daemon.tools.authority import authorise
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit, iso, milliseconds, provenance
from store.errors import ItemChanged
from store.model import Forgotten, NewMemory
from store.undo import moved_to

TAG = "memories"
SOURCE = "api"
#: Room for the members of an answer beside its list.
ENVELOPE_BYTES = 1024


class MemoryListArguments(FilterArguments, frozen=True, kw_only=True):
    """`cursor` continues after a page; `offset` jumps, and shifts when memories are added."""

    bank: str
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    cursor: str | None = None
    offset: Annotated[int, Meta(ge=0)] = 0


class MemoryArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str


class AddArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A memory to add. With the same `idempotency_key` a repetition adds nothing."""

    bank: str
    text: Annotated[str, Meta(min_length=1)]
    title: str = ""
    tags: tuple[str, ...] = ()
    context: str | None = None
    category: str | None = None
    source: str = SOURCE
    session: str | None = None
    metadata: Mapping[str, Any] = {}
    occurred_at: str | None = None
    idempotency_key: str | None = None


class EditArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields to change. `if_match` is the `If-Match` header: the version that was read."""

    bank: str
    id: str
    text: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    title: str | UnsetType = UNSET
    tags: tuple[str, ...] | UnsetType = UNSET
    status: str | UnsetType = UNSET
    metadata: Mapping[str, Any] | UnsetType = UNSET
    occurred_at: str | UnsetType = UNSET
    if_match: str | UnsetType = UNSET


class ForgetArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The memories to forget: either `ids`, or `where` with at least one condition."""

    bank: str
    ids: tuple[str, ...] = ()
    where: FilterArguments | None = None
    dry_run: bool = False


class UndoArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    undo: str


class Memories(Struct, frozen=True, kw_only=True):
    """A page of memories, newest first. `next_cursor` leads to the next page."""

    memories: list[Memory]
    total: int
    next_cursor: str | None


class Added(Struct, frozen=True, kw_only=True):
    """The stored memory. `known` is true if an equal one was there already."""

    memory: Memory
    known: bool


class Forgot(Struct, frozen=True, kw_only=True):
    """The number of forgotten memories, and the token that brings them back until `undo_until`."""

    count: int
    undo: str | None
    undo_until: str | None


class Restored(Struct, frozen=True, kw_only=True):
    restored: int


async def list_memories(
    toolkit: Toolkit, arguments: MemoryListArguments, _context: Context
) -> Memories:
    """Memories, newest first, with filters and a cursor or an offset."""
    if arguments.offset and arguments.cursor is not None:
        raise ArgumentsRefused("offset: must not be given together with cursor")
    before = position_of(arguments.cursor) or None
    page = await toolkit.engine.recent(
        arguments.bank,
        kinds=arguments.kinds,
        filters=arguments.filters(),
        limit=arguments.limit,
        offset=arguments.offset,
        before=before,
    )
    shown = fitting(map(memory_of, page.items), toolkit.answer_bytes - ENVELOPE_BYTES)
    has_more = page.next is not None or len(shown) < len(page.items)
    last = page.items[len(shown) - 1].rowid if shown and has_more else None
    return Memories(memories=shown, total=page.total, next_cursor=cursor_of(last))


async def get_memory(toolkit: Toolkit, arguments: MemoryArguments, _context: Context) -> Memory:
    """A memory with its provenance and version."""
    return memory_of(await toolkit.engine.get(arguments.bank, arguments.id))


async def add_memory(toolkit: Toolkit, arguments: AddArguments, context: Context) -> Added:
    """Store a memory. The bank is created if it does not exist."""
    occurred = arguments.occurred_at
    put = await toolkit.engine.put(
        arguments.bank,
        NewMemory(
            text=arguments.text,
            title=arguments.title,
            tags=arguments.tags,
            context=arguments.context,
            category=arguments.category,
            source=arguments.source,
            session=arguments.session,
            metadata=arguments.metadata,
            occurred_at=None if occurred is None else milliseconds("occurred_at", occurred),
            idempotency_key=arguments.idempotency_key,
            provenance=provenance(context, SOURCE),
        ),
    )
    item = await toolkit.engine.get(arguments.bank, put.id)
    return Added(memory=memory_of(item), known=put.duplicate)


async def edit_memory(toolkit: Toolkit, arguments: EditArguments, _context: Context) -> Memory:
    """Change a memory. With If-Match, only this version is changed."""
    given = {
        name: getattr(arguments, name)
        for name in ("text", "title", "tags", "status", "metadata")
        if getattr(arguments, name) is not UNSET
    }
    if arguments.occurred_at is not UNSET:
        given["occurred_at"] = milliseconds("occurred_at", arguments.occurred_at)
    if not given:
        raise ArgumentsRefused("text: give at least one field to change")
    if arguments.if_match is not UNSET:
        item = await toolkit.engine.get(arguments.bank, arguments.id)
        if arguments.if_match.strip('"') not in (version_of(item), "*"):
            raise ItemChanged(arguments.id)
        given["expected_text"] = item.text
    return memory_of(await toolkit.engine.change(arguments.bank, arguments.id, **given))


async def forget_memory(toolkit: Toolkit, arguments: MemoryArguments, _context: Context) -> Forgot:
    """Forget a memory. The undo token brings it back for a day."""
    return _forgot(await toolkit.engine.forget(arguments.bank, [arguments.id]))


async def forget_memories(
    toolkit: Toolkit, arguments: ForgetArguments, _context: Context
) -> Forgot:
    """Forget many memories, by id or by condition. A dry run only counts them."""
    where = arguments.where
    if bool(arguments.ids) == (where is not None):
        raise ArgumentsRefused("ids: give either ids or where")
    if where is None:
        if arguments.dry_run:
            for id in arguments.ids:
                await toolkit.engine.get(arguments.bank, id)
            return Forgot(count=len(set(arguments.ids)), undo=None, undo_until=None)
        return _forgot(await toolkit.engine.forget(arguments.bank, arguments.ids))
    if is_empty(where):
        raise ArgumentsRefused("where: give at least one condition")
    filters = where.filters()
    if arguments.dry_run:
        page = await toolkit.engine.recent(
            arguments.bank, kinds=where.kinds, filters=filters, limit=1
        )
        return Forgot(count=page.total, undo=None, undo_until=None)
    return _forgot(
        await toolkit.engine.forget_where(arguments.bank, kinds=where.kinds, filters=filters)
    )


async def undo_forget(toolkit: Toolkit, arguments: UndoArguments, context: Context) -> Restored:
    """Undo a forget, a move or a change of tags."""
    target = moved_to(arguments.undo)
    for bank in await toolkit.engine.banks() if target is not None else ():
        if bank.id == target:
            authorise(context.principal, bank.name, writes=True)
            context.changed(bank.name)
    return Restored(restored=await toolkit.engine.undo(arguments.bank, arguments.undo))


def _forgot(forgotten: Forgotten) -> Forgot:
    until = iso(forgotten.undo_until) if forgotten.token is not None else None
    return Forgot(count=forgotten.count, undo=forgotten.token, undo_until=until)


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    every, one = "/banks/{bank}/memories", "/banks/{bank}/memories/{id}"
    new = {"text": "We release on Fridays", "tags": ["release"]}
    edited = {"text": "We release on Thursdays"}
    chosen = {"where": {"tags": ["draft"]}, "dry_run": True}
    token = {"undo": "undo_0123456789abcdef"}
    return [
        add("GET", every, list_memories),
        add("POST", every, add_memory, status=201, example=new),
        add("GET", one, get_memory, has_version=True),
        add("PATCH", one, edit_memory, has_version=True, idempotent=True, example=edited),
        add("DELETE", one, forget_memory),
        add("POST", "/banks/{bank}/forget", forget_memories, destroys=True, example=chosen),
        add("POST", "/banks/{bank}/undo", undo_forget, example=token, fields={"token": "undo"}),
    ]
