"""The order of turns of a conversation: a linear value of fifteen features, and a score.

The formula of `fusion` is better for documents and loose memories; this one is better for turns,
where the answer to a question is often the turn after the one that contains its words.

| feature | meaning |
|---|---|
| words | BM25 divided by the best BM25 |
| cosine | of the question without names and the turn without its label |
| tokens | late interaction: for each token of the question the closest token of the turn, of the turn before (× 0.85) or of the turn after (× 0.75); the mean |
| cover | the share of the question's terms, by weight, that occur in the turn, in the turn before (× 0.7) or after (× 0.5) |
| pairs | the share of the question's pairs of adjacent words that occur |
| words_two_before, cosine_before, cosine_after | of the neighbours; cosines above the median |
| words_group | the mean of the three best others of the session, above the median |
| asking | the turn is a question; answers are wanted |
| speaker | the question names the turn's speaker |
| answers_words, answers_tokens | the turn before is a question: its words and its tokens |
| time, number | the question asks for a time or a number, and the turn mentions one |

Tokens and cover over a window of three turns are the two strongest features. The weights were
fitted on the development conversations (listwise softmax, signs constrained); see RANKING.md for
the figures with one conversation left out at a time.
"""  # noqa: E501  (a table)

from collections.abc import Hashable, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from store.ranking.candidates import Candidate, Question
from store.ranking.turns import HAS_NUMBER, HAS_TIME

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Column = NDArray[np.float64]
    _Places = NDArray[np.int64]

WEIGHTS: Final[Mapping[str, float]] = {
    "words": 1.0,
    "cosine": 2.8,
    "tokens": 7.5,
    "words_two_before": 1.4,
    "cosine_before": 0.6,
    "cosine_after": 1.1,
    "words_group": 1.35,
    "asking": -0.8,
    "speaker": 1.1,
    "pairs": 2.0,
    "cover": 1.55,
    "answers_words": 1.5,
    "answers_tokens": 1.5,
    "time": 2.4,
    "number": 1.8,
}

TOKENS_BEFORE: Final = 0.85
TOKENS_AFTER: Final = 0.75
COVER_BEFORE: Final = 0.7
COVER_AFTER: Final = 0.5
GROUP_BEST: Final = 3
_MOST_TERMS: Final = 62  # bits of a place in `Candidate.terms` that fit an integer of NumPy
# A turn whose tokens have not been computed yet: the usual late interaction at this cosine.
TOKENS_AT_ZERO: Final = 0.35
TOKENS_PER_COSINE: Final = 0.5

# The value in the scale of `fusion`, so that turns and documents can be ordered together.
_SCALE: Final = 0.085
_OFFSET: Final = -0.1

_RIVALS: Final = 100  # the best turns, among which the probability of being right is shared
_SLOPE: Final = 0.825
_LOGIT_MOST: Final = 6.0
_STRONG_COVER: Final = 0.4
_WEAK_COSINE: Final = 0.15
_STRONG_COSINE: Final = 0.45


