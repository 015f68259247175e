"""The engine's first verbs: put, get, list, change, forget."""

import math
from pathlib import Path

import pytest

from store.bank import OpenBank
from store.engine import Engine
from store.errors import (
    BankNotFound,
    InvalidInput,
    ItemChanged,
    KeyReused,
    NotFound,
    NumberNotFinite,
    QuotaExceeded,
    StorageFull,
    TextNotStorable,
    TextTooLong,
    UndoExpired,
)
from store.model import Filters, NewDocument, NewMemory, Provenance, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import START, Clock
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio
BOTH_ENGINES = True


def test_the_embedded_engine_has_every_verb() -> None:
    def takes(engine: Engine) -> None: ...

    def gives(engine: EmbeddedEngine) -> None:
        takes(engine)  # the type checkers say whether this fits

    assert callable(gives)


async def test_a_memory_is_found_and_returned_unchanged(engine: EmbeddedEngine) -> None:
    memory = NewMemory(
        text="Ana prefers tabs\tover spaces ☃ \u200b",
        title="Style",
        context="editor",
        category="preference",
        confidence=0.5,
        session="s1",
        source="chat",
        user="ana",
        role="dev",
        actor="user",
        event_type="message",
        tags=("style", "tabs"),
        metadata={"a": 1, "deep": {"list": [1, 2.5, None, True, "x"]}},
        provenance=Provenance(dialect="hindsight", explanation="asked"),
    )
    put = await engine.put("work", memory)

    item = await engine.get("work", put.id)

    for field in ("text", "title", "context", "category", "confidence", "session", "source"):
        assert getattr(item, field) == getattr(memory, field), field
    for field in ("user", "role", "actor", "event_type", "tags", "metadata", "provenance"):
        assert getattr(item, field) == getattr(memory, field), field
    assert (item.created_at, item.occurred_at, item.repeats) == (START, START, 0)
    found = await engine.search(Query(bank="work", text="who likes TABS"))
    assert [hit.item.id for hit in found.hits] == [put.id]


async def test_the_same_memory_twice_is_one_memory_counted(engine: EmbeddedEngine) -> None:
    first = await engine.put("work", NewMemory(text="tea, not coffee"))
    second = await engine.put("work", NewMemory(text="tea, not coffee"))
    other = await engine.put("work", NewMemory(text="tea, not coffee", user="bo"))

    assert (second.id, second.duplicate, second.repeats) == (first.id, True, 1)
    assert other.id != first.id
    assert (await engine.stats("work")).items == 2


async def test_the_same_event_in_another_session_is_another_event(engine: EmbeddedEngine) -> None:
    one = await engine.put("w", NewMemory(kind="event", text="tests pass", session="s1"))
    again = await engine.put("w", NewMemory(kind="event", text="tests pass", session="s1"))
    other = await engine.put("w", NewMemory(kind="event", text="tests pass", session="s2"))

    assert again.id == one.id
    assert other.id != one.id


async def test_a_retry_with_its_key_is_recognised_and_a_reused_key_refused(
    engine: EmbeddedEngine,
) -> None:
    first = await engine.put("w", NewMemory(text="x", allow_duplicate=True, idempotency_key="k"))
    retry = await engine.put("w", NewMemory(text="x", allow_duplicate=True, idempotency_key="k"))

    assert (retry.id, retry.duplicate) == (first.id, True)
    with pytest.raises(KeyReused):
        await engine.put("w", NewMemory(text="y", allow_duplicate=True, idempotency_key="k"))
    assert (await engine.recent("w")).total == 1


async def test_many_are_put_whole_or_not_at_all(engine: EmbeddedEngine) -> None:
    with pytest.raises(TextNotStorable) as refused:
        await engine.put_many("w", [NewMemory(text="fine"), NewMemory(text="nul \x00 here")])
    assert refused.value.field == "memories[1].text"
    with pytest.raises(InvalidInput):
        await engine.put_many("w", [NewMemory(text="a", id="same"), NewMemory(text="b", id="same")])

    puts = await engine.put_many("w", [NewMemory(text=f"number {n}") for n in range(30)])

    assert len({put.id for put in puts}) == 30
    assert (await engine.recent("w")).total == 30


