"""Fits the weights of `store.ranking.conversation`, with one conversation left out at a time.

The model is a softmax over the candidates of a question (listwise regression, L2), optimised by
Adam with projected signs. The features are those that the product explains for its hundred best
candidates, so a fitted value reorders them exactly as the product would.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from store.ranking.conversation import WEIGHTS

NAMES = tuple(WEIGHTS)
L2 = 3.0
STEPS = 250
RATE = 0.05


@dataclass
class Asked:
    """A question: the features of its candidates, and which of them are right."""

    group: int
    features: list[dict[str, float]]
    is_right: list[bool]
    right: int


def cross_validate(asked: Sequence[Asked]) -> dict[str, Any]:
    """R@10 and nDCG@10 with the shipped weights, fitted to all, and with one group left out."""
    groups = sorted({one.group for one in asked})
    left_out: list[tuple[float, float]] = []
    for group in groups:
        weights = _fitted([one for one in asked if one.group != group])
        left_out += [_quality(one, weights) for one in asked if one.group == group]
    everything = _fitted(asked)
    return {
        "shipped": _means([_quality(one, dict(WEIGHTS)) for one in asked]),
        "fitted_to_all": _means([_quality(one, everything) for one in asked]),
        "cross_validated": _means(left_out),
        "weights_fitted_to_all": {name: round(everything[name], 3) for name in NAMES},
    }


def _fitted(asked: Sequence[Asked]) -> dict[str, float]:
    import numpy as np

    usable = [one for one in asked if any(one.is_right)]
    lists = [[[row.get(n, 0.0) for n in NAMES] for row in one.features] for one in usable]
    rows = np.concatenate([np.array(rows, dtype=np.float64) for rows in lists])
    lengths = np.array([len(rows) for rows in lists])
    starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
    of = np.repeat(np.arange(len(lengths)), lengths)
    target = np.concatenate([np.array(one.is_right) / sum(one.is_right) for one in usable])
    spread = rows.std(axis=0) + 1e-9
    rows = rows / spread
    signs = np.array([math.copysign(1.0, WEIGHTS[name]) for name in NAMES])
    weights, mean, square = (np.zeros(len(NAMES)) for _ in range(3))
    for step in range(1, STEPS + 1):
        values = rows @ weights
        powers = np.exp(values - np.maximum.reduceat(values, starts)[of])
        shares = powers / np.add.reduceat(powers, starts)[of]
        slope = (rows.T @ (shares - target) + L2 * weights) / 100.0
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope * slope
        change = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        weights = weights - RATE * change
        weights = np.where(weights * signs < 0, 0.0, weights)
    return dict(zip(NAMES, (weights / spread).tolist(), strict=True))


def _quality(one: Asked, weights: dict[str, float]) -> tuple[float, float]:
    """R@10 and nDCG@10 of one question."""
    values = [sum(weights[n] * row.get(n, 0.0) for n in NAMES) for row in one.features]
    order = sorted(range(len(values)), key=lambda at: -values[at])[:10]
    ranks = [rank for rank, at in enumerate(order) if one.is_right[at]]
    ideal = sum(1.0 / math.log2(rank + 2) for rank in range(min(10, one.right)))
    return len(ranks) / one.right, sum(1.0 / math.log2(rank + 2) for rank in ranks) / ideal


def _means(qualities: Sequence[tuple[float, float]]) -> dict[str, float]:
    count = max(1, len(qualities))
    return {
        "r10": round(sum(recall for recall, _ in qualities) / count, 4),
        "ndcg10": round(sum(gain for _, gain in qualities) / count, 4),
    }
