"""The relation of two statements: same, updated or different."""

import pytest

from store.ranking.statements import Relation, Statement, relation


def related(old: str, new: str, cosine: float | None = 0.9) -> Relation | None:
    return relation(Statement(title="", text=old), Statement(title="", text=new), cosine)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The API allows 100 requests per minute.", "The API allows 250 requests per minute."),
        ("Sessions expire after 30 minutes.", "Sessions expire after 8 hours."),
        ("Every change needs one approval.", "Every change needs two approvals."),
        ("We deploy on Tuesdays.", "We deploy on Wednesdays now."),
        ("Mail goes through SendGrid.", "Mail goes through Postmark."),
        ("Failed webhooks are retried three times.", "Failed webhooks are not retried."),
        ("Logs are kept in plain text for a year.", "Logs are no longer kept in plain text."),
    ],
)
def test_a_changed_value_is_an_update(old: str, new: str) -> None:
    assert related(old, new) == "update"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The importer retries three times.", "The exporter retries three times."),
        ("The billing service uses port 80.", "The search service uses port 81."),
        ("Node 1 runs Postgres.", "Node 2 runs Postgres."),
        ("Redis holds the sessions.", "Redis holds the queue."),
        ("The default limit of reads is 5.", "The default limit of writes is 5."),
        ("The parser reads CSV files.", "The parser reads JSON files."),
        ("Ana prefers tabs to spaces.", "Ana prefers spaces to tabs."),
        ("TLS is enabled between all services.", "Between the services, we disabled all TLS."),
        ("Ana reviews the parser.", "It is the parser that Ben reviews with Ana."),
    ],
)
def test_statements_on_two_subjects_are_different(old: str, new: str) -> None:
    assert related(old, new) is None


def test_a_paraphrase_is_the_same_statement() -> None:
    old = "Ana prefers tabs to spaces for indentation."
    assert related(old, "For indentation, Ana likes tabs better than spaces.", 0.94) == "same"
    assert related(old, "For indentation, Ana likes tabs better than spaces.", 0.7) is None
    assert related(old, "For indentation, Ana likes 3 tabs better than spaces.", 0.94) is None


def test_titles_of_two_subjects_keep_equal_looking_statements_apart() -> None:
    old = Statement(title="EU region", text="Data is stored in Frankfurt.")
    new = Statement(title="US region", text="Data is stored in Virginia.")
    assert relation(old, new, 0.9) is None


def test_without_a_cosine_only_equal_words_are_the_same_statement() -> None:
    assert related("The limit is 5", "Limit is 5", None) == "same"
    assert related("The limit is 5 items", "The limit is 6 items", None) is None
