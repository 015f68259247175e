"""What comes in is what its type says: put right where it can be, refused by name where not."""

from typing import Any

import pytest
from msgspec.structs import replace

from store.errors import InvalidInput, NumberNotFinite
from store.model import NewCard, NewMemory
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
async def test_a_value_that_is_nearly_right_comes_back_as_its_type_says(
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
async def test_a_value_that_cannot_be_put_right_is_refused_by_its_field(
    engine: EmbeddedEngine, field: str, value: object, kind: type[InvalidInput]
) -> None:
    memory: dict[str, Any] = {"text": "a number", field: value}

    with pytest.raises(kind) as refused:
        await engine.put("w", NewMemory(**memory))

    assert refused.value.field == field
    assert engine.banks() == []


@pytest.mark.parametrize("details", [{"methods": 5}, {"triggers": "x"}, {"mitigation": ["x"]}])
async def test_details_that_could_not_be_read_back_are_refused(
    engine: EmbeddedEngine, details: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="details"):
        await engine.put("w", NewMemory(text="steps", kind="skill", details=details))


async def test_a_chunk_comes_with_its_document_only(engine: EmbeddedEngine) -> None:
    with pytest.raises(InvalidInput, match="kind"):
        await engine.put("w", NewMemory(text="a piece of nothing", kind="chunk"))


@pytest.mark.parametrize("confidence", [float("nan"), float("inf"), 7.0, -1.0, "1"])
async def test_a_known_card_said_again_with_an_impossible_confidence_is_refused(
    engine: EmbeddedEngine, confidence: Any
) -> None:
    card = NewCard(category="c", title="Port", summary="the deploy port is 8080", confidence=0.5)
    (put,) = await engine.put_cards("w", [card])

    with pytest.raises(InvalidInput, match="confidence"):
        await engine.put_cards("w", [replace(card, confidence=confidence)])

    assert (await engine.card("w", put.id)).confidence == 0.5
    assert (await engine.check("w")).problems == ()


async def test_a_known_card_said_again_with_a_whole_confidence_stays_readable(
    engine: EmbeddedEngine,
) -> None:
    card = NewCard(category="c", title="Port", summary="the deploy port is 8080")
    (put,) = await engine.put_cards("w", [card])

    await engine.put_cards("w", [replace(card, confidence=1)])

    assert (await engine.card("w", put.id)).confidence == 1.0