class TurnRanking:
    """The features, values and scores of the turns among some candidates."""

    def __init__(self, candidates: Sequence[Candidate], question: Question) -> None:
        import numpy as np

        self._turns = [c for c in candidates if c.turn is not None]
        self._places = {c.id: at for at, c in enumerate(self._turns)}
        self._columns = self._features(question) if self._turns else {}
        values = sum(
            (WEIGHTS[name] * column for name, column in self._columns.items()),
            start=np.zeros(len(self._turns)),
        )
        self._values: list[float] = values.tolist()
        self._scores: list[float] = self._probabilities(values).tolist() if self._turns else []

    def __contains__(self, id: int) -> bool:
        return id in self._places

    def __len__(self) -> int:
        return len(self._turns)

    def value(self, id: int) -> float:
        """The number that orders a turn, in the scale of the values of documents."""
        return _OFFSET + _SCALE * self._values[self._places[id]]

    def score(self, id: int) -> float:
        """The probability that a turn is right, from 0 to 1."""
        return self._scores[self._places[id]]

    def features(self, id: int) -> dict[str, float]:
        at = self._places[id]
        return {name: float(column[at]) for name, column in self._columns.items()}

    def _features(self, question: Question) -> "dict[str, _Column]":
        import numpy as np

        turns = self._turns
        before = self._neighbours([c.before for c in turns])
        after = self._neighbours([c.after for c in turns])
        words = np.array([c.words for c in turns])
        words /= max(float(words.max()), 1e-9)
        cosines = np.array([c.cosine or 0.0 for c in turns])
        closest, has_tokens = self._closest()
        tokens = np.where(
            has_tokens, closest.mean(axis=1), TOKENS_AT_ZERO + TOKENS_PER_COSINE * cosines
        )
        window = np.maximum(closest, TOKENS_BEFORE * _at(closest, before))
        window = np.maximum(window, TOKENS_AFTER * _at(closest, after)).mean(axis=1)
        excess = cosines - np.median(cosines)
        asking = np.array([float(c.is_asking) for c in turns])
        traits = np.array([c.turn.traits if c.turn else 0 for c in turns]) & question.traits
        return {
            "words": words,
            "cosine": cosines,
            "tokens": np.where(has_tokens, window, tokens),
            "words_two_before": _at(words, self._neighbours([c.two_before for c in turns])),
            "cosine_before": _at(excess, before),
            "cosine_after": _at(excess, after),
            "words_group": self._company(words - np.median(words)),
            "asking": asking,
            "speaker": np.array([float(c.turn.is_speaker) if c.turn else 0.0 for c in turns]),
            "pairs": np.array([c.pairs for c in turns]),
            "cover": self._cover(question.gains, before, after),
            "answers_words": _at(words * asking, before),
            "answers_tokens": _at(np.maximum(0.0, tokens - np.median(tokens)) * asking, before),
            "time": (traits & HAS_TIME > 0).astype(np.float64),
            "number": (traits & HAS_NUMBER > 0).astype(np.float64),
        }

    def _neighbours(self, ids: Sequence[int | None]) -> "_Places":
        """The places of these turns; -1 for those that are not among the candidates."""
        import numpy as np

        return np.array([-1 if id is None else self._places.get(id, -1) for id in ids])

    def _closest(self) -> "tuple[_Column, NDArray[np.bool_]]":
        """The rows of `TurnEvidence.closest`, and which turns have one."""
        import numpy as np

        rows = [c.turn.closest if c.turn else () for c in self._turns]
        width = max(map(len, rows)) or 1
        empty = (0.0,) * width
        return np.array([row or empty for row in rows]), np.array([bool(row) for row in rows])

    def _cover(self, gains: Sequence[float], before: "_Places", after: "_Places") -> "_Column":
        import numpy as np

        gains = gains[:_MOST_TERMS]
        if not gains:
            return np.zeros(len(self._turns))
        mask = (1 << _MOST_TERMS) - 1
        terms = np.array([c.terms & mask for c in self._turns], dtype=np.int64)
        has = (terms[:, None] >> np.arange(len(gains)) & 1).astype(np.float64)
        near = np.maximum(COVER_BEFORE * _at(has, before), COVER_AFTER * _at(has, after))
        cover: _Column = np.maximum(has, near) @ np.array(gains) / max(sum(gains), 1e-9)
        return cover

    def _company(self, excess: "_Column") -> "_Column":
        """For each turn the mean excess of the three best others of its session."""
        import numpy as np

        best = best_of_groups(
            [(c.group, amount) for c, amount in zip(self._turns, excess.tolist(), strict=True)]
        )
        return np.array(
            [
                mean_of_others(best.get(c.group, ()), amount)
                for c, amount in zip(self._turns, excess.tolist(), strict=True)
            ]
        )

    def _probabilities(self, values: "_Column") -> "_Column":
        """The share of each turn in a softmax over the best turns.

        It is damped if the turn stands out only among turns that have little to do with the
        question: few of its words and a low cosine.
        """
        import numpy as np

        powers = np.exp(values - values.max())
        shares = powers / np.sort(powers)[-_RIVALS:].sum()
        shares = np.clip(shares, 1e-9, 1.0 - 1e-9)
        logits = np.clip(_SLOPE * np.log(shares / (1.0 - shares)), -_LOGIT_MOST, _LOGIT_MOST)
        closeness = (self._columns["cosine"] - _WEAK_COSINE) / (_STRONG_COSINE - _WEAK_COSINE)
        evidence = np.maximum(self._columns["cover"] / _STRONG_COVER, closeness)
        likely: _Column = np.clip(evidence, 0.0, 1.0) / (1.0 + np.exp(-logits))
        return likely


def _at(rows: "_Column", places: "_Places") -> "_Column":
    """The rows at these places; zeros for the place -1."""
    found: _Column = rows[places].copy()
    found[places < 0] = 0.0
    return found


def best_of_groups(amounts: Sequence[tuple[Hashable, float]]) -> dict[Hashable, list[float]]:
    """The four largest positive amounts of each group, largest first."""
    groups: dict[Hashable, list[float]] = {}
    for group, amount in amounts:
        if group is not None and amount > 0.0:
            groups.setdefault(group, []).append(amount)
    return {group: nlargest(GROUP_BEST + 1, values) for group, values in groups.items()}


def mean_of_others(best: Sequence[float], own: float) -> float:
    """The mean of the three best of a group (of which four are given), without the item itself."""
    total = sum(best) - own if own in best[:GROUP_BEST] else sum(best[:GROUP_BEST])
    return total / GROUP_BEST
