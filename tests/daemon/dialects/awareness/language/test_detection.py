"""Detection of actor, event type and status in the text of an event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.awareness.language import detection


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


@given(st.text(max_size=300))
def test_every_text_gets_a_valid_actor_status_and_event_type(text: str) -> None:
    assert detection.actor_of(text) in detection.ACTORS
    assert detection.status_of(text) in ("open", "in_progress", "resolved", "noted")
    assert detection.event_type_of(text)


def test_label_detection_handles_a_megabyte_in_linear_time() -> None:
    text = "not " * 250_000 + "need " * 10_000
    assert detection.status_of(text) == "noted"
    assert detection.event_type_of(text) == "message"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("We must still rotate the keys", "open"),
        ("We should add a retry to the uploader", "open"),
        ("todo write the migration", "open"),
        ("- todo: write the migration", "open"),
        ("We still have to update the docs", "open"),
        ("Wir müssen noch die Schlüssel tauschen", "open"),
        ("Der Umzug ist blockiert", "open"),
        ("Das ist noch offen", "open"),
        ("Der Fehler ist behoben", "resolved"),
        ("Der Umzug ist nicht mehr blockiert", "noted"),
        ("この件は未対応です", "open"),
        ("テストを書く必要がある", "open"),
        ("対応済みです", "resolved"),
        ("The TODO app uses React", "noted"),
        ("Our todo list is kept in Notion", "noted"),
    ],
)
def test_open_work_is_recognised_in_three_languages(text: str, status: str) -> None:
    assert detection.status_of(text) == status
