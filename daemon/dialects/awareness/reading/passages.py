"""Answers as passages: an excerpt of what was found, or chunks joined to what the document says."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness.answers import Object, Text, given
from daemon.dialects.awareness.language.summaries import clip
from daemon.dialects.awareness.memory import MemoryReader
from daemon.tools.toolkit import iso
from store.model import Found, Hit, Item

EXCERPT: Final = 1_200
PASSAGE: Final = 4_000
#: How many chunks before and after a found one belong to its passage.
AROUND: Final = 1


class ResultMetadata(Struct, frozen=True, kw_only=True):
    """Where an answer is from."""

    id: str
    kind: str
    timestamp: str
    title: Text = UNSET
    category: Text = UNSET
    event_type: Text = UNSET
    status: Text = UNSET
    actor: Text = UNSET
    session_id: Text = UNSET
    document_id: Text = UNSET
    source: Text = UNSET
    user_id: Text = UNSET
    agent_role: Text = UNSET
    dialect: Text = UNSET
    client: Text = UNSET
    custom: Object = UNSET
    chunks: list[str] | UnsetType = UNSET
    event_count: int | UnsetType = UNSET


class Result(Struct, frozen=True, kw_only=True):
    content: str
    score: float
    metadata: ResultMetadata
    truncated: bool | UnsetType = UNSET


def excerpt(hit: Hit, characters: int = EXCERPT) -> Result:
    """What was found, whole when it is short, else the part that matched."""
    text = hit.item.text or hit.item.title
    is_long = len(text) > characters
    if is_long:
        text = around(text, hit.snippet, characters)
    return Result(
        content=text,
        score=round(hit.score, 4),
        metadata=metadata_of(hit.item),
        truncated=True if is_long else UNSET,
    )


def around(text: str, snippet: str, characters: int) -> str:
    """As much of a text as fits, with the snippet in the middle of it."""
    at = text.find(snippet) if snippet else 0
    start = max(0, min(at - (characters - len(snippet)) // 2, len(text) - characters))
    piece = clip(text[start:], characters)
    return f"…{piece}" if start else piece


def metadata_of(item: Item, **more: Any) -> ResultMetadata:
    custom: Mapping[str, Any] = item.metadata
    return ResultMetadata(
        id=item.id,
        kind=item.kind,
        timestamp=iso(item.occurred_at),
        title=given(item.title),
        category=given(item.category),
        event_type=given(item.event_type),
        status=given(item.status),
        actor=given(item.actor),
        session_id=given(item.session),
        document_id=given(item.document),
        source=given(item.source),
        user_id=given(item.user),
        agent_role=given(item.role),
        dialect=given(item.provenance.dialect),
        client=given(item.provenance.client),
        custom=custom or UNSET,
        **more,
    )


async def joined(reader: MemoryReader, found: Found) -> list[Result]:
    """Each answer once: chunks of one document that touch become one passage, in its order."""
    results: list[Result] = []
    told: set[str] = set()
    for hit in found.hits:
        if hit.item.id in told:
            continue
        if hit.item.kind != "chunk" or hit.item.document is None:
            results.append(excerpt(hit, PASSAGE))
            continue
        chunks = await reader.engine.chunks(reader.bank, hit.item.document)
        wanted = {
            other.item.position
            for other in found.hits
            if other.item.document == hit.item.document and other.item.position is not None
        }
        run = _run(chunks, hit.item, wanted)
        told |= {chunk.id for chunk in run}
        content = _stitch(run)
        is_long = len(content) > PASSAGE
        results.append(
            Result(
                content=around(content, hit.snippet, PASSAGE) if is_long else content,
                score=round(hit.score, 4),
                metadata=metadata_of(hit.item, chunks=[chunk.id for chunk in run]),
                truncated=True if is_long else UNSET,
            )
        )
    return results


def _run(chunks: list[Item], found: Item, wanted: set[int]) -> list[Item]:
    """The found chunk with its neighbours, and on through further found ones that touch."""
    position = found.position or 0
    first = last = position
    while any(at in wanted for at in range(first - AROUND - 1, first)):
        first -= 1
    while any(at in wanted for at in range(last + 1, last + AROUND + 2)):
        last += 1
    return [
        chunk
        for chunk in chunks
        if chunk.position is not None and first - AROUND <= chunk.position <= last + AROUND
    ]


def _stitch(chunks: list[Item]) -> str:
    """Chunks as running text: where they overlap, the shared part is said once."""
    text = ""
    end: int | None = None
    for chunk in chunks:
        start = chunk.details.get("start")
        overlap = end - start if end is not None and isinstance(start, int) else 0
        piece = chunk.text
        if 0 < overlap < len(piece) and text.endswith(piece[:overlap]):
            piece = piece[overlap:]
        elif text:
            text += "\n"
        text += piece
        end = chunk.details.get("end")
    return text
