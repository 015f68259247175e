"""Tokens: any string is a query, and identifiers are found whole and in parts."""

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.ranking.snippets import Marker
from store.ranking.tokenizer import (
    FTS_TOKENIZE,
    MAX_QUERY_TERMS,
    MAX_TOKEN,
    STOP_WEIGHT,
    index_text,
    match_expression,
    query_terms,
    quoted,
)

HOSTILE = (
    '"', "'", "*", "a*", "NEAR(a b)", "a AND", "OR", "NOT x", "tokens:secret", "(", ")", "^a", "-a",
    "a - b", "+", "{a b}", "\\", "%", "a;b", "--", "/* x */", "''", '""', '"a', "a\"b", "\t", "\n",
    "\u200b", "\ufeff", "\u202e", "é́́", "🏳️‍🌈", "ﷺ", "ß", "İ", "�", "a" * 10_000, "a." * 5_000,
    "\x01", "C++", "C#", ".NET", "...", "!?", "AND OR NOT", "rowid", "words", "NULL", "café",
)  # fmt: skip


def fts() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        f'CREATE VIRTUAL TABLE words USING fts5 (tokens, tokenize = "{FTS_TOKENIZE}")'
    )
    return connection


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("snake_case", "snake_case snake case"),
        ("getUserName", "getusernam get user name"),
        ("HTTPServer", "httpserver http server"),
        ("docs/auth.md", "docs/auth.md doc auth md"),
        ("v1.2.3", "v1.2.3 v1 2 3"),
        ("C++ and C#", "c++ c and c# c"),
        ("user@example.com", "user@example.com user exampl com"),
        ("std::vector", "std::vector std vector"),
        ("well-known", "well-known well known"),
        ("Caroline's dogs", "carolin dog"),
        ("Caroline’s dog.", "carolin dog"),
        ("l'homme", "l homm"),
        ("don't", "don t"),
        ("Café Straße ÉCOLE", "cafe strass ecol"),
        ("Ω ω Й", "ω ω и"),
        ("ﬁne １２", "fine 12"),
        ("東京", "東 京 東京"),
        ("猫", "猫"),
        ("go東京へ", "go 東 京 へ 東京 京へ"),
        ("한국", "한 국 한국"),
        ("हिन्दी", "हिन्दी"),
        ("hi 🎉!", "hi 🎉"),
        ("a\u200bb", "ab"),
        ("❤️", "❤"),
        ("__init__", "init"),
        ("#tag @name --flag", "tag name flag"),
        ("a++++", "a"),
        ("+ # .. _", ""),
        ("", ""),
        ("running camped camping", "run camp camp"),
    ],
)
def test_a_text_is_cut_into_these_tokens(text: str, tokens: str) -> None:
    assert index_text(text) == tokens


def test_a_long_word_is_found_by_its_beginning_and_a_blob_is_not_cut_at_capitals() -> None:
    assert index_text("x" * 200) == "x" * MAX_TOKEN
    assert index_text("aB" * 100) == ("ab" * 100)[:MAX_TOKEN]
    assert index_text("/".join(["path"] * 30)) == " ".join(["path"] * 30)


def test_a_query_asks_for_pairs_where_a_text_offers_singles_too() -> None:
    assert [term.text for term in query_terms("東京タ")] == ["東京", "京タ"]
    assert [term.text for term in query_terms("猫")] == ["猫"]


def test_stop_words_weigh_little_and_come_last_but_do_not_vanish() -> None:
    terms = query_terms("where is the camp")
    assert terms[0] == ("camp", 1.0)
    assert {term.weight for term in terms[1:]} == {STOP_WEIGHT}
    assert {term.weight for term in query_terms("to be or not to be")} == {1.0}


def test_a_query_has_at_most_sixty_four_terms_each_once() -> None:
    terms = query_terms(" ".join(f"term{n}" for n in range(500)) + " term1 term1")
    assert len(terms) == MAX_QUERY_TERMS
    assert len({term.text for term in terms}) == MAX_QUERY_TERMS


def test_match_syntax_is_every_term_quoted_or_nothing() -> None:
    assert match_expression('say "hi" OR x*') == '"say" OR "hi" OR "x" OR "or"'
    assert match_expression("  ...  ") is None
    assert quoted('a"b') == '"a""b"'


@pytest.mark.parametrize("query", HOSTILE)
def test_hostile_strings_are_queries_and_texts_like_any_other(query: str) -> None:
    connection = fts()
    connection.execute("INSERT INTO words (rowid, tokens) VALUES (1, ?)", (index_text(query),))
    expression = match_expression(query)
    if expression is not None:
        found = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,))
        assert found.fetchall() == [(1,)], "a text is found by itself"


@given(st.text(max_size=80))
def test_any_text_is_found_by_itself(text: str) -> None:
    connection = fts()
    connection.execute("INSERT INTO words (rowid, tokens) VALUES (1, ?)", (index_text(text),))
    expression = match_expression(text)
    if expression is None:
        assert index_text(text) == ""
    else:
        found = connection.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,))
        assert found.fetchall() == [(1,)]


@given(st.text(max_size=60))
def test_fts5_keeps_every_token_as_we_cut_it(text: str) -> None:
    tokens = index_text(text).split()
    connection = fts()
    connection.execute("INSERT INTO words (tokens) VALUES (?)", (" ".join(tokens),))
    connection.execute("CREATE VIRTUAL TABLE seen USING fts5vocab (words, row)")
    assert {term for (term,) in connection.execute("SELECT term FROM seen")} == set(tokens)


@pytest.mark.parametrize(
    "unit", ["a", "aB", "a-", "a.", "東", "'s ", "é", "++", "a_B.", "\u0301", "A" * 50 + "a", "🎉"]
)
def test_cutting_takes_time_in_proportion_to_length(unit: str) -> None:
    def seconds(count: int) -> float:
        text = unit * count
        started = time.process_time()
        index_text(text)
        Marker(query_terms(unit)).snippet(text)
        return time.process_time() - started

    short = min(seconds(20_000 // len(unit)) for _ in range(3))
    long = min(seconds(160_000 // len(unit)) for _ in range(3))
    assert long < 8 * short * 4 + 0.05, "eight times the text, far less than 64 times the time"
