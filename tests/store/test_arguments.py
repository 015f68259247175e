"""Arguments of compatible types are converted; others are refused by field and rule."""

from enum import StrEnum
from typing import Any

import pytest
from msgspec.structs import replace

from store.arguments import checked, checked_filters
from store.errors import InvalidInput, NumberNotFinite
from store.model import KINDS, Evidence, Filters, NewCard, NewMemory, NewNotes, Provenance
from store.sqlite.engine import EmbeddedEngine

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"confidence": 1}, {"confidence": 1.0}),
        ({"confidence": -0.0}, {"confidence": 0.0}),
        ({"salience": 5}, {"salience": 5.0}),
        ({"occurred_at": 2.0}, {"occurred_at": 2}),
        ({"tags": ["one"]}, {"tags": ("one",)}),
    ],
)
async def test_a_value_of_a_compatible_type_is_converted(
    engine: EmbeddedEngine, fields: dict[str, Any], kept: dict[str, Any]
) -> None:
    put = await engine.put("w", NewMemory(text="a number", **fields))

    item = await engine.get("w", put.id)

    for name, value in kept.items():
        assert (getattr(item, name), type(getattr(item, name))) == (value, type(value))
    assert (await engine.check("w")).problems == ()


@pytest.mark.parametrize(
    ("field", "value", "kind"),
    [
        ("occurred_at", 2.5, InvalidInput),
        ("occurred_at", float("nan"), NumberNotFinite),
        ("occurred_at", True, InvalidInput),
        ("confidence", "1", InvalidInput),
        ("confidence", float("nan"), NumberNotFinite),
        ("salience", 10**400, InvalidInput),
        ("title", 5, InvalidInput),
        ("text", b"bytes", InvalidInput),
        ("tags", "one", InvalidInput),
        ("metadata", [1], InvalidInput),
        ("allow_duplicate", 1, InvalidInput),
    ],
)
async def test_a_value_of_another_type_is_refused_and_its_field_named(
    engine: EmbeddedEngine, field: str, value: object, kind: type[InvalidInput]
) -> None:
    memory: dict[str, Any] = {"text": "a number", field: value}

    with pytest.raises(kind) as refused:
        await engine.put("w", NewMemory(**memory))

    assert refused.value.field == field
    assert (await engine.banks()) == []


@pytest.mark.parametrize("details", [{"methods": 5}, {"triggers": "x"}, {"mitigation": ["x"]}])
async def test_details_of_the_wrong_type_for_their_kind_are_refused(
    engine: EmbeddedEngine, details: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="details"):
        await engine.put("w", NewMemory(text="steps", kind="skill", details=details))


async def test_a_chunk_cannot_be_put_without_its_document(engine: EmbeddedEngine) -> None:
    with pytest.raises(InvalidInput, match="kind"):
        await engine.put("w", NewMemory(text="a piece of nothing", kind="chunk"))


@pytest.mark.parametrize("confidence", [float("nan"), float("inf"), 7.0, -1.0, "1"])
async def test_repeating_a_card_with_an_invalid_confidence_is_refused(
    engine: EmbeddedEngine, confidence: Any
) -> None:
    card = NewCard(category="c", title="Port", summary="the deploy port is 8080", confidence=0.5)
    (put,) = await engine.put_cards("w", [card])

    with pytest.raises(InvalidInput, match="confidence"):
        await engine.put_cards("w", [replace(card, confidence=confidence)])

    assert (await engine.card("w", put.id)).confidence == 0.5
    assert (await engine.check("w")).problems == ()


async def test_repeating_a_card_with_an_integer_confidence_keeps_it_readable(
    engine: EmbeddedEngine,
) -> None:
    card = NewCard(category="c", title="Port", summary="the deploy port is 8080")
    (put,) = await engine.put_cards("w", [card])

    await engine.put_cards("w", [replace(card, confidence=1)])

    assert (await engine.card("w", put.id)).confidence == 1.0


class Colour(StrEnum):
    RED = "red"


async def test_a_subclass_of_str_is_stored_as_a_plain_string(engine: EmbeddedEngine) -> None:
    put = await engine.put(
        "w",
        NewMemory(
            text="paint", category=Colour.RED, tags=(Colour.RED,), metadata={"a": Colour.RED}
        ),
    )

    item = await engine.get("w", put.id)

    assert (item.category, item.tags, item.metadata) == ("red", ("red",), {"a": "red"})
    assert type(item.category) is str


@pytest.mark.parametrize(
    ("value", "field", "rule"),
    [
        (NewMemory(text="x", tags={"a"}), "tags", "must be a list"),  # type: ignore[arg-type]
        (NewMemory(text="x", tags=("a", 5)), "tags[1]", "must be a string"),  # type: ignore[arg-type]
        (NewMemory(text=None), "text", "must be a string"),  # type: ignore[arg-type]
        (NewMemory(text="x", occurred_at="1"), "occurred_at", "must be a whole number"),  # type: ignore[arg-type]
        (NewMemory(text="x", salience="1"), "salience", "must be a number"),  # type: ignore[arg-type]
        (NewMemory(text="x", salience=10**400), "salience", "must be a number of at most 64 bits"),
        (NewMemory(text="x", details=[]), "details", "must be a JSON object"),  # type: ignore[arg-type]
        (NewMemory(text="x", allow_duplicate=None), "allow_duplicate", "must be true or false"),  # type: ignore[arg-type]
        (NewMemory(text="x", kind="bogus"), "kind", f"must be one of {', '.join(KINDS)}"),  # type: ignore[arg-type]
        (NewMemory(text="x", provenance={}), "provenance", "must be a Provenance"),  # type: ignore[arg-type]
        (
            NewMemory(text="x", provenance=Provenance(client=5)),  # type: ignore[arg-type]
            "provenance.client",
            "must be a string",
        ),
        (
            NewMemory(text="x", provenance=Provenance(client="\x00")),
            "provenance.client",
            "must not contain U+0000",
        ),
    ],
)  # fmt: skip
def test_an_error_names_the_field_by_its_path_and_the_rule(
    value: NewMemory, field: str, rule: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(NewMemory, value)

    assert (refused.value.field, refused.value.rule) == (field, rule)


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        (Filters(since=2**63), "filters.since"),
        (Filters(contains="a " * 201), "filters.contains"),
        (Filters(sources=("s",) * 1_001), "filters.sources"),
        (Filters(metadata={str(n): n for n in range(201)}), "filters.metadata"),
        (Filters(metadata={"a": {"b": object()}}), "filters.metadata.a.b"),
    ],
)
def test_a_filter_that_sql_cannot_apply_is_refused(filters: Filters, field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_filters(filters)

    assert refused.value.field == field


async def test_one_invalid_note_is_named_by_its_place_in_the_list(engine: EmbeddedEngine) -> None:
    good = NewCard(category="c", title="t", summary="s")
    bad = replace(good, evidence=(Evidence(snippet="x"), Evidence(snippet=5)))  # type: ignore[arg-type]

    with pytest.raises(InvalidInput) as refused:
        await engine.put_notes("w", NewNotes(cards=(good, bad)))

    assert refused.value.field == "cards[1].evidence[1].snippet"
    assert (await engine.banks()) == []
