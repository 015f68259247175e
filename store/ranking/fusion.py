"""Fusion of keyword and vector search into one order and one absolute score.

The order of a hybrid search is a weighted sum:

    value = 0.5 * words + 0.5 * meaning + context + boosts

- **words**: BM25 divided by the best BM25 among the candidates, damped if even the best candidate
  covers little of the query. (Dividing by an ideal score instead costs 1 point R@10.)
- **meaning**: the cosine similarity; negative values count as 0.
- **context**: the neighbours of a turn of a conversation or of a chunk of a document. The excess of
  a candidate is its value above the median candidate. An item gains 0.4 of the excess of the item
  before it, 0.25 of the one after it, 0.2 of the second one before it, and 0.2 of the mean of the
  three best of its session or document. This is the largest gain of all (+6 points R@10 on
  conversations). An item without neighbours loses nothing.
- **boosts**: +0.1 if the text contains the words of the query in their order, -0.05 for a question
  (answers are wanted), up to +0.02 for a recent item (halved every 30 days), +0.3 for an item from
  the time that the query names. The last one changes the order only, not the score.

Reciprocal rank fusion is not used: with the usual constant it was worse than BM25 alone.

The **score** is absolute and estimates the probability that a result is right; 0.7 means
"relevant". It is the highest of three estimates, each fitted on conversations with known answers:
from the item's standing (its value, its distance to the fifth best, its lead in words), from the
cosine alone, and from the words alone. It never rises down the list. A literal match of the
query scores at least 0.9.

These are pure functions: no clock, no database, no NumPy. Ties are broken by age, newer first.
"""

import math
from collections.abc import Mapping, Sequence
from heapq import nlargest
from itertools import pairwise
from typing import Final

from msgspec import Struct

from store.model import Mode
from store.ranking.candidates import Candidate, Question, Ranked
from store.ranking.conversation import (
    TurnRanking,
    best_of_groups,
    mean_of_others,
)

BEFORE: Final = 0.4
AFTER: Final = 0.25
TWO_BEFORE: Final = 0.2
GROUP: Final = 0.2
PHRASE: Final = 0.1
ASKING: Final = 0.05
RECENT: Final = 0.02
RECENT_HALF_DAYS: Final = 30.0
IN_TIME: Final = 0.3
# If the best match covers less than FULL_COVER of the query, the words of all candidates are damped
# by (cover / FULL_COVER) ** DAMPING, so that chance matches do not outrank meaning.
FULL_COVER: Final = 0.7
DAMPING: Final = 1.5

EXACT_SCORE: Final = 0.97
PHRASE_SCORE: Final = 0.9

# Coefficients of a logistic regression over the ten best results of every question of the
# development conversations. The square root stretches the curve so that 63 % of the results with a
# score of 0.7 are right. (The labels name one or two turns per question, so "right" is strict.)
_STANDING: Final = (-4.13, 1.36, 5.79, 5.88)
_STANDOUT_MOST: Final = 0.4
_LEAD_MOST: Final = 0.3
_STANDOUT_RANK: Final = 4  # the fifth

_DIGITS: Final = (
    6  # rounding makes equal texts tie, also if their vectors were summed in another order
)

# Points (cosine or cover, score) of piecewise linear curves.
_CLOSENESS: Final = ((0.15, 0.0), (0.35, 0.28), (0.75, 0.7), (1.0, 1.0))
_COVER: Final = ((0.0, 0.0), (0.5, 0.45), (1.0, 0.72), (1.4, 0.85))
# Points (cosine, highest score) for an item that covers only a part of the query.
_UNRELATED: Final = ((0.12, 0.15), (0.25, 0.65), (0.35, 1.0))
# In a hybrid search, the score from words alone is limited unless the cosine confirms it.
_COVER_UNCONFIRMED: Final = 0.65
_CONFIRMING_COSINE: Final = 0.5


class Weights(Struct, frozen=True, kw_only=True):
    """The weights of the two sides of a hybrid search. Only their ratio counts."""

    keyword: float = 0.5
    vector: float = 0.5


MEANINGFUL: Final = Weights()
SPELLING_ONLY: Final = Weights(keyword=0.85, vector=0.15)  # for hashed features


