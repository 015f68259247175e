"""Documents and their chunks."""

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from daemon.api.operation import Operation
from daemon.api.views import (
    DocumentBody,
    DocumentSummary,
    Memory,
    document_of,
    memory_of,
    summary_of,
)
from daemon.tools.context import Context
from daemon.tools.specification import ToolSpec
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
    found = await toolkit.engine.documents(
        arguments.bank,
        source=arguments.source,
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return Documents(documents=[summary_of(header) for header in found])


async def get(toolkit: Toolkit, arguments: DocumentArguments, _context: Context) -> DocumentBody:
    return document_of(await toolkit.engine.document(arguments.bank, arguments.id))


async def chunks(toolkit: Toolkit, arguments: DocumentArguments, _context: Context) -> Chunks:
    found = await toolkit.engine.chunks(arguments.bank, arguments.id)
    return Chunks(chunks=[memory_of(item) for item in found])


async def delete(
    toolkit: Toolkit, arguments: DocumentArguments, _context: Context
) -> DocumentsDeleted:
    document = await toolkit.engine.document(arguments.bank, arguments.id)
    return DocumentsDeleted(
        deleted=await toolkit.engine.delete_documents(arguments.bank, [document.id])
    )


def operations(toolkit: Toolkit) -> list[Operation]:
    all_documents = "/banks/{bank}/documents"
    one = f"{all_documents}/{{id}}"
    return [
        Operation(
            verb="GET",
            path=all_documents,
            tag=TAG,
            spec=ToolSpec(
                name="list_documents",
                description="The documents of a bank, without their text.",
                arguments=DocumentListArguments,
                run=partial(list_documents, toolkit),
                output=Documents,
                read_only=True,
            ),
        ),
        Operation(
            verb="GET",
            path=one,
            tag=TAG,
            spec=ToolSpec(
                name="get_document",
                description="A document with its text.",
                arguments=DocumentArguments,
                run=partial(get, toolkit),
                output=DocumentBody,
                read_only=True,
            ),
        ),
        Operation(
            verb="GET",
            path=f"{one}/chunks",
            tag=TAG,
            spec=ToolSpec(
                name="list_chunks",
                description="The chunks by which a document is found.",
                arguments=DocumentArguments,
                run=partial(chunks, toolkit),
                output=Chunks,
                read_only=True,
            ),
        ),
        Operation(
            verb="DELETE",
            path=one,
            tag=TAG,
            spec=ToolSpec(
                name="delete_document",
                description="Delete a document and its chunks. There is no undo.",
                arguments=DocumentArguments,
                run=partial(delete, toolkit),
                output=DocumentsDeleted,
                destructive=True,
            ),
        ),
    ]
