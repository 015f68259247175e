"""Stems are those of Porter's published algorithm."""

import pytest

from store.ranking.stemming import stem


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
