"""Errors about a wrong enum value list the allowed values."""

from enum import Enum
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, Struct, UnsetType, field

from protocol.lifecycle import explain


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(Struct):
    kind: Literal["a", "b"] | UnsetType = UNSET


class Outer(Struct):
    mode: Literal["x", "y"] = "x"
    colour: Annotated[Colour, Meta(description="of it")] | None = None
    items: list[Inner] = []
    named: dict[str, Inner] = {}
    other: Literal[1, 2] = field(name="otherName", default=1)
    text: str = ""


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"mode":"q"}', "mode: 'q' is not one of x, y"),
        (b'{"mode":"z - at `$.named`"}', "mode: 'z - at $.named' is not one of x, y"),
        (b'{"colour":"green"}', "colour: 'green' is not one of red, blue"),
        (b'{"items":[{},{"kind":"c"}]}', "items[1].kind: 'c' is not one of a, b"),
        (b'{"named":{"n":{"kind":"c"}}}', "named[...].kind: 'c' is not one of a, b"),
        (b'{"otherName":3}', "otherName: 3 is not one of 1, 2"),
        (b'{"text":3}', "text: expected string, got integer"),
    ],
)
def test_the_error_lists_the_allowed_values(body: bytes, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(body, type=Outer)
    assert explain(raised.value, Outer) == words
