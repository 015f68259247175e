"""Resources: memory that a client reads, attaches or subscribes to by URI, without calling a tool.

    memory://<bank>/recent                 the latest items
    memory://<bank>/stats                  statistics
    memory://<bank>/<id>                   one memory, card, task, risk …
    memory://<bank>/documents/<id>         a whole document
    memory://<bank>/sources/<source>       the documents of a source

The bank's name is percent-encoded. Reading is authorised like a read-only tool. A resource that the
caller may not see is reported as missing. Recalled text is data: it has fixed fields and its origin
beside it.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from daemon.tools.authority import Forbidden, Principal, authorise
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit, full_text, iso
from protocol.mcp import ReadResourceResult, Resource, ResourceTemplate, TextResource
from store.errors import BankNotFound, InvalidInput, NotFound
from store.model import Item

SCHEME: Final = "memory://"
RECENT: Final = 20
MOST_BANKS: Final = 50
MOST_DOCUMENTS: Final = 100

_JSON: Final = "application/json"


def uri(bank: str, *path: str) -> str:
    """The URI of a resource in a bank."""
    return SCHEME + "/".join(quote(part, safe="") for part in (bank, *path))


def watched(bank: str) -> tuple[str, str]:
    """The resources that change with every write to a bank."""
    return uri(bank, "recent"), uri(bank, "stats")


async def visible_banks(toolkit: Toolkit, principal: Principal, default: str) -> list[str]:
    """The banks that the caller may read, its default bank first."""
    names = [bank.name for bank in await toolkit.engine.banks()]
    granted = [n for n in names if principal.banks is None or n in principal.banks]
    return sorted(granted, key=lambda name: (name != default, name))


def may_follow(principal: Principal, uri: str) -> bool:
    """Whether the caller may subscribe to a resource, which requires read access to its bank.

    The answer does not depend on whether the bank exists.
    """
    if principal.is_owner or not uri.startswith(SCHEME):
        return True
    parts = _parse(uri)
    if parts is None:
        return False
    try:
        authorise(principal, parts[0], writes=False)
    except Forbidden:
        return False
    return True


class MemoryResources:
    """The resources of all banks that the caller may read."""

    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def list(self, context: Context) -> Sequence[Resource]:
        visible = await visible_banks(self._toolkit, context.principal, context.bank)
        banks = visible[:MOST_BANKS]
        return [entry for bank in banks for entry in _of_bank(bank)]

    def templates(self) -> Sequence[ResourceTemplate]:
        return TEMPLATES

    async def read(self, uri: str, context: Context) -> ReadResourceResult | None:
        parts = _parse(uri)
        if parts is None:
            return None
        bank, *path = parts
        try:
            authorise(context.principal, bank, writes=False)
            text, kind = await self._read(bank, path)
        except (Forbidden, BankNotFound, NotFound, InvalidInput):
            return None
        return ReadResourceResult(contents=[TextResource(uri=uri, text=text, mime_type=kind)])

    async def _read(self, bank: str, path: Sequence[str]) -> tuple[str, str]:
        engine = self._toolkit.engine
        match path:
            case ["recent"]:
                page = await engine.recent(bank, limit=RECENT)
                items = _fitting(map(_item, page.items), self._toolkit.answer_bytes)
                return _json({"bank": bank, "total": page.total, "items": items}), _JSON
            case ["stats"]:
                stats = await engine.stats(bank)
                return _json(stats), _JSON
            case ["documents", id]:
                document = await engine.document(bank, id)
                return document.body, document.content_type or "text/plain"
            case ["sources", source]:
                found = await engine.documents(bank, source=source, limit=MOST_DOCUMENTS)
                if not found:
                    raise NotFound("source", source)
                rows = [
                    {
                        "uri": uri(bank, "documents", document.id),
                        "source_id": document.source_id,
                        "title": document.title,
                        "updated_at": iso(document.updated_at),
                    }
                    for document in found
                ]
                return _json({"bank": bank, "source": source, "documents": rows}), _JSON
            case [id]:
                return _json(_item(await engine.get(bank, id))), _JSON
            case _:
                raise NotFound("resource", "/".join(path))


TEMPLATES: Final = (
    ResourceTemplate(
        uri_template="memory://{bank}/recent",
        name="recent",
        title="Recent memories",
        description="The latest items of a bank",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template="memory://{bank}/stats",
        name="stats",
        title="Statistics",
        description="Item counts and sizes of a bank",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template="memory://{bank}/{id}",
        name="memory",
        title="One memory",
        description="A memory, card, task or risk by its id",
        mime_type=_JSON,
    ),
    ResourceTemplate(
        uri_template="memory://{bank}/documents/{id}",
        name="document",
        title="A document",
        description="The whole text of a document by its id",
    ),
    ResourceTemplate(
        uri_template="memory://{bank}/sources/{source}",
        name="source",
        title="A source",
        description="The documents of a source",
        mime_type=_JSON,
    ),
)


def _of_bank(bank: str) -> list[Resource]:
    recent, stats = watched(bank)
    return [
        Resource(
            uri=recent,
            name=f"{bank}/recent",
            title=f"Recent in {bank}",
            description="The latest items of this bank",
            mime_type=_JSON,
        ),
        Resource(
            uri=stats,
            name=f"{bank}/stats",
            title=f"Statistics of {bank}",
            description="Item counts and sizes of this bank",
            mime_type=_JSON,
        ),
    ]


def _parse(uri: str) -> list[str] | None:
    """Bank and path; None for any other URI (other schemes, traversal, control characters)."""
    if not uri.startswith(SCHEME) or len(uri) > 2048 or not uri.isascii():
        return None
    raw = uri.removeprefix(SCHEME).split("/")
    if len(raw) not in (2, 3) or any(c in part for part in raw for c in "?#\\"):
        return None
    try:
        parts = [unquote(part, errors="strict") for part in raw]
    except UnicodeDecodeError:
        return None
    if any(not part or part in (".", "..") or not part.isprintable() for part in parts):
        return None
    return parts


def _item(item: Item) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "text": full_text(item),
        "context": item.context,
        "category": item.category,
        "status": item.status,
        "tags": list(item.tags),
        "source": item.source,
        "session": item.session,
        "provenance": item.provenance,
        "occurred_at": iso(item.occurred_at),
        "updated_at": iso(item.updated_at),
    }


def _fitting(items: Iterable[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """The first items that fit the size limit of an answer, and at least one."""
    kept: list[dict[str, Any]] = []
    for item in items:
        limit -= len(msgspec.json.encode(item))
        if limit < 0 and kept:
            break
        kept.append(item)
    return kept


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