def rank(
    candidates: Sequence[Candidate],
    *,
    yardstick: float,
    mode: Mode = "hybrid",
    weights: Weights = MEANINGFUL,
    limit: int = 10,
    question: Question | None = None,
) -> list[Ranked]:
    """The best `limit` candidates that may be results. `yardstick` is `bm25.best_possible`."""
    match mode:
        case "keyword":
            return _by_one_side(
                [
                    (c, _cover(c, yardstick) + PHRASE * c.is_phrase)
                    for c in candidates
                    if c.words > 0
                ],
                yardstick,
                _COVER,
                limit,
            )
        case "semantic":
            return _by_one_side(
                [(c, c.cosine) for c in candidates if c.cosine is not None],
                yardstick,
                _CLOSENESS,
                limit,
            )
        case _:
            return _hybrid(candidates, yardstick, weights, limit, question)


def _by_one_side(
    valued: Sequence[tuple[Candidate, float]],
    yardstick: float,
    curve: tuple[tuple[float, float], ...],
    limit: int,
) -> list[Ranked]:
    ordered = sorted(
        ((c, round(value, _DIGITS)) for c, value in valued if c.may_answer),
        key=lambda it: (-it[1] - IN_TIME * it[0].in_time, -it[0].id),
    )[:limit]
    return _never_rising(
        [
            Ranked(
                id=c.id,
                value=value,
                score=_floored(c, _interpolated(curve, value)),
                parts=_parts(c, yardstick, value=value),
            )
            for c, value in ordered
        ]
    )


def _hybrid(
    candidates: Sequence[Candidate],
    yardstick: float,
    weights: Weights,
    limit: int,
    question: Question | None,
) -> list[Ranked]:
    turns = None
    if question is not None and weights == MEANINGFUL:
        turns = TurnRanking(candidates, question)
    total = weights.keyword + weights.vector
    by_words, by_meaning = (
        (weights.keyword / total, weights.vector / total) if total > 0 else (0.5, 0.5)
    )
    most = max((c.words for c in candidates), default=0.0)
    cover = min(1.0, most / yardstick) if yardstick > 0 else 0.0
    damping = min(1.0, cover / FULL_COVER) ** DAMPING / most if most > 0 else 0.0
    keyword = {c.id: by_words * c.words * damping for c in candidates}
    vector = {c.id: by_meaning * max(0.0, c.cosine or 0.0) for c in candidates}
    base = {c.id: keyword[c.id] + vector[c.id] for c in candidates}
    # Turns have a context of their own.
    others = candidates if not turns else [c for c in candidates if c.id not in turns]
    context = _context(others, {c.id: base[c.id] for c in others})
    values: dict[int, float] = {}
    boosts: dict[int, float] = {}
    for c in candidates:
        is_turn = turns is not None and c.id in turns  # the ranking of turns weighs questions
        boosts[c.id] = PHRASE * c.is_phrase - ASKING * (c.is_asking and not is_turn) + _recency(c)
        value = base[c.id] + context.get(c.id, 0.0) + boosts[c.id]
        if turns is not None and c.id in turns:
            value = turns.value(c.id) + boosts[c.id]
        values[c.id] = round(value, _DIGITS)
    ordered = sorted(
        (c for c in candidates if c.may_answer),
        key=lambda c: (-values[c.id] - IN_TIME * c.in_time, -c.id),
    )
    fifth = values[ordered[_STANDOUT_RANK].id] if len(ordered) > _STANDOUT_RANK else 0.0
    leading = nlargest(2, (c.words for c in candidates))
    second = leading[1] if len(leading) > 1 else 0.0
    ranked: list[Ranked] = []
    for c in ordered[:limit]:
        value = values[c.id]
        lead = (c.words - second) / yardstick if yardstick > 0 else 0.0
        is_turn = turns is not None and c.id in turns
        if turns is not None and is_turn:
            score = turns.score(c.id)
        else:
            score = max(
                _standing(value, value - fifth, lead) * _strength(c, value, yardstick),
                _interpolated(_CLOSENESS, c.cosine or 0.0) if weights.vector > 0 else 0.0,
                _hybrid_cover(c, yardstick),
            )
            if weights.vector > 0:
                score = min(score, _most_unrelated(c, yardstick))
        parts = _parts(
            c,
            yardstick,
            keyword=keyword[c.id],
            vector=vector[c.id],
            context=context.get(c.id, 0.0),
            boosts=boosts[c.id],
            value=value,
            **(turns.features(c.id) if turns is not None and is_turn else {}),
        )
        ranked.append(Ranked(id=c.id, value=value, score=_floored(c, score), parts=parts))
    return _never_rising(ranked)


