"""Words: any string is a query, identifiers are found whole and in parts, scores are BM25."""

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.ranking.stemming import stem
from store.ranking.tokenizer import (
    FTS_TOKENIZE,
    MAX_QUERY_TERMS,
    MAX_TOKEN,
    STOP_WEIGHT,
    Marker,
    Statistics,
    best_possible,
    bm25,
    index_text,
    inverse_frequency,
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


# --- scores -----------------------------------------------------------------------------------


def statistics(documents: list[str]) -> Statistics:
    cut = [document.split() for document in documents]
    words = {word for document in cut for word in document}
    return Statistics(
        items=len(documents),
        average_length=sum(map(len, cut)) / max(1, len(cut)),
        frequencies={word: sum(word in document for document in cut) for word in words},
    )


def test_rarer_terms_more_often_and_shorter_texts_score_higher() -> None:
    documents = ["rare common", "common common2", "rare rare2 rare common", "rare " + "x " * 50]
    rare, common, twice, diluted = bm25(query_terms("rare"), documents, statistics(documents))
    assert common == 0.0
    assert twice > rare > diluted > 0.0


def test_a_term_found_in_every_item_still_counts_a_little() -> None:
    assert inverse_frequency(10, 10) > 0.0
    assert inverse_frequency(1, 10) > inverse_frequency(5, 10)
    assert inverse_frequency(20, 10) > 0.0, "an estimate may exceed the number of items"


def test_the_yardstick_is_every_term_once_in_a_text_of_usual_length() -> None:
    documents = ["camp fire", "camp tent", "lake boat"]
    terms = query_terms("camp fire")
    scores = bm25(terms, documents, statistics(documents))
    assert scores[0] == pytest.approx(best_possible(terms, statistics(documents)))


@given(
    st.lists(st.text(alphabet="abc ", max_size=20), max_size=5),
    st.text(alphabet="abc ", max_size=9),
)
def test_scores_are_never_negative_and_zero_without_a_common_word(
    texts: list[str], query: str
) -> None:
    documents = [index_text(text) for text in texts]
    terms = query_terms(query)
    for document, score in zip(
        documents, bm25(terms, documents, statistics(documents)), strict=True
    ):
        assert (score > 0.0) == bool({t.text for t in terms} & set(document.split()))


# --- snippets ---------------------------------------------------------------------------------


def test_a_short_text_is_its_own_snippet_with_the_matches_marked() -> None:
    found = Marker(query_terms("camps lakes")).snippet("We went camping by the lake")
    assert found.text == "We went camping by the lake"
    assert [found.text[a:b] for a, b in found.matches] == ["camping", "lake"]


def test_a_long_text_is_cut_where_most_of_the_query_is() -> None:
    text = "nothing here " * 60 + "the camp fire by the lake" + " nothing there" * 60
    found = Marker(query_terms("camp fire lake")).snippet(text, width=80)
    assert len(found.text) <= 80
    assert [found.text[a:b] for a, b in found.matches][:2] == ["camp", "fire"]
    assert not found.text.startswith("othing")


def test_without_a_match_the_snippet_is_the_beginning() -> None:
    found = Marker(query_terms("zebra")).snippet("one two " * 100, width=40)
    assert found.text.startswith("one two")
    assert found.matches == ()


@given(st.sampled_from(["buys", "ponies", "skies", "C++", "getUserName", "Élan", "v1.2", "dyed"]))
def test_a_word_is_marked_by_itself_however_its_stem_looks(word: str) -> None:
    assert Marker(query_terms(word)).snippet(f"so {word} here").matches


def test_dense_scripts_match_by_pairs() -> None:
    found = Marker(query_terms("東京")).snippet("私は東京タワーへ行った")
    assert [found.text[a:b] for a, b in found.matches] == ["東京"]


@given(st.text(max_size=200), st.text(max_size=20), st.integers(min_value=5, max_value=80))
def test_a_snippet_is_a_window_of_the_text_and_matches_lie_inside(
    text: str, query: str, width: int
) -> None:
    found = Marker(query_terms(query)).snippet(text, width=width)
    assert found.text in text
    assert len(found.text) <= max(width, 0) or found.text == text
    assert all(0 <= a < b <= len(found.text) for a, b in found.matches)


# --- stems ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        # from Porter's paper, one or two for each rule
        ("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("caress", "caress"),
        ("feed", "feed"), ("agreed", "agre"), ("plastered", "plaster"), ("bled", "bled"),
        ("motoring", "motor"), ("sing", "sing"), ("conflated", "conflat"), ("troubled", "troubl"),
        ("sized", "size"), ("hopping", "hop"), ("falling", "fall"), ("hissing", "hiss"),
        ("failing", "fail"), ("filing", "file"), ("happy", "happi"), ("relational", "relat"),
        ("conditional", "condit"), ("vietnamization", "vietnam"), ("triplicate", "triplic"),
        ("formative", "form"), ("hopeful", "hope"), ("goodness", "good"), ("revival", "reviv"),
        ("adoption", "adopt"), ("replacement", "replac"), ("probate", "probat"), ("rate", "rate"),
        ("cease", "ceas"), ("controll", "control"), ("roll", "roll"), ("companion", "companion"),
        ("boxing", "box"), ("trying", "try"), ("sky", "sky"), ("syzygy", "syzygi"),
    ],
)  # fmt: skip
def test_stems_are_porters(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("word", ["abc", "café", "x1y2", "UPPER", "a" * 60, ""])
def test_other_words_are_their_own_stem(word: str) -> None:
    assert stem(word) == word


@given(st.text(alphabet="ab cd.\t_-\x1c'", max_size=60), st.text(alphabet="ab cd", max_size=8))
def test_words_are_found_the_same_way_in_any_text(text: str, query: str) -> None:
    marker = Marker(query_terms(query))
    if query_terms(query):
        assert list(marker._ascii_words(text)) == list(marker._words(text))
