"""Parsing of events, questions and histories: labels, keywords, drafts and narratives."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from daemon.dialects.awareness.language import detection, keywords, summaries
from daemon.dialects.awareness.language.vocabulary import TASK_STATUSES, status_named
from daemon.dialects.awareness.writing import drafts, extraction, history
from store.model import Item


@pytest.mark.parametrize(
    ("text", "status"),
    [
        # The document: texts with BLOCKED, TODO or "need to" are open.
        ("BLOCKED: waiting for the key", "open"),
        ("blocked by the review", "open"),
        ("TODO: Add rate limiting to login endpoint", "open"),
        ("We need to rotate the key", "open"),
        ("The parser needs to be faster", "open"),
        ("Fixed the leak. TODO: add a test", "open"),
        ("No need to worry", "noted"),
        ("It is no longer blocked by CI, deployed", "resolved"),
        ("The firewall blocked the request", "noted"),
        ("Opened the todolist", "noted"),
        # Completed work is resolved.
        ("Bug fixed: Memory leak in background worker", "resolved"),
        ("Implemented and merged", "resolved"),
        ("Tests pass", "resolved"),
        ("not fixed yet", "noted"),
        ("The leak must be fixed", "noted"),
        ("We abandoned the plan", "noted"),
        ("Undone", "noted"),
        # Work in progress.
        ("Working on the parser", "in_progress"),
        ("Migration in progress", "in_progress"),
        ("The port is not done", "in_progress"),
        # Other observations.
        ("The build takes nine minutes", "noted"),
        ("", "noted"),
    ],
)
def test_status_detection_uses_whole_words_and_ignores_negations(text: str, status: str) -> None:
    assert detection.status_of(text) == status


@pytest.mark.parametrize(
    ("text", "event_type"),
    [
        ("Decision: Switched auth from JWT to session cookies", "decision"),
        ("We decided against Kafka", "decision"),
        ("Bug fixed: Memory leak", "issue"),
        ("Traceback (most recent call last)", "issue"),
        ("+++ b/auth.py\n@@ -1 +1 @@", "file_diff"),
        ("Files changed: auth.py, middleware.py", "file_diff"),
        ("Refactored the parser", "file_diff"),
        ("ran pytest -q", "tool_call"),
        ("TODO: later", "planning"),
        ("follow-up with the team", "planning"),
        ("Hello there", "message"),
        ("The bugle is an instrument", "message"),
        ("They operate differently", "message"),
        ("Random terminals", "message"),
    ],
)
def test_event_type_detection_uses_labels_and_whole_words(text: str, event_type: str) -> None:
    assert detection.event_type_of(text) == event_type


@pytest.mark.parametrize(
    ("text", "actor"),
    [
        ("user: hi", "user"),
        ("Human: hi", "user"),
        ("**Assistant:** hi", "assistant"),
        ("tool: exit 0", "tool"),
        ("System: you are", "system"),
        ("the user: a study", "assistant"),
        ("users: many", "assistant"),
    ],
)
def test_the_actor_is_the_speaker_label_at_the_start_of_the_text(text: str, actor: str) -> None:
    assert detection.actor_of(text) == actor


def test_the_documented_example_question_gives_exact_keywords() -> None:
    question = (
        'authentication bug in "login flow", JWT token handling in auth.py,'
        " session_cookies, getUser() and OAuth2 since v1.2.3 #auth"
    )
    assert keywords.keywords_of(question) == "login flow auth.py JWT getUser session_cookies"
    found = keywords.keywords_of(question, keywords.MOST)
    for term in ("login flow", "auth.py", "JWT", "session_cookies", "getUser", "OAuth2", "v1.2.3"):
        assert term in found


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What does the spec say about token expiry?", "expiry token spec"),
        ("When did Caroline go to the LGBTQ support group?", "LGBTQ Caroline support group"),
        ("Tell me how we should be doing our deployments", "deployments"),
        ("Why did we move from Redis to Postgres for sessions?", "Postgres Redis sessions move"),
        ("what was that about", "about what that was"),
    ],
)
def test_keywords_omit_stop_words(question: str, terms: str) -> None:
    assert keywords.keywords_of(question) == terms


def test_a_long_question_has_five_keywords() -> None:
    question = "which migrations of the billing database locked customers out during deployments"
    assert len(keywords.keywords_of(question).split()) == 5


def test_short_proper_names_are_keywords() -> None:
    assert keywords.keywords_of("who is the employer of Ana").split()[0] == "Ana"


@given(st.text(max_size=400))
@example("/0")  # a path that contains a number
def test_keywords_of_any_question_are_non_empty_and_occur_in_it(question: str) -> None:
    found = keywords.keywords_of(question)
    assert found or not question
    assert all(word in question for word in found.split()), "every keyword occurs in the question"


@given(st.text(max_size=300))
def test_every_text_gets_a_valid_actor_status_and_event_type(text: str) -> None:
    assert detection.actor_of(text) in detection.ACTORS
    assert detection.status_of(text) in ("open", "in_progress", "resolved", "noted")
    assert detection.event_type_of(text)


def test_label_detection_handles_a_megabyte_in_linear_time() -> None:
    text = "not " * 250_000 + "need " * 10_000
    assert detection.status_of(text) == "noted"
    assert detection.event_type_of(text) == "message"


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
    sent = drafts.sort_out(entries)
    skipped = [index for skip in sent.skipped for index in skip.indexes]
    assert sorted([draft.index for draft in sent.drafts] + skipped) == list(range(len(entries)))
    assert all(draft.text.strip() for draft in sent.drafts)
    assert all(skip.reason and skip.count == len(skip.indexes) for skip in sent.skipped)


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


def event(number: int, text: str, **more: str) -> Item:
    return Item(
        rowid=number,
        id=f"evt_{number}",
        kind="event",
        text=text,
        occurred_at=number,
        created_at=number,
        updated_at=number,
        **more,  # type: ignore[arg-type]  # the fields have different types
    )


def test_a_narrative_prefers_decisions_and_keeps_the_order_of_events() -> None:
    events = [event(i, f"Chatter number {i} about nothing in particular") for i in range(20)]
    events.append(event(30, "Decision: use SQLite.", event_type="decision"))
    events.append(event(25, "TODO: measure it properly", event_type="planning", status="open"))

    told = summaries.tell(events, 120)

    assert told.index("TODO: measure it properly.") < told.index("Decision: use SQLite.")
    assert len(told) <= 120


@given(st.lists(st.text(min_size=1, max_size=300), max_size=20), st.integers(20, 500))
def test_a_narrative_never_exceeds_its_length_limit(texts: list[str], room: int) -> None:
    told = summaries.tell([event(i, text) for i, text in enumerate(texts)], room)
    assert len(told) <= room


@given(st.text(max_size=300), st.integers(2, 100))
def test_a_clipped_text_fits_and_ends_with_an_ellipsis(text: str, room: int) -> None:
    cut = summaries.clip(text, room)
    assert len(cut) <= room
    assert cut == text or cut.endswith("…")


@given(
    st.lists(st.text(max_size=300), max_size=10),
    st.text(max_size=5000),
    st.integers(min_value=1, max_value=5000),
)
def test_an_extraction_instruction_stays_under_two_kilobytes(
    titles: list[str], session: str, count: int
) -> None:
    known = [
        Item(
            rowid=i,
            id=f"kc_{'0' * 32}",
            kind="card",
            text="",
            title=title,
            category="personal_preference",
            occurred_at=0,
            created_at=0,
            updated_at=0,
        )
        for i, title in enumerate(titles)
    ]
    ids = [f"evt_{i:032x}" for i in range(count)]
    assert len(extraction.instruction(ids, session, known).encode("utf-8", "replace")) < 2048


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("done", "completed"),
        ("open", "pending"),
        ("WIP", "in_progress"),
        ("completed", "completed"),
    ],
)
def test_synonyms_map_to_the_same_status(word: str, status: str) -> None:
    assert status_named(word, TASK_STATUSES) == status
