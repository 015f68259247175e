"""Content tokens from the run that also gives the text's vector."""

import numpy as np
import pytest

from store.embedding.minilm.model import load_packaged
from store.embedding.minilm.tokens import MOST_TOKENS, TOKEN_DIMS, content_places, skipped_pieces

VOCABULARY = ["[CLS]", "[SEP]", "the", ".", "dog", "##s"]


def test_markers_punctuation_and_stop_words_are_skipped() -> None:
    skipped = skipped_pieces(VOCABULARY)
    assert skipped == {0, 1, 2, 3}
    assert content_places([0, 2, 4, 5, 3, 1], skipped) == [2, 3]


def test_a_text_of_stop_words_keeps_all_of_them() -> None:
    assert content_places([0, 2, 2, 1], skipped_pieces(VOCABULARY)) == [1, 2]
    assert content_places([0, 1], skipped_pieces(VOCABULARY)) == [0]


def test_the_model_returns_the_same_vector_with_and_without_tokens() -> None:
    model = load_packaged()
    if model is None:
        pytest.skip("the model's package is not installed")
    texts = ["The dogs bark.", "word " * 200]
    vectors, tokens = model.embed_tokens(texts)
    assert np.array_equal(vectors, model.embed(texts))
    assert tokens is not None
    assert [len(rows) for rows in tokens] == [2, MOST_TOKENS]
    assert tokens[0].shape[1] == TOKEN_DIMS
    assert np.allclose(np.linalg.norm(tokens[0], axis=1), 1.0, atol=1e-5)
