"""Time expressions of questions: their spans, and the texts that name no time."""

from datetime import UTC, datetime

import pytest

from store.ranking.dates import asked_time

#: A Tuesday.
NOW = datetime(2026, 11, 17, 2, tzinfo=UTC)


def milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def span(question: str) -> tuple[str | None, str | None]:
    asked = asked_time(question, milliseconds(NOW))
    assert asked is not None, question

    def day(moment: int | None) -> str | None:
        return None if moment is None else f"{datetime.fromtimestamp(moment / 1000, UTC):%Y-%m-%d}"

    return day(asked.since), day(asked.until)


@pytest.mark.parametrize(
    ("question", "since", "until"),
    [
        ("What happened last week?", "2026-11-09", "2026-11-16"),
        ("What did we do this week?", "2026-11-16", "2026-11-18"),
        ("What did we do yesterday?", "2026-11-16", "2026-11-17"),
        ("yesterday's build failed, why?", "2026-11-16", "2026-11-17"),
        ("What broke the day before yesterday?", "2026-11-15", "2026-11-16"),
        ("What happened today?", "2026-11-17", "2026-11-18"),
        ("What happened in May?", "2026-05-01", "2026-06-01"),
        ("what did we ship in december", "2025-12-01", "2026-01-01"),
        ("What did we ship in May 2024?", "2024-05-01", "2024-06-01"),
        ("what happened on 3 May?", "2026-05-03", "2026-05-04"),
        ("What happened on the 3rd of May, 2025?", "2025-05-03", "2025-05-04"),
        ("What happened on May 3rd?", "2026-05-03", "2026-05-04"),
        ("What happened on 24 December?", "2025-12-24", "2025-12-25"),
        ("What happened on 2026-05-03?", "2026-05-03", "2026-05-04"),
        ("What broke since 3 May?", "2026-05-03", None),
        ("What broke since last week?", "2026-11-09", None),
        ("What did we decide before May 2025?", None, "2025-05-01"),
        ("What was decided in 2024?", "2024-01-01", "2025-01-01"),
        ("What happened on Friday?", "2026-11-13", "2026-11-14"),
        ("What happened on Tuesday?", "2026-11-10", "2026-11-11"),
        ("What happened last month?", "2026-10-01", "2026-11-01"),
        ("What happened last quarter?", "2026-07-01", "2026-10-01"),
        ("What happened last year?", "2025-01-01", "2026-01-01"),
        ("What did we do last weekend?", "2026-11-14", "2026-11-16"),
        ("What did we do in the last 3 days?", "2026-11-14", "2026-11-18"),
        ("What did we decide three days ago?", "2026-11-14", "2026-11-15"),
        ("What did we decide two weeks ago?", "2026-10-31", "2026-11-07"),
    ],
)
def test_a_time_expression_becomes_a_span(
    question: str, since: str | None, until: str | None
) -> None:
    assert span(question) == (since, until)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "may I use the second index on redis?",
        "Where does the march of the penguins play?",
        "What does the spec say about sat fields?",
        "deploy at 5 to node 2",
        "What happened on 31 February?",
        "What happened on 2026-13-45?",
        "What is planned for next week?",
        "When did Ana go to the museum?",
        "the last release",
        "1234567890 days ago",
        "yesterday " * 1_000,
    ],
)
def test_other_texts_name_no_time(text: str) -> None:
    assert asked_time(text, milliseconds(NOW)) is None


def test_since_an_event_names_the_event() -> None:
    now = milliseconds(NOW)
    for question, anchor in (
        ("What changed since the release?", "release"),
        ("since our last deployment, what failed?", "last deployment"),
        ("What failed since we moved to Postgres?", "moved to Postgres"),
    ):
        asked = asked_time(question, now)
        assert asked is not None and asked.anchor == anchor


@pytest.mark.parametrize(
    ("question", "is_all"),
    [
        ("What happened last week?", True),
        ("Tell me everything we did yesterday", True),
        ("What changed since the release?", True),
        ("What did we decide about caching last week?", False),
        ("Which tests failed yesterday?", False),
    ],
)
def test_a_question_without_a_subject_asks_for_everything(question: str, is_all: bool) -> None:
    asked = asked_time(question, milliseconds(NOW))
    assert asked is not None and asked.is_all is is_all
