"""The stored form of tokens, and late interaction with it."""

import numpy as np
import pytest

from store.vectors.tokens import closest_tokens, pack_tokens, token_bytes

DIMS = 128


def rows(count: int, seed: int = 1) -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    made = np.random.default_rng(seed).normal(size=(count, DIMS)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def test_a_token_takes_half_a_byte_for_each_dimension() -> None:
    assert len(pack_tokens(rows(3))) == 3 * token_bytes(DIMS) == 3 * 64


def test_packed_tokens_keep_their_direction() -> None:
    tokens = rows(5)
    found = closest_tokens(tokens, [(7, pack_tokens(tokens))])[7]
    assert min(found) > 0.98


def test_each_token_of_the_question_finds_the_closest_of_each_item() -> None:
    tokens = rows(4)
    found = closest_tokens(tokens[:1], [(1, pack_tokens(tokens[1:])), (2, pack_tokens(tokens[:2]))])
    assert found[2][0] == pytest.approx(1.0, abs=0.02)
    assert found[1][0] < 0.5


def test_tokens_of_a_wrong_length_are_left_out() -> None:
    packed = pack_tokens(rows(2))
    assert closest_tokens(rows(1), [(1, packed[:-1]), (2, b""), (3, packed)]).keys() == {3}
    assert closest_tokens(rows(1), []) == {}
