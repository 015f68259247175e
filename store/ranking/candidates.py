"""Candidates of a search: the evidence about an item, and its place in the order."""

from collections.abc import Hashable, Mapping

from msgspec import Struct


class TurnEvidence(Struct, kw_only=True):
    """The evidence that only turns of a conversation have."""

    # For each token of the question, the similarity of the closest token of the turn. Empty if the
    # token states of the turn have not been computed yet.
    closest: tuple[float, ...] = ()
    is_speaker: bool = False  # the question names the turn's speaker
    traits: int = 0  # see `turns.traits_of`


class Candidate(Struct, kw_only=True):
    """An item that may be a result, or a neighbour of one, with the evidence about it."""

    id: int
    words: float = 0.0  # BM25
    terms: int = 0  # a bit for each significant term of the query that occurs
    pairs: float = 0.0  # the share of the query's pairs of adjacent words that occur
    cosine: float | None = None
    group: Hashable = None  # its session or document
    before: int | None = None  # the ids of its neighbours in the group
    two_before: int | None = None
    after: int | None = None
    may_answer: bool = True  # False: it only gives context to its neighbours
    is_phrase: bool = False
    is_exact: bool = False
    is_asking: bool = False
    age_days: float | None = None
    in_time: bool = False  # the question names a time, and the item is from that time
    turn: TurnEvidence | None = None  # if it is a turn of a conversation


class Ranked(Struct, frozen=True, kw_only=True):
    """A candidate in the order: its value, its score, and the parts of both."""

    id: int
    value: float
    score: float
    parts: Mapping[str, float]


class Question(Struct, frozen=True, kw_only=True):
    """The facts about a query that the ranking of turns needs."""

    gains: tuple[float, ...] = ()  # the inverse frequency of each significant term
    traits: int = 0  # see `turns.asked_traits`
