"""Documents: created, recognised, replaced in place, swept and deleted."""

import pytest
from msgspec.structs import replace

from store.errors import InvalidInput, NotFound, TextTooLong
from store.model import Filters, NewDocument, Query
from store.sqlite.engine import EmbeddedEngine
from tests.store.test_chunking import GUIDE

BOTH_ENGINES = True


@pytest.mark.anyio
async def test_a_document_is_created_recognised_updated_and_deleted(
    engine: EmbeddedEngine,
) -> None:
    guide = NewDocument(source="docs", source_id="guide.md", title="The guide", body=GUIDE)
    created = await engine.upsert_document("w", guide)
    again = await engine.upsert_document("w", guide)
    edited = await engine.upsert_document(
        "w",
        NewDocument(
            source="docs",
            source_id="guide.md",
            title="The guide",
            body=GUIDE.replace("takes a minute", "takes a zebra"),
        ),
    )

    assert (created.outcome, again.outcome, edited.outcome) == ("created", "unchanged", "updated")
    assert created.id == again.id == edited.id
    assert 0 < edited.chunks_kept < edited.chunks
    found = await engine.search(Query(bank="w", text="zebra"))
    assert [hit.item.document for hit in found.hits] == [created.id]
    assert (await engine.search(Query(bank="w", text="minute"))).hits == ()
    document = await engine.document("w", created.id)
    assert document.body.count("zebra") == 1
    parts = await engine.chunks("w", created.id)
    assert [part.position for part in parts] == list(range(edited.chunks))
    (source,) = await engine.sources("w")
    assert (source.source, source.documents, source.chunks) == ("docs", 1, edited.chunks)
    assert (await engine.check("w")).problems == ()

    assert await engine.delete_documents("w", [created.id, "unknown"]) == 1
    assert (await engine.stats("w")).items == 0
    with pytest.raises(NotFound):
        await engine.document("w", created.id)
    assert (await engine.check("w")).problems == ()


@pytest.mark.anyio
async def test_a_sweep_deletes_the_documents_of_other_runs(engine: EmbeddedEngine) -> None:
    for n in range(4):
        await engine.upsert_document(
            "w", NewDocument(source="git", source_id=f"f{n}", body=f"file {n}", run="1")
        )
    await engine.upsert_document("w", NewDocument(source="web", source_id="p", body="a page"))
    for n in range(2):
        await engine.upsert_document(
            "w", NewDocument(source="git", source_id=f"f{n}", body=f"file {n}", run="2")
        )

    assert await engine.sweep_documents("w", "git", "2") == 2

    left = {document.source_id for document in await engine.documents("w")}
    assert left == {"f0", "f1", "p"}
    assert await engine.find_document("w", "git", "f3") is None


@pytest.mark.anyio
async def test_an_invalid_document_is_refused(engine: EmbeddedEngine) -> None:
    with pytest.raises(InvalidInput):
        await engine.upsert_document("w", NewDocument(source="", source_id="x", body="b"))
    with pytest.raises(TextTooLong):
        await engine.upsert_document(
            "w", NewDocument(source="s", source_id="x", body="b" * (16 * 1024 * 1024 + 1))
        )

    assert (await engine.banks()) == []


async def test_progress_counts_the_written_chunks(engine: EmbeddedEngine) -> None:
    seen: list[tuple[int, int]] = []
    body = "\n\n".join(f"# Part {n}\n\n" + "Words follow words. " * 80 for n in range(5))
    document = NewDocument(source="s", source_id="1", title="T", body=body)
    for _ in range(2):  # the second time there is nothing to write
        put = await engine.upsert_document(
            "bank", document, progress=lambda *done: seen.append(done)
        )
    assert put.chunks > 1
    assert seen == [(n, put.chunks) for n in range(1, put.chunks + 1)]


async def test_unchanged_chunks_follow_their_document_in_title_user_and_time(
    engine: EmbeddedEngine,
) -> None:
    first = NewDocument(
        source="s", source_id="1", body="# H\nhello world", title="Pear", user="ana", updated_at=1
    )
    await engine.upsert_document("w", first)
    (before,) = (await engine.recent("w", kinds=("chunk",))).items

    await engine.upsert_document("w", replace(first, title="Plum", user="ben", updated_at=5))

    (after,) = (await engine.recent("w", kinds=("chunk",))).items
    assert after.id == before.id
    assert (after.title, after.user, after.occurred_at) == ("Plum > H", "ben", 5)
    assert (await engine.search(Query(bank="w", text="plum", mode="keyword"))).hits
    assert not (await engine.search(Query(bank="w", text="pear", mode="keyword"))).hits
    assert (await engine.check("w")).problems == ()


async def test_a_document_put_by_another_user_belongs_to_that_user(engine: EmbeddedEngine) -> None:
    mine = NewDocument(source="s", source_id="1", body="hello world", user="ana")
    await engine.upsert_document("w", mine)

    again = await engine.upsert_document("w", replace(mine, user="ben"))

    assert again.outcome == "updated"
    assert (await engine.recent("w", filters=Filters(user="ben"))).total == 1
    assert (await engine.recent("w", filters=Filters(user="ana"))).total == 0


async def test_a_forgotten_chunk_follows_its_document_and_stays_forgotten(
    engine: EmbeddedEngine,
) -> None:
    first = NewDocument(source="s", source_id="1", body="hello world", title="Pear")
    await engine.upsert_document("w", first)
    (chunk,) = (await engine.recent("w")).items
    forgotten = await engine.forget("w", [chunk.id])

    await engine.upsert_document("w", replace(first, title="Plum"))

    assert (await engine.recent("w")).total == 0
    assert (await engine.check("w")).problems == ()
    assert forgotten.token is not None
    await engine.undo("w", forgotten.token)
    assert (await engine.get("w", chunk.id)).title == "Plum"
    assert (await engine.check("w")).problems == ()


async def test_headers_come_in_the_order_asked_for_without_bodies_and_without_unknown_ids(
    engine: EmbeddedEngine,
) -> None:
    for n in range(3):
        await engine.upsert_document(
            "w",
            NewDocument(
                source="s", source_id=str(n), id=f"d{n}", title=f"T{n}", body="text",
                url=f"https://example.org/{n}", metadata={"n": n}, updated_at=n,
            ),
        )  # fmt: skip

    found = await engine.document_headers("w", ["d2", "none", "d0", "d2"])

    assert [(header.id, header.title, header.url) for header in found] == [
        ("d2", "T2", "https://example.org/2"),
        ("d0", "T0", "https://example.org/0"),
    ]
    whole = await engine.document("w", "d2")
    for name in found[0].__struct_fields__:
        assert getattr(found[0], name) == getattr(whole, name)
    assert not hasattr(found[0], "body")
    assert await engine.document_headers("w", []) == []
    many = [f"d{n}" for n in range(1200)]
    assert [header.id for header in await engine.document_headers("w", many)] == ["d0", "d1", "d2"]


async def test_listed_documents_have_every_field_but_the_body(engine: EmbeddedEngine) -> None:
    await engine.upsert_document("w", NewDocument(source="s", source_id="1", body="b", title="T"))

    (listed,) = await engine.documents("w")

    assert [listed] == await engine.document_headers("w", [listed.id])
    assert not hasattr(listed, "body")
