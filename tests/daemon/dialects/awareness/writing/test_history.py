"""Histories in JSON and as transcripts."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.awareness.writing import history
from tests.daemon.dialects.awareness.writing.test_drafts import json_values


@given(json_values)
def test_any_json_history_can_be_parsed(value: object) -> None:
    assert isinstance(history.entries_of(value), list)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["User", "Assistant"]),
            st.text(
                alphabet=st.characters(
                    codec="ascii", exclude_characters=":\r\n\x0b\x0c\x1c\x1d\x1e\x85"
                )
            )
            .map(str.strip)
            .filter(bool),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_a_transcript_is_parsed_into_its_turns(turns: list[tuple[str, str]]) -> None:
    text = "\n\n".join(f"{speaker}: {said}" for speaker, said in turns)
    read = history.entries_of(text)
    assert [(turn["actor"], turn["text"]) for turn in read] == [
        (speaker.lower(), said) for speaker, said in turns
    ]
