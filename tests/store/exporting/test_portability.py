"""A file offered for import is taken whole or refused whole, by line and field."""

from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest

from store.errors import ImportRefused
from store.model import AgentProfile, Evidence, NewCard, NewDocument, NewMemory
from store.sqlite.engine import EmbeddedEngine

pytestmark = pytest.mark.anyio
BOTH_ENGINES = True

Records = list[dict[str, Any]]


async def export(engine: EmbeddedEngine, path: Path) -> Path:
    """A file with every type of record; more items than one batch of an import takes."""
    await engine.upsert_document("w", NewDocument(source="s", source_id="1", body="pears, cut"))
    many = [NewMemory(text=f"apple {n}", confidence=0.5, tags=("t",)) for n in range(300)]
    await engine.put_many("w", many)
    quoted = (Evidence(snippet="apple 1"),)
    await engine.put_cards("w", [NewCard(category="c", title="T", summary="a", evidence=quoted)])
    await engine.put_profile("w", AgentProfile(agent_role="dev"))
    await engine.export("w", path)
    return path


def forge(path: Path, change: Callable[[Records], None]) -> None:
    """Change the records of a file, and make its digest fit again."""
    header, *records, _ = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    change(records)
    lines = [msgspec.json.encode(record) + b"\n" for record in (header, *records)]
    digest = blake2b(b"".join(lines), digest_size=32).hexdigest()
    end = {"type": "end", "records": len(records), "digest": digest}
    path.write_bytes(b"".join([*lines, msgspec.json.encode(end)]))


def last(records: Records, kind: str) -> int:
    return max(at for at, record in enumerate(records) if record["type"] == kind)


@pytest.mark.parametrize(
    ("type", "field", "value"),
    [
        ("item", "metadata", "str"),
        ("item", "metadata", [1]),
        ("item", "provenance", {"dialect": 5}),
        ("item", "provenance", None),
        ("item", "tags", {"a": 1}),
        ("item", "tags", [1]),
        ("item", "details", {"methods": 5}),
        ("item", "confidence", "abc"),
        ("item", "confidence", 7),
        ("item", "kind", "bogus"),
        ("item", "kind", []),
        ("item", "position", 2**63),
        ("item", "position", "x"),
        ("item", "repeats", None),
        ("item", "text", None),
        ("item", "text", 5),
        ("item", "text", "a\x00b"),
        ("item", "sameness", "zz"),
        ("item", "occurred_at", "hello"),
        ("item", "occurred_at", None),
        ("item", "occurred_at", 2**62),
        ("item", "occurred_at", 2.5),
        ("item", "public_id", ""),
        ("item", "document", "none such"),
        ("document", "chunks", "one"),
        ("document", "metadata", 5),
        ("document", "body", None),
        ("evidence", "snippet", 5),
        ("evidence", "card", None),
        ("profile", "fields", {"agent_role": 5}),
        ("profile", "fields", {"title": "of nobody"}),
        ("profile", "updated_at", "now"),
    ],
)
async def test_a_field_of_the_wrong_type_refuses_the_whole_file(
    engine: EmbeddedEngine, tmp_path: Path, type: str, field: str, value: object
) -> None:
    path = await export(engine, tmp_path / "file")
    place = 0

    def change(records: Records) -> None:
        nonlocal place
        place = last(records, type)
        records[place][field] = value

    forge(path, change)

    with pytest.raises(ImportRefused) as refused:
        await engine.import_file("new", path)

    assert f"line {place + 2}:" in refused.value.rule
    assert field in refused.value.rule
    assert [bank.name for bank in await engine.banks()] == ["w"]


@pytest.mark.parametrize("kind", ["memory", "chunk"])
async def test_chunks_and_only_chunks_belong_to_a_document_of_the_file(
    engine: EmbeddedEngine, tmp_path: Path, kind: str
) -> None:
    path = await export(engine, tmp_path / "file")

    def change(records: Records) -> None:
        chunk = next(record for record in records if record.get("kind") == "chunk")
        chunk |= {"kind": kind, "document": None if kind == "chunk" else chunk["document"]}

    forge(path, change)

    with pytest.raises(ImportRefused, match="document"):
        await engine.import_file("new", path)


async def test_numbers_without_a_decimal_point_are_read(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    path = await export(engine, tmp_path / "file")

    def change(records: Records) -> None:
        records[last(records, "item")]["confidence"] = 1

    forge(path, change)
    await engine.import_file("new", path)

    assert (await engine.recent("new", limit=1)).items[0].confidence == 1.0
    assert (await engine.check("new")).problems == ()


async def test_a_document_that_the_bank_has_in_another_version_stays_as_it_is(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    path = await export(engine, tmp_path / "file")
    mine = NewDocument(source="s", source_id="1", body="quinces, whole", id="mine")
    await engine.upsert_document("new", mine)

    await engine.import_file("new", path)

    assert [chunk.text for chunk in await engine.chunks("new", "mine")] == ["quinces, whole"]
    assert (await engine.check("new")).problems == ()