@pytest.mark.parametrize(
    ("memory", "error", "field"),
    [
        (NewMemory(text=""), InvalidInput, "text"),
        (NewMemory(text=" \n\t"), InvalidInput, "text"),
        (NewMemory(text="a\x00b"), TextNotStorable, "text"),
        (NewMemory(text="half \ud83d"), TextNotStorable, "text"),
        (NewMemory(text="x" * 1_048_577), TextTooLong, "text"),
        (NewMemory(text="é" * 524_289), TextTooLong, "text"),
        (NewMemory(text="x", title="t" * 5000), TextTooLong, "title"),
        (NewMemory(text="x", session="a\x00"), TextNotStorable, "session"),
        (NewMemory(text="x", confidence=math.nan), NumberNotFinite, "confidence"),
        (NewMemory(text="x", confidence=1.5), InvalidInput, "confidence"),
        (NewMemory(text="x", salience=math.inf), NumberNotFinite, "salience"),
        (NewMemory(text="x", metadata={"n": math.inf}), NumberNotFinite, "metadata.n"),
        (NewMemory(text="x", metadata={"n": 2**70}), InvalidInput, "metadata.n"),
        (NewMemory(text="x", metadata={"n": object()}), InvalidInput, "metadata.n"),
        (NewMemory(text="x", metadata={"k\x00": 1}), TextNotStorable, "metadata"),
        (NewMemory(text="x", metadata={"n": "\udfff"}), TextNotStorable, "metadata.n"),
        (NewMemory(text="x", metadata={"big": "y" * 70_000}), TextTooLong, "metadata"),
        (NewMemory(text="x", tags=("ok", "no\x00")), TextNotStorable, "tags[1]"),
        (NewMemory(text="x", occurred_at=2**62), InvalidInput, "occurred_at"),
        (NewMemory(text="x", kind="dream"), InvalidInput, "kind"),  # type: ignore[arg-type]
    ],
)
async def test_invalid_values_are_refused_by_field_and_nothing_is_written(
    engine: EmbeddedEngine, memory: NewMemory, error: type[InvalidInput], field: str
) -> None:
    await engine.create_bank("w")

    with pytest.raises(InvalidInput) as refused:
        await engine.put("w", memory)

    assert type(refused.value) is error
    assert refused.value.field == field
    assert (await engine.stats("w")).items == 0


async def test_a_refused_put_makes_no_bank(engine: EmbeddedEngine) -> None:
    with pytest.raises(InvalidInput):
        await engine.put("new", NewMemory(text=""))

    assert (await engine.banks()) == []


async def test_unknown_banks_and_ids_have_their_own_errors(engine: EmbeddedEngine) -> None:
    with pytest.raises(BankNotFound):
        await engine.search(Query(bank="nowhere", text="x"))
    with pytest.raises(BankNotFound):
        await engine.get("nowhere", "m1")
    await engine.create_bank("w")
    with pytest.raises(NotFound):
        await engine.get("w", "m1")
    with pytest.raises(NotFound):
        await engine.forget("w", ["m1"])
    with pytest.raises(NotFound):
        await engine.change("w", "m1", text="y")


async def test_recent_is_by_arrival_and_timeline_by_when_it_happened(
    engine: EmbeddedEngine,
) -> None:
    for text, when in (("b", 200), ("a", 100), ("c", 300)):
        await engine.put("w", NewMemory(kind="event", text=text, occurred_at=when))

    recent = await engine.recent("w", limit=2)
    timeline = await engine.timeline("w", newest_first=False)

    assert [item.text for item in recent.items] == ["c", "a"]
    assert (recent.total, recent.next) == (3, 2)
    assert [item.text for item in timeline.items] == ["a", "b", "c"]
    assert timeline.next is None


async def test_filters_narrow_before_the_limit(engine: EmbeddedEngine) -> None:
    for n in range(20):
        await engine.put(
            "w",
            NewMemory(
                text=f"note {n}",
                session=f"s{n % 2}",
                user="ana" if n % 4 == 0 else "bo",
                metadata={"n": n, "even": n % 2 == 0, "tag": str(n)},
                occurred_at=n,
            ),
        )

    async def texts(filters: Filters) -> list[str]:
        page = await engine.recent("w", filters=filters, limit=3)
        return [item.text for item in page.items]

    assert await texts(Filters(session="s1")) == ["note 19", "note 17", "note 15"]
    assert await texts(Filters(user="ana", since=5, until=13)) == ["note 12", "note 8"]
    assert await texts(Filters(metadata={"n": 7})) == ["note 7"]
    assert await texts(Filters(metadata={"even": True, "tag": "4"})) == ["note 4"]
    assert await texts(Filters(metadata={"n": "7"})) == []
    assert await texts(Filters(metadata={"n": 2**63})) == []
    assert await texts(Filters(metadata={"even": 1})) == []
    assert await texts(Filters(metadata={"x' OR 1 --": 1})) == []
    assert await texts(Filters(contains="NOTE 13")) == ["note 13"]


async def test_a_changed_memory_is_found_by_its_new_words_only(engine: EmbeddedEngine) -> None:
    put = await engine.put("w", NewMemory(text="the build uses make"))
    await engine.change("w", put.id, text="the build uses ninja")

    old = await engine.search(Query(bank="w", text="make"))
    new = await engine.search(Query(bank="w", text="ninja"))

    assert (len(old.hits), [hit.item.id for hit in new.hits]) == (0, [put.id])
    assert (await engine.check("w")).problems == ()


