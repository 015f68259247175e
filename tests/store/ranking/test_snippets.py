"""Snippets: the part of a text with most of the query, and its matches."""

from hypothesis import given
from hypothesis import strategies as st

from store.ranking.snippets import Marker
from store.ranking.tokenizer import query_terms


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


@given(st.text(alphabet="ab cd.\t_-\x1c'", max_size=60), st.text(alphabet="ab cd", max_size=8))
def test_words_are_found_the_same_way_in_any_text(text: str, query: str) -> None:
    marker = Marker(query_terms(query))
    if query_terms(query):
        assert list(marker._ascii_words(text)) == list(marker._words(text))
