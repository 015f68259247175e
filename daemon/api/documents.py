"""Documents and their chunks."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from daemon.api.operation import Operation, operation
from daemon.api.views import (
    DocumentBody,
    DocumentSummary,
    Memory,
    document_of,
    memory_of,
    summary_of,
)
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit

TAG = "documents"


class DocumentListArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    source: str | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    offset: Annotated[int, Meta(ge=0)] = 0


class DocumentArguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    bank: str
    id: str


class Documents(Struct, frozen=True, kw_only=True):
    """Documents without their text, most recently indexed first."""

    documents: list[DocumentSummary]


class Chunks(Struct, frozen=True, kw_only=True):
    """The chunks of a document, in order."""

    chunks: list[Memory]


class DocumentsDeleted(Struct, frozen=True, kw_only=True):
    deleted: int


async def list_documents(
    toolkit: Toolkit, arguments: DocumentListArguments, _context: Context
) -> Documents:
    """The documents of a bank, without their text."""
    found = await toolkit.engine.documents(
        arguments.bank,
        source=arguments.source,
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Documents(documents=[summary_of(header) for header in found])


async def get_document(
    toolkit: Toolkit, arguments: DocumentArguments, _context: Context
) -> DocumentBody:
    """A document with its text."""
    return document_of(await toolkit.engine.document(arguments.bank, arguments.id))


async def list_chunks(toolkit: Toolkit, arguments: DocumentArguments, _context: Context) -> Chunks:
    """The chunks by which a document is found."""
    found = await toolkit.engine.chunks(arguments.bank, arguments.id)
    return Chunks(chunks=[memory_of(item) for item in found])


async def delete_document(
    toolkit: Toolkit, arguments: DocumentArguments, _context: Context
) -> DocumentsDeleted:
    """Delete a document and its chunks. There is no undo."""
    document = await toolkit.engine.document(arguments.bank, arguments.id)
    return DocumentsDeleted(
        deleted=await toolkit.engine.delete_documents(arguments.bank, [document.id])
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    add = partial(operation, service=toolkit, tag=TAG)
    every, one = "/banks/{bank}/documents", "/banks/{bank}/documents/{id}"
    return [
        add("GET", every, list_documents),
        add("GET", one, get_document),
        add("GET", f"{one}/chunks", list_chunks),
        add("DELETE", one, delete_document),
    ]