async def test_a_forgotten_memory_is_gone_at_once_and_can_be_brought_back(
    engine: EmbeddedEngine, clock: Clock
) -> None:
    put = await engine.put("w", NewMemory(text="a secret plan"))
    forgotten = await engine.forget("w", [put.id])

    assert (forgotten.count, forgotten.undo_until) == (1, START + 24 * 3600 * 1000)
    with pytest.raises(NotFound):
        await engine.get("w", put.id)
    assert (await engine.search(Query(bank="w", text="secret plan"))).hits == ()
    assert (await engine.recent("w")).total == 0

    assert forgotten.token is not None
    assert await engine.undo("w", forgotten.token) == 1
    assert (await engine.get("w", put.id)).text == "a secret plan"
    assert len((await engine.search(Query(bank="w", text="secret plan"))).hits) == 1
    assert (await engine.check("w")).problems == ()


async def test_undo_ends_with_its_window(engine: EmbeddedEngine, clock: Clock) -> None:
    put = await engine.put("w", NewMemory(text="late"))
    forgotten = await engine.forget("w", [put.id])
    clock.advance(24 * 3600 + 1)

    with pytest.raises(UndoExpired):
        await engine.undo("w", forgotten.token or "")
    with pytest.raises(UndoExpired):
        await engine.undo("w", "undo_unknown")


async def test_an_item_put_again_stays_beside_the_one_that_undo_restores(
    engine: EmbeddedEngine,
) -> None:
    first = await engine.put("w", NewMemory(text="twice"))
    forgotten = await engine.forget("w", [first.id])
    second = await engine.put("w", NewMemory(text="twice"))
    await engine.undo("w", forgotten.token or "")

    assert {item.id for item in (await engine.recent("w")).items} == {first.id, second.id}
    assert (await engine.check("w")).problems == ()


async def test_forgetting_a_session_takes_all_of_it_and_nothing_else(
    engine: EmbeddedEngine,
) -> None:
    for n in range(6):
        await engine.put("w", NewMemory(text=f"n{n}", session="s1" if n < 4 else "s2"))

    forgotten = await engine.forget_where("w", kinds=("memory",), filters=Filters(session="s1"))

    assert forgotten.count == 4
    assert [item.text for item in (await engine.recent("w")).items] == ["n5", "n4"]
    nothing = await engine.forget_where("w", filters=Filters(session="s1"))
    assert (nothing.count, nothing.token) == (0, None)


async def test_a_quota_stops_puts_and_not_reads(engine: EmbeddedEngine) -> None:
    await engine.create_bank("small", quota_bytes=400_000)

    with pytest.raises(QuotaExceeded) as refused:
        for n in range(100):
            await engine.put("small", NewMemory(text=f"{n} " + "word " * 2000))

    assert refused.value.used > 400_000
    assert (await engine.recent("small")).total > 0
    await engine.set_quota("small", None)
    await engine.put("small", NewMemory(text="room again"))


async def test_a_quota_counts_the_item_that_is_being_put(engine: EmbeddedEngine) -> None:
    await engine.create_bank("small", quota_bytes=400_000)
    await engine.put("small", NewMemory(text="before"))
    body = "\n\n".join(f"paragraph {n} {'word ' * 100}" for n in range(1_000))
    many = [NewMemory(text=f"{n} {'word ' * 50}") for n in range(2_000)]

    with pytest.raises(QuotaExceeded):
        await engine.put("small", NewMemory(text="word " * 60_000))
    with pytest.raises(QuotaExceeded):
        await engine.put_many("small", many)
    with pytest.raises(QuotaExceeded):
        await engine.upsert_document("small", NewDocument(source="s", source_id="1", body=body))
    kept = (await engine.recent("small")).items[0]
    with pytest.raises(QuotaExceeded):
        await engine.change("small", kept.id, text="other " * 60_000)

    assert [item.text for item in (await engine.recent("small")).items] == ["before"]
    assert await engine.documents("small") == []
    assert (await engine.stats("small")).disk_bytes < 2_000_000
    await engine.put("small", NewMemory(text="a small one fits"))


@pytest.mark.parametrize("size", [10, 100, 2_000])
async def test_a_bank_settles_within_its_quota(
    engine: EmbeddedEngine, tmp_path: Path, size: int
) -> None:
    quota = 1_000_000
    await engine.create_bank("small", quota_bytes=quota)
    with pytest.raises(QuotaExceeded):
        for n in range(1_000):
            new = [NewMemory(text=f"{n} {k} {'word ' * size}") for k in range(20)]
            await engine.put_many("small", new)
    await engine.settle("small")

    async with engine._registry.use("small") as opened:
        assert (
            quota / 2
            < await opened.database.read(lambda connection: connection.stored_bytes())
            <= quota
        )


