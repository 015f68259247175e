"""Synonyms of statuses."""

import pytest

from daemon.dialects.awareness.language.vocabulary import TASK_STATUSES, status_named


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
