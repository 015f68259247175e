"""One memory among others: similar ones, neighbours, history, and its erasure."""

from functools import partial
from typing import Annotated, Final

from msgspec import Meta, Struct
from msgspec.structs import replace

from daemon.api.operation import Operation, operation
from daemon.api.views import Memory, memory_of
from daemon.tools.context import Context
from daemon.tools.errors import ArgumentsRefused
from daemon.tools.toolkit import Toolkit, iso
from store.errors import NotFound
from store.model import Filters, Item, Query

TAG: Final = "memories"
#: The characters of a memory by which similar ones are searched.
QUERY_LENGTH: Final = 2_000
#: Memories that are read on each side to find the neighbours among those of the same moment.
WINDOW: Final = 100


class SimilarArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str
    limit: Annotated[int, Meta(ge=1, le=50)] = 8


class NeighbourArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`count` is the number of memories on each side."""

    bank: str
    id: str
    count: Annotated[int, Meta(ge=1, le=50)] = 4


class HistoryArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str


class EraseArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`confirm` repeats the id, because an erase cannot be undone."""

    bank: str
    id: str
    confirm: str


class SimilarMemory(Struct, frozen=True, kw_only=True):
    """A memory with a similar meaning; `similarity` is the score of the search, from 0 to 1."""

    memory: Memory
    similarity: float


class SimilarMemories(Struct, frozen=True, kw_only=True):
    """`degraded` says why meanings could not be compared, for example `vectors-pending`."""

    similar: list[SimilarMemory]
    degraded: tuple[str, ...]


class Neighbours(Struct, frozen=True, kw_only=True):
    """Memories before and after one, in order of time. `by` is session, document or time."""

    by: str
    before: list[Memory]
    after: list[Memory]


class HistoryEntry(Struct, frozen=True, kw_only=True):
    """Something that happened to a memory, and the client that did it, if known."""

    at: str
    what: str
    by: str | None = None


class MemoryHistory(Struct, frozen=True, kw_only=True):
    """The events that are known; earlier texts are not kept."""

    entries: list[HistoryEntry]
    supersedes: list[Memory]
    superseded_by: Memory | None


class MemoryErased(Struct, frozen=True, kw_only=True):
    """The erased memories, and the older copies (backups, caches) that were removed for it."""

    erased: int
    copies_removed: int


async def list_similar(
    toolkit: Toolkit, arguments: SimilarArguments, _context: Context
) -> SimilarMemories:
    """Memories with a similar meaning, nearest first."""
    item = await toolkit.engine.get(arguments.bank, arguments.id)
    text = (f"{item.title}\n{item.text}" if item.title else item.text)[:QUERY_LENGTH]
    found = await toolkit.engine.search(
        Query(bank=arguments.bank, text=text, mode="semantic", limit=arguments.limit + 1)
    )
    near = [hit for hit in found.hits if hit.item.id != item.id and found.mode == "semantic"]
    return SimilarMemories(
        similar=[
            SimilarMemory(memory=memory_of(hit.item), similarity=round(hit.score, 4))
            for hit in near[: arguments.limit]
        ],
        degraded=found.degraded,
    )


async def list_neighbours(
    toolkit: Toolkit, arguments: NeighbourArguments, _context: Context
) -> Neighbours:
    """The memories around one: of its session, else of its document, else by time."""
    item = await toolkit.engine.get(arguments.bank, arguments.id)
    if item.document is not None:
        by, around = "document", await toolkit.engine.chunks(arguments.bank, item.document)
    else:
        by = "time" if item.session is None else "session"
        around = await _around(toolkit, arguments.bank, item)
    at = next((index for index, each in enumerate(around) if each.id == item.id), 0)
    first = max(0, at - arguments.count)
    return Neighbours(
        by=by,
        before=[memory_of(each) for each in around[first:at]],
        after=[memory_of(each) for each in around[at + 1 : at + 1 + arguments.count]],
    )


async def _around(toolkit: Toolkit, bank: str, item: Item) -> list[Item]:
    """The items near one in time, of the same session if it has one, in order."""
    same = Filters(session=item.session)
    older = await toolkit.engine.timeline(
        bank, filters=replace(same, until=item.occurred_at + 1), limit=WINDOW
    )
    newer = await toolkit.engine.timeline(
        bank, filters=replace(same, since=item.occurred_at), limit=WINDOW, newest_first=False
    )
    found = {each.rowid: each for each in (*older.items, *newer.items, item)}
    return sorted(found.values(), key=lambda each: (each.occurred_at, each.rowid))


async def get_history(
    toolkit: Toolkit, arguments: HistoryArguments, _context: Context
) -> MemoryHistory:
    """What is known about the life of a memory: stored, repeated, changed, superseded."""
    bank = arguments.bank
    item = await toolkit.engine.get(bank, arguments.id)
    later = await _find(toolkit, bank, item.superseded_by)
    earlier: list[Memory] = []
    if item.kind == "card":
        cards = await toolkit.engine.card_history(bank, item.id)
        earlier = [memory_of(card.item) for card in cards if card.superseded_by == item.id]
    return MemoryHistory(
        entries=_entries(item),
        supersedes=earlier,
        superseded_by=None if later is None else memory_of(later),
    )


def _entries(item: Item) -> list[HistoryEntry]:
    by = item.provenance.client or item.source
    entries = [HistoryEntry(at=iso(item.created_at), what="stored", by=by)]
    if item.repeats:
        entries.append(
            HistoryEntry(at=iso(item.updated_at), what=f"stored again, {item.repeats} times")
        )
    elif item.updated_at != item.created_at:
        entries.append(HistoryEntry(at=iso(item.updated_at), what="changed"))
    if item.superseded_by is not None:
        entries.append(HistoryEntry(at=iso(item.updated_at), what="superseded"))
    return entries


async def _find(toolkit: Toolkit, bank: str, id: str | None) -> Item | None:
    if id is None:
        return None
    try:
        return await toolkit.engine.get(bank, id)
    except NotFound:
        return None


async def erase_memory(
    toolkit: Toolkit, arguments: EraseArguments, _context: Context
) -> MemoryErased:
    """Remove every copy of a memory, also from backups. There is no undo."""
    if arguments.confirm != arguments.id:
        raise ArgumentsRefused("confirm: must repeat the id of the memory")
    erased = await toolkit.engine.erase(arguments.bank, [arguments.id])
    return MemoryErased(erased=erased.items, copies_removed=erased.copies_removed)


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    one = "/banks/{bank}/memories/{id}"
    example = {"confirm": "mem_0123456789abcdef"}
    return [
        add("GET", f"{one}/similar", list_similar, fields={"text": "id"}),
        add("GET", f"{one}/neighbours", list_neighbours),
        add("GET", f"{one}/history", get_history),
        add("POST", f"{one}/erase", erase_memory, destroys=True, example=example),
    ]
