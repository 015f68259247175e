"""Foreign values in their many spellings."""

from typing import Any

import pytest

from daemon.importing import front_matter
from daemon.importing.values import milliseconds, tags_of

MOMENT = 1_714_557_600_000


@pytest.mark.parametrize(
    "value",
    [
        MOMENT, MOMENT // 1000, MOMENT / 1000, MOMENT * 1000, MOMENT * 1_000_000, str(MOMENT),
        "2024-05-01T10:00:00Z", "2024-05-01 10:00:00", "2024-05-01T12:00:00+02:00",
    ],
)  # fmt: skip
def test_a_time_in_any_unit_or_spelling_is_the_same_moment(value: Any) -> None:
    assert milliseconds(value) == MOMENT


@pytest.mark.parametrize("value", [None, True, "", "soon", float("nan"), float("inf"), [], 1e30])
def test_anything_else_is_no_time(value: Any) -> None:
    assert milliseconds(value) is None


def test_tags_come_from_lists_and_from_text_with_commas_without_repetitions() -> None:
    assert tags_of(["a", " b ", "a", 3, ""]) == ("a", "b")
    assert tags_of("a, b,,a") == ("a", "b")
    assert tags_of({"a": 1}) == ()


def test_front_matter_has_scalars_lists_and_json() -> None:
    text = (
        "---\ntitle: 'It''s'\ncount: 3\nshare: 0.5\nday: 2024-05-01\nflag: true\nnone:\n"
        'list: [a, "b, c"]\njson: {"a": [1]}\nlines:\n  - one\n  - two\n---\nbody\n---\nrest'
    )
    fields, body = front_matter.parse(text)
    assert fields == {
        "title": "It's", "count": 3, "share": 0.5, "day": "2024-05-01", "flag": True, "none": None,
        "list": ["a", '"b', 'c"'], "json": {"a": [1]}, "lines": ["one", "two"],
    }  # fmt: skip
    assert body == "body\n---\nrest"


@pytest.mark.parametrize("text", ["plain", "---\nno end", "", "--- \n"])
def test_a_text_without_front_matter_is_all_body(text: str) -> None:
    assert front_matter.parse(text) == ({}, text)