async def test_in_a_full_bank_a_retry_is_known_and_a_text_can_become_shorter(
    engine: EmbeddedEngine,
) -> None:
    put = await engine.put("small", NewMemory(text="word " * 2_000, idempotency_key="k"))
    await engine.set_quota("small", 1)
    with pytest.raises(QuotaExceeded):
        await engine.put("small", NewMemory(text="new"))

    changed = await engine.change("small", put.id, text="word " * 10)
    assert changed.text == "word " * 10
    await engine.erase("small", [put.id])
    await engine.set_quota("small", 1_000_000)
    again = await engine.put("small", NewMemory(text="said", idempotency_key="k2"))
    await engine.set_quota("small", 100)
    assert (await engine.put("small", NewMemory(text="said", idempotency_key="k2"))).id == again.id


async def test_everything_is_there_after_a_restart(tmp_path: Path, clock: Clock) -> None:
    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        put = await engine.put("w", NewMemory(text="durable"))
        forgotten = await engine.forget("w", [(await engine.put("w", NewMemory(text="gone"))).id])

    async with open_engine(tmp_path / "data", ranking=PlainRanking, now=clock) as engine:
        assert (await engine.get("w", put.id)).text == "durable"
        assert (await engine.recent("w")).total == 1
        assert await engine.undo("w", forgotten.token or "") == 1
        assert (await engine.check("w")).problems == ()


async def test_a_put_succeeds_although_its_vector_fails(tmp_path: Path, clock: Clock) -> None:
    class Failing(PlainRanking):
        async def written(self, bank: OpenBank) -> None:
            raise StorageFull("no space left on the disk")

    async with open_engine(tmp_path / "data", ranking=Failing, now=clock) as engine:
        put = await engine.put("w", NewMemory(text="kept"))

        assert (await engine.get("w", put.id)).text == "kept"


async def test_a_kind_named_twice_in_a_timeline_is_asked_for_once(engine: EmbeddedEngine) -> None:
    await engine.put_many("w", [NewMemory(text=f"note {n}", occurred_at=n) for n in range(40)])

    page = await engine.timeline("w", kinds=("memory", "memory"), limit=20)
    rest = await engine.timeline("w", kinds=("memory", "memory"), limit=20, offset=20)

    assert [item.occurred_at for item in (*page.items, *rest.items)] == list(range(39, -1, -1))
    assert (page.total, page.next, rest.next) == (40, 20, None)


async def test_tags_filter_lists_and_searches_and_all_must_match(engine: EmbeddedEngine) -> None:
    both = await engine.put("w", NewMemory(text="tea is green", tags=("tea", "colour")))
    one = await engine.put("w", NewMemory(text="tea is hot", tags=("tea",)))
    await engine.put("w", NewMemory(text="coffee beats tea"))

    async def found(*tags: str) -> tuple[set[str], set[str]]:
        filters = Filters(tags=tags)
        page = await engine.recent("w", filters=filters)
        hits = (await engine.search(Query(bank="w", text="tea", filters=filters))).hits
        return {item.id for item in page.items}, {hit.item.id for hit in hits}

    assert await found("tea") == ({both.id, one.id}, {both.id, one.id})
    assert await found("tea", "colour") == ({both.id}, {both.id})
    assert await found("te") == (set(), set())


async def test_a_change_of_tags_is_found_and_keeps_the_rest(engine: EmbeddedEngine) -> None:
    put = await engine.put("w", NewMemory(text="tea is green", tags=("old",)))

    changed = await engine.change("w", put.id, tags=("new", "garden"), occurred_at=START + 5)

    assert (changed.text, changed.tags) == ("tea is green", ("new", "garden"))
    assert changed.occurred_at == START + 5
    assert (await engine.get("w", put.id)).tags == ("new", "garden")
    hits = (await engine.search(Query(bank="w", text="garden"))).hits
    assert [hit.item.id for hit in hits] == [put.id]
    for bad in ([1], ["x" * 5_000], "new"):
        with pytest.raises(InvalidInput) as refused:
            await engine.change("w", put.id, tags=bad)  # type: ignore[arg-type]
        assert refused.value.field.startswith("tags")


async def test_a_change_of_another_text_than_expected_is_refused(engine: EmbeddedEngine) -> None:
    put = await engine.put("w", NewMemory(text="tea is green"))
    await engine.change("w", put.id, text="tea is black")

    with pytest.raises(ItemChanged):
        await engine.change("w", put.id, text="tea is hot", expected_text="tea is green")

    assert (await engine.get("w", put.id)).text == "tea is black"
    await engine.change("w", put.id, text="tea is hot", expected_text="tea is black")
    assert (await engine.get("w", put.id)).text == "tea is hot"
