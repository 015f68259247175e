"""Similar texts: a card or task counts as a repetition only if its statement is the same."""

import pytest

from store.model import NewCard, NewTask
from store.sqlite.engine import EmbeddedEngine

pytestmark = pytest.mark.anyio

LONG = "Requests to the billing service time out after {} seconds unless the caller asks for more"


def card(title: str, summary: str) -> NewCard:
    return NewCard(category="key_point", title=title, summary=summary)


async def outcomes(engine: EmbeddedEngine, *cards: NewCard) -> list[str]:
    return [(await engine.put_cards("w", [each]))[0].outcome for each in cards]


async def test_a_changed_number_is_a_new_version_and_not_a_repetition(
    engine: EmbeddedEngine,
) -> None:
    said = await outcomes(
        engine,
        card("Billing timeout", LONG.format(30)),
        card("Billing timeout", LONG.format(30) + "."),
        card("Billing timeout", LONG.format(60)),
    )
    assert said == ["created", "duplicate", "superseded"]
    ((now,), total) = await engine.cards("w")
    assert (total, "60" in now.summary) == (1, True)


async def test_a_denial_is_not_a_repetition(engine: EmbeddedEngine) -> None:
    said = await outcomes(
        engine,
        card("Tabs in Makefiles", "The linter accepts tabs in Makefiles"),
        card("Tabs in Makefiles", "The linter does not accept tabs in Makefiles"),
    )
    assert said == ["created", "superseded"]


async def test_a_reversed_dependency_is_not_a_repetition(
    engine: EmbeddedEngine,
) -> None:
    said = await outcomes(
        engine,
        card("Dependencies", "Parser depends on printer"),
        card("Dependencies", "Printer depends on parser"),
    )
    assert said == ["created", "superseded"]


async def test_the_same_statement_about_two_subjects_is_two_cards(engine: EmbeddedEngine) -> None:
    said = await outcomes(
        engine,
        *(
            card(f"Port of {name}", f"The port of the service {name} is open to everyone inside")
            for name in ("alpha", "beta", "gamma")
        ),
    )
    assert said == ["created"] * 3


async def test_articles_make_no_new_task_and_numbers_do(engine: EmbeddedEngine) -> None:
    titles = (
        "Fix the login bug on page 12",
        "Fix login bug on page 12",
        "Fix login bug on page 13",
    )
    puts = [(await engine.put_tasks("w", [NewTask(title=title)]))[0] for title in titles]
    assert [put.duplicate for put in puts] == [False, True, False]