def _context(candidates: Sequence[Candidate], base: Mapping[int, float]) -> dict[int, float]:
    """The gain of each candidate from the excess of its neighbours and its group."""
    if not candidates:
        return {}
    median = sorted(base.values())[len(base) // 2]
    excess = {id: max(0.0, value - median) for id, value in base.items()}
    best = best_of_groups([(c.group, excess[c.id]) for c in candidates])
    gained: dict[int, float] = {}
    for c in candidates:
        gain = 0.0
        if c.before is not None:
            gain += BEFORE * excess.get(c.before, 0.0)
        if c.after is not None:
            gain += AFTER * excess.get(c.after, 0.0)
        if c.two_before is not None:
            gain += TWO_BEFORE * excess.get(c.two_before, 0.0)
        if c.group in best:
            gain += GROUP * mean_of_others(best[c.group], excess[c.id])
        gained[c.id] = gain
    return gained


def _recency(candidate: Candidate) -> float:
    if candidate.age_days is None:
        return 0.0
    return float(RECENT * 0.5 ** (max(0.0, candidate.age_days) / RECENT_HALF_DAYS))


def _standing(value: float, standout: float, lead: float) -> float:
    start, by_value, by_standout, by_lead = _STANDING
    logit = (
        start
        + by_value * value
        + by_standout * min(max(standout, 0.0), _STANDOUT_MOST)
        + by_lead * min(max(lead, 0.0), _LEAD_MOST)
    )
    return math.sqrt(1.0 / (1.0 + math.exp(-logit)))


def _strength(candidate: Candidate, value: float, yardstick: float) -> float:
    """A factor from 0 to 1 that keeps the score low if even the best result is weak."""
    return min(
        1.0,
        max(
            value / 0.6,
            _cover(candidate, yardstick) / 0.4,
            ((candidate.cosine or 0.0) - 0.15) / 0.3,
            0.0,
        ),
    )


def _cover(candidate: Candidate, yardstick: float) -> float:
    """The share of the query that the words cover; 1 is every term once in an average text."""
    return candidate.words / yardstick if yardstick > 0 else 0.0


def _hybrid_cover(candidate: Candidate, yardstick: float) -> float:
    score = _interpolated(_COVER, _cover(candidate, yardstick))
    confirmed = (candidate.cosine or 0.0) > _CONFIRMING_COSINE
    return score if confirmed else min(score, _COVER_UNCONFIRMED)


def _most_unrelated(candidate: Candidate, yardstick: float) -> float:
    """The highest score of an item that shares some words with the query but not its meaning.

    An item that covers most of the query is not limited: it may be a name or an identifier, which
    has no meaning for the model.
    """
    if candidate.cosine is None or _cover(candidate, yardstick) >= FULL_COVER:
        return 1.0
    return _interpolated(_UNRELATED, candidate.cosine)


def _floored(candidate: Candidate, score: float) -> float:
    if candidate.is_exact:
        return max(score, EXACT_SCORE)
    return max(score, PHRASE_SCORE) if candidate.is_phrase else min(score, 0.99)


def _interpolated(curve: tuple[tuple[float, float], ...], at: float) -> float:
    """The value of a piecewise linear curve, constant beyond both ends."""
    if at <= curve[0][0]:
        return curve[0][1]
    for (left, low), (right, high) in pairwise(curve):
        if at <= right:
            return low + (high - low) * (at - left) / (right - left)
    return curve[-1][1]


def _never_rising(ranked: Sequence[Ranked]) -> list[Ranked]:
    """The list with each score limited to that of the entry before it."""
    lowest = 1.0
    result: list[Ranked] = []
    for entry in ranked:
        lowest = min(lowest, entry.score)
        score = round(lowest, 4)
        result.append(Ranked(id=entry.id, value=entry.value, score=score, parts=entry.parts))
    return result


def _parts(candidate: Candidate, yardstick: float, **made: float) -> dict[str, float]:
    found = {"bm25": candidate.words, "cover": _cover(candidate, yardstick)}
    if candidate.cosine is not None:
        found["cosine"] = candidate.cosine
    return {name: round(value, 4) for name, value in (found | made).items()}
