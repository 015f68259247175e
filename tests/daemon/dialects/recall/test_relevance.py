"""The scale of Claude Recall's scores."""

import pytest

from daemon.dialects.recall.relevance import engine_score, shown_score


@pytest.mark.parametrize("score", [0.0, 0.05, 0.18, 0.4, 0.7, 0.95, 1.0])
def test_a_threshold_is_the_inverse_of_a_score(score: float) -> None:
    assert engine_score(shown_score(score)) == pytest.approx(score)


def test_the_default_threshold_admits_a_paraphrase() -> None:
    assert shown_score(0.2) > 0.7 > shown_score(0.15)


def test_the_scale_never_falls() -> None:
    shown = [shown_score(at / 100) for at in range(101)]
    assert shown == sorted(shown)
    assert (shown[0], shown[-1]) == (0.0, 1.0)
