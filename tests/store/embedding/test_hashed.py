"""Hashed features: unit vectors that express spelling and say that they express no meaning."""

from hypothesis import given
from hypothesis import strategies as st

from store.embedding.hashed import HashedFeatures
from store.embedding.selection import EmbeddingSettings, choose_embedder


def test_similar_spellings_are_close_and_the_embedder_is_not_semantic() -> None:
    embedder = choose_embedder(EmbeddingSettings(hashed=True))
    assert isinstance(embedder, HashedFeatures)
    assert not embedder.is_semantic
    one, same, typo, other = embedder.embed(
        ["postgres upgrade", "Upgrade: Postgres", "postgress upgrades", "birthday cake"]
    )
    assert one @ same > 0.8
    assert one @ typo > 0.5 > abs(one @ other) + 0.1


@given(st.lists(st.text(max_size=40), max_size=4))
def test_hashed_features_are_unit_vectors_of_any_text(texts: list[str]) -> None:
    vectors = HashedFeatures().embed(texts)
    assert (abs((vectors**2).sum(axis=1) - 1.0) < 1e-4).all()
