"""Scores of Claude Recall's results: a scale of its own, on which 0.7 is the default threshold.

The engine's score estimates the probability that a result is right, so a correct paraphrase often
has 0.2 to 0.5. Claude Recall's default threshold of 0.7 would hide it. On this dialect's scale 0.7
means "related to the question". Measured on a project memory of 40 facts (`bench.py recall
--memories`): 0.18 admits 35 of 36 right first results, and no question without an answer reaches
it.
"""

from itertools import pairwise
from typing import Final

# Points (engine score, score of this dialect) of a piecewise linear curve.
CURVE: Final = ((0.0, 0.0), (0.18, 0.7), (0.7, 0.9), (1.0, 1.0))


def shown_score(score: float) -> float:
    """An engine score on the scale of this dialect."""
    return _interpolated([*CURVE], score)


def engine_score(threshold: float) -> float:
    """The engine score that a threshold of this dialect corresponds to."""
    return _interpolated([(y, x) for x, y in CURVE], threshold)


def _interpolated(curve: list[tuple[float, float]], at: float) -> float:
    for (left, low), (right, high) in pairwise(curve):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return curve[-1][1]
