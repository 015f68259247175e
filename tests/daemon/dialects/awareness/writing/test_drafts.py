"""Drafts parsed from the entries of a call."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.awareness.writing import drafts

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*drafts.TEXT_KEYS, "role", "timestamp", "x"]), inner)
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=8))
def test_every_entry_becomes_a_draft_or_is_skipped_with_a_reason(entries: list[object]) -> None:
    sent = drafts.parse_drafts(entries)
    skipped = [index for skip in sent.skipped for index in skip.indexes]
    assert sorted([draft.index for draft in sent.drafts] + skipped) == list(range(len(entries)))
    assert all(draft.text.strip() for draft in sent.drafts)
    assert all(skip.reason and skip.count == len(skip.indexes) for skip in sent.skipped)


def test_unrecognised_message_fields_are_stored_as_metadata() -> None:
    draft = drafts.draft_of(
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "hi"}, {"type": "image", "data": "…"}],
            "timestamp": "not a time",
            "id": "m1",
            "metadata": {"a": 1},
            "extra": [1],
        }
    )
    assert isinstance(draft, drafts.Draft)
    assert (draft.text, draft.actor, draft.source_id) == ("hi", "assistant", "m1")
    assert draft.metadata["a"] == 1 and draft.metadata["extra"] == [1]
    assert draft.metadata["timestamp"] == "not a time"
    assert draft.metadata["content"][1]["type"] == "image"


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("2026-11-16T04:40:01Z", 1794804001000),
        ("2026-11-16T05:40:01+01:00", 1794804001000),
        ("2026-11-16", 1794787200000),
        (1794804001, 1794804001000),
        (1794804001000, 1794804001000),
        (True, None),
        ("yesterday", None),
        (None, None),
    ],
)
def test_timestamps_are_parsed_from_iso_text_seconds_and_milliseconds(
    value: object, milliseconds: int | None
) -> None:
    assert drafts.time_of(value) == milliseconds
