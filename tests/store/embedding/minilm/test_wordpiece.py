"""WordPiece: the same pieces as BERT's own tokenizer."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.embedding.minilm.wordpiece import MAX_PIECES, WordPieces, load_vocabulary


def test_the_vocabulary_is_berts() -> None:
    content = "\n".join([*load_vocabulary(), ""]).encode()
    assert hashlib.sha256(content).hexdigest().startswith("07eced375cec144d27c900241f3e3394")


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello, World!", "hello , world !"),
        ("unaffable", "una ##ffa ##ble"),
        ("naïve CAFÉ", "naive cafe"),
        ("東京x", "東 京 x"),
        ("a\u00a0b\tc\u200bd", "a b cd"),
        ("$5.00", "$ 5 . 00"),
        ("x" * 101, "[UNK]"),
        ("ab🦄", "[UNK]"),
        ("", ""),
    ],
)
def test_word_pieces_are_those_the_model_was_trained_with(text: str, pieces: str) -> None:
    vocabulary = load_vocabulary()
    numbers = WordPieces(vocabulary).encode(text)
    assert [vocabulary[number] for number in numbers] == ["[CLS]", *pieces.split(), "[SEP]"]


@given(st.text(max_size=300))
def test_any_text_becomes_a_bounded_list_of_known_pieces(text: str) -> None:
    numbers = WORD_PIECES.encode(text * 5)
    assert 2 <= len(numbers) <= MAX_PIECES
    assert all(0 <= number < 30522 for number in numbers)


WORD_PIECES = WordPieces(load_vocabulary())
