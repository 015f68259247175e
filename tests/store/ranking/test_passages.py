"""Passages: whole sentences that answer a query, chosen by meaning and by words."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from store.model import Hit, Item
from store.ranking.passages import WIDTH, Passages, runs, sentences

FILLING = "This sentence is about something else and has no relation to it. " * 4


def hit(id: str, document: str, text: str, score: float) -> Hit:
    item = Item(
        rowid=1, id=id, kind="chunk", text=text, document=document, created_at=0, updated_at=0,
        occurred_at=0,
    )  # fmt: skip
    return Hit(item=item, score=score, snippet=text[:240])


def chosen(question: str, near: str, *hits: Hit, documents: int = 3) -> tuple[Hit, ...]:
    """Passages for a query whose vector equals that of the sentences with the text `near`."""
    passages = Passages(question, hits, documents)
    vectors = np.array(
        [[1.0, 0.0] if near in text else [0.1, 0.9] for text in passages.texts()], np.float32
    )
    return passages.chosen(np.array([1.0, 0.0], np.float32), vectors)


def test_the_passage_with_the_closest_sentence_is_shown() -> None:
    text = f"{FILLING}It gives up after nine attempts in a row. {FILLING}"
    (found,) = chosen("how many retries", "nine attempts", hit("a", "d", text, 0.5))
    assert "It gives up after nine attempts in a row." in found.snippet
    assert len(found.snippet) <= WIDTH


def test_between_equally_close_passages_the_words_of_the_query_decide() -> None:
    text = f"The limit is nine. {FILLING}{FILLING}The limit of retries is nine."
    (found,) = chosen("retries", "is nine", hit("a", "d", text, 0.5))
    assert "retries" in found.snippet
    assert [found.snippet[a:b] for a, b in found.matches] == ["retries"]


def test_the_passage_may_lie_in_another_chunk_of_the_document() -> None:
    first = hit("a", "d", FILLING, 0.5)
    second = hit("b", "d", f"{FILLING}It gives up after nine attempts. ", 0.45)
    found = chosen("how many retries", "nine attempts", first, second)
    assert found[0].item.id == "b"
    assert found[0].score > 0.5


def test_a_better_passage_raises_its_document_above_one_with_a_slightly_better_score() -> None:
    found = chosen(
        "how many retries", "nine attempts",
        hit("a", "one", FILLING, 0.4), hit("b", "two", "It gives up after nine attempts.", 0.35),
    )  # fmt: skip
    assert [each.item.id for each in found] == ["b", "a"]
    assert found[0].score <= 1.0


def test_documents_after_the_first_ones_and_far_below_them_are_not_compared() -> None:
    hits = [hit("a", "one", FILLING, 0.5), hit("b", "two", FILLING, 0.49)]
    low = hit("c", "three", FILLING, 0.1)
    assert Passages("x", [*hits, low], 1).texts() == Passages("x", hits[:1], 1).texts()
    assert Passages("x", [*hits, low], 3).texts() == Passages("x", hits, 3).texts()


@given(st.text(alphabet="ab .!?:\n。", max_size=900))
def test_sentences_cover_the_text_in_order_and_fit_into_a_passage(text: str) -> None:
    spans = sentences(text)
    assert "".join(text[a:b] for a, b in spans).split() or not text.strip()
    assert all(0 < end - start <= WIDTH for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    kept = "".join("".join(text[a:b].split()) for a, b in spans)
    assert kept == "".join(text.split())
    covered = {at for first, last in runs(spans) for at in range(first, last + 1)}
    assert covered == set(range(len(spans)))
