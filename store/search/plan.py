"""The search for one query in one bank: candidates, their scores, their order, the hits.

All steps run in one read transaction on one connection, as a plain function:

1. Candidates by keywords: the posting lists of the significant terms, newest first, cut off after
   `POSTINGS` rows. A term with a longer list is skipped while there is a rarer one; if all lists
   are longer, pairs of terms are tried.
2. Candidates by meaning: the nearest vectors (exact comparison, or a graph and its tail). Only
   this step waits for the query's vector, so that the model works during step 1.
3. Scores of all candidates: BM25 from the stored tokens, exact cosines from the stored vectors.
4. The same for the neighbours in session or document of the best candidates.
5. `fusion.rank`, then the rows of the best.

An item's row is read once, however it was found (`_describe`).

Filters: search without the filter first. If at least 75 % of the results pass it, drop the others.
Otherwise search again with the filter in SQL. If the filter leaves few items, all of them are
compared; if it leaves many, posting lists and nearest vectors are filtered before they are cut off.
"""

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any, Final

from store.database import EVERYTHING, Condition, Connection
from store.model import Found, Hit
from store.ranking.bm25 import CorpusStatistics, best_possible, inverse_frequency
from store.ranking.candidates import Candidate, Question, Ranked, TurnEvidence
from store.ranking.freshness import successors_first
from store.ranking.fusion import rank
from store.ranking.keyword_evidence import NO_MATCH, KeywordEvidence, QueryWords
from store.ranking.snippets import Marker
from store.ranking.tokenizer import Term, query_terms
from store.ranking.turns import asked_traits, is_role, words_of_question
from store.rows.items import is_unfiltered, where
from store.search import neighbours
from store.search.hits import hit_of, items_of, named_item
from store.search.prepared_query import PreparedQuery, SemanticQuery
from store.search.spans import asked_span
from store.vectors.stored import cosines_of, scan, stored_cosines
from store.vectors.tokens import closest_tokens

POSTINGS: Final = 1_000  # rows of one term's posting list that are read
FEW: Final = 2_000  # if a filter leaves at most so many items, all of them are compared
SHORTLIST: Final = 40  # candidates by keywords, and by meaning; more for a larger limit
TURNS_SHORTLIST: Final = 70  # in a hybrid search of a bank with turns of conversations
MOST: Final = 0.75  # the share of unfiltered results that must pass the filter
NEIGHBOURED: Final = 20  # candidates whose neighbours are considered
TURNS_NEIGHBOURED: Final = 30  # in a bank with turns of conversations
MILLISECONDS_A_DAY: Final = 86_400_000.0


# The number of the model is bound after the values of the condition and before the ids.
_VECTOR_JOIN: Final = (
    " LEFT JOIN vectors ON vectors.item = items.id AND vectors.model = ?"
    " LEFT JOIN turns ON turns.item = vectors.item"
)
_VECTOR: Final = "vectors.bytes, turns.speaker, turns.traits, turns.tokens"
_NO_VECTOR: Final = "NULL, NULL, NULL, NULL"


def answer(connection: Connection, prepared: PreparedQuery) -> Found:
    """The hits of a query, best first."""
    return _Search(connection, prepared).run()


def _has_turns(connection: Connection, meaning: SemanticQuery | None) -> bool:
    """Whether the bank has speakers with names or roles, or events in sessions."""
    if meaning is None or meaning.names:
        return meaning is not None
    named = "SELECT 1 FROM turns WHERE speaker IN ('user', 'assistant', 'human', 'agent') LIMIT 1"
    event = "SELECT 1 FROM turns WHERE speaker IS NULL LIMIT 1"
    return any(connection.execute(sql).fetchone() is not None for sql in (named, event))


class _Search:
    """The state of one query while it runs."""

    def __init__(self, connection: Connection, prepared: PreparedQuery) -> None:
        query = prepared.query
        self.connection = connection
        self.prepared = prepared
        self.degraded = set(prepared.degraded)
        # A keyword search, or one without the model, does not use the features of turns.
        self.has_turns = prepared.mode == "hybrid" and _has_turns(connection, prepared.meaning)
        most = TURNS_SHORTLIST if self.has_turns else SHORTLIST
        self.shortlist = max(most, query.limit if self.has_turns else 2 * query.limit)
        self.condition, self.values = where(connection.dialect, query.filters, query.kinds)
        self.is_filtered = not is_unfiltered(query.filters, query.kinds)
        counts: tuple[int, int, int] = connection.execute(
            "SELECT change, items, words FROM state"
        ).fetchone()
        self.change, self.items, words = counts
        self.asked = query.keywords if query.keywords is not None else query.text
        self.terms: Sequence[Term] = () if prepared.mode == "semantic" else query_terms(self.asked)
        self.words = QueryWords(self.asked, self.terms, for_turns=self.has_turns)
        self.average = words / max(1, self.items)
        self.frequencies: dict[str, int] = {}
        self.vector: Any = None  # the query's vector, after `_by_meaning` has waited for it
        self.tokens: Any = None  # the query's tokens, if the model has any
        self.words_asked = words_of_question(query.text)
        self.known: dict[int, Candidate] = {}  # the items whose rows were read
        self.uncompared: list[tuple[int, bytes]] = []  # vectors read before the query's is there
        self.unmatched: list[tuple[int, bytes]] = []  # tokens of turns, likewise
        self.span = asked_span(connection, query, prepared.now)
        self.is_narrow = False  # whether the filter is applied in SQL, before lists are cut off
        self.allowed: list[int] | None = None
        if self.is_filtered and prepared.meaning and prepared.meaning.cache.coverage().is_waiting:
            self._narrow()  # a scan without the filter would take longer

    def run(self) -> Found:
        candidates = self._gather()
        if not self.is_narrow:
            answering = {id: c for id, c in candidates.items() if c.may_answer}
            enough = max(MOST * len(self.known), self.prepared.query.limit)
            if len(answering) < min(enough, len(self.known)):
                self._narrow()
                candidates = self._gather()
            elif self.is_filtered:
                candidates = answering
        if self.prepared.mode == "hybrid":
            self._add_neighbours(candidates)
        ranked = rank(
            list(candidates.values()),
            yardstick=best_possible(self.terms, self._statistics()),
            mode=self.prepared.mode,
            weights=self.prepared.weights,
            limit=self.prepared.query.limit,
            question=self._question() if self.has_turns else None,
        )
        if self.span is not None and self.span.is_all:
            ranked = self.span.first(ranked)[: self.prepared.query.limit]
        return self._found(ranked)

    # --- candidates -----------------------------------------------------------------------

    def _gather(self) -> dict[int, Candidate]:
        by_words = self._by_words()
        words = self._weigh_words(by_words)
        best = nlargest(self.shortlist, by_words, key=lambda id: (words[id].words, id))
        self._describe(best)
        by_meaning = self._by_meaning()
        in_span = self._nearest_in_span()
        others = dict.fromkeys((*by_meaning, *in_span))
        words |= self._weigh_words([id for id in others if id not in words])
        return self._candidates({*best, *others}, words)

    def _narrow(self) -> None:
        """Apply the filter in SQL from now on. If it leaves few items, list all of them."""
        self.is_narrow = True
        rows = self.connection.execute(
            f"SELECT items.id FROM items WHERE {self.condition} LIMIT ?", (*self.values, FEW + 1)
        ).fetchall()
        self.allowed = [id for (id,) in rows] if len(rows) <= FEW else None

    def _by_words(self) -> Sequence[int]:
        if not self.terms or not self.items:
            return ()
        significant = [term for term in self.terms if term.weight == 1.0]
        postings = self.connection.words.postings(
            [term.text for term in significant], POSTINGS + 1, self._among()
        )
        for term in self.terms:
            self.frequencies[term.text] = self._frequency(term, postings.get(term.text))
        if self.allowed is not None:
            return self.allowed
        gains = {
            term.text: term.weight * inverse_frequency(self.frequencies[term.text], self.items)
            for term in significant
        }
        sums: dict[int, float] = {}
        whole = [term for term in significant if len(postings[term.text]) <= POSTINGS]
        for term in whole or self._common(significant, gains, sums):
            gain = gains[term.text]
            for id in postings[term.text]:
                sums[id] = sums.get(id, 0.0) + gain
        best = [id for _, id in nlargest(2 * self.shortlist, zip(sums.values(), sums, strict=True))]
        if self.span is not None:
            in_span = (id for id in self.span.ids if id in sums)
            best += set(nlargest(self.shortlist, in_span, key=sums.__getitem__)) - set(best)
        return best

    def _common(
        self, significant: Sequence[Term], gains: dict[str, float], sums: dict[int, float]
    ) -> Sequence[Term]:
        """Every term is common: find items with several of them, then the newest with the rarest.

        Adds the items with several terms to `sums`, and returns the terms whose incomplete posting
        lists may be used as well.
        """
        rarest = sorted(significant, key=lambda term: -gains[term.text])[:4]
        pairs = [(a, b) for at, a in enumerate(rarest) for b in rarest[at + 1 :]]
        groups: list[tuple[Term, ...]] = [tuple(rarest)] if len(rarest) > 2 else []
        for group in [*groups, *pairs]:
            gain = sum(gains[term.text] for term in group)
            names = [term.text for term in group]
            for id in self.connection.words.with_all(names, POSTINGS + 1, self._among()):
                sums[id] = max(sums.get(id, 0.0), gain)
        return rarest[:1] if len(sums) < self.shortlist else ()

    def _among(self) -> Condition:
        """The items that posting lists are limited to before they are cut off."""
        is_limited = self.is_narrow and self.allowed is None
        return (self.condition, self.values) if is_limited else EVERYTHING

    def _frequency(self, term: Term, postings: Sequence[int] | None) -> int:
        """The number of items with a term: counted, or estimated from the part that was read."""
        if postings is None:  # a stop word: common in every language
            return max(1, self.items // 2)
        if len(postings) <= POSTINGS:
            return len(postings)
        span = max(1, self.change - postings[-1])
        return min(self.items, round(len(postings) * self.change / span))

    def _by_meaning(self) -> Sequence[int]:
        meaning = self.prepared.meaning
        if meaning is None or not self.items:
            return ()
        vectors, tokens = meaning.embedding()
        self.vector = vectors[0]
        self.tokens = None if tokens is None else tokens[0]
        meaning.cache.refresh(self.connection, meaning.model)
        if self.allowed is not None:
            return self._meaning_among(meaning, self.allowed)
        wanted = self.shortlist * (4 if self.is_narrow else 1)
        while True:
            found = meaning.cache.nearest(self.vector, wanted)
            if found is None:
                return self._scanned(meaning)
            kept = self._existing(found, meaning)
            if self.is_filtered and not self.is_narrow:
                return kept  # `run` decides whether that is enough
            if len(kept) >= min(self.shortlist, self.items) or len(found) < wanted:
                return kept if len(kept) >= self.prepared.query.limit else self._complete(kept)
            if wanted >= 16 * self.shortlist:
                return self._scanned(meaning)
            wanted *= 4

    def _complete(self, kept: Sequence[int]) -> Sequence[int]:
        """The cache has too few results that pass the filter, so scan the table."""
        meaning = self.prepared.meaning
        return self._scanned(meaning) if meaning is not None and self.is_filtered else kept

    def _scanned(self, meaning: SemanticQuery) -> Sequence[int]:
        condition = self.condition if self.is_filtered or self.is_narrow else ""
        values = self.values if condition else ()
        found, is_all = scan(
            self.connection, self.vector, meaning.model, self.shortlist, condition, values
        )
        if not is_all:
            self.degraded.add("vectors-partial")
        return list(found)

    def _meaning_among(self, meaning: SemanticQuery, allowed: Sequence[int]) -> Sequence[int]:
        import numpy as np

        ids = np.array(allowed, dtype=np.int64)
        found = meaning.cache.among(self.vector, ids, self.shortlist)
        if found is None:
            found = stored_cosines(self.connection, self.vector, meaning.model, allowed)
        return nlargest(self.shortlist, found, key=found.__getitem__)

    def _nearest_in_span(self) -> Sequence[int]:
        """The items from the time that the question names whose meaning is closest to it."""
        meaning = self.prepared.meaning
        if meaning is None or self.span is None or self.vector is None:
            return ()
        allowed = list(self.span.ids)
        if self.allowed is not None:
            allowed = list(self.span.ids.intersection(self.allowed))
        return self._meaning_among(meaning, allowed) if allowed else ()

    def _existing(self, found: dict[int, float], meaning: SemanticQuery) -> list[int]:
        """The ids that exist and pass the filter; missing ones are reported to the cache."""
        self._describe(found)
        self._compare()
        near = [c for c in map(self.known.get, found) if c is not None and c.cosine is not None]
        if len(near) < len(found):
            meaning.cache.discard(found.keys() - {c.id for c in near}, self.change)
        return [c.id for c in near if c.may_answer]

    # --- scores -----------------------------------------------------------------------------

    def _candidates(
        self, ids: Iterable[int], words: dict[int, KeywordEvidence]
    ) -> dict[int, Candidate]:
        """The candidates with these ids, with both scores; ids that do not exist are left out."""
        self._describe(ids)
        self._compare()
        found = {id: self.known[id] for id in ids if id in self.known}
        for id, candidate in found.items():
            score = words.get(id)
            if score is not None:
                (
                    candidate.words,
                    candidate.is_phrase,
                    candidate.is_exact,
                    candidate.terms,
                    candidate.pairs,
                ) = score
        return found

    def _describe(self, ids: Iterable[int]) -> None:
        """Read the rows that were not read yet; forgotten or missing items stay unknown."""
        model = None if self.prepared.meaning is None else self.prepared.meaning.model
        wanted = [id for id in ids if id not in self.known]
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            rows = self.connection.execute(
                f"SELECT items.id, {self.condition}, items.session, items.document,"
                " items.occurred_at,"
                f" {self.connection.dialect.asks}, {_NO_VECTOR if model is None else _VECTOR}"
                " FROM items"
                f"{'' if model is None else _VECTOR_JOIN}"
                f" WHERE items.id IN ({','.join('?' * len(some))}) AND items.forgotten_at IS NULL",
                (*self.values, *(() if model is None else (model,)), *some),
            )
            for id, may_answer, session, document, occurred_at, asks, content, *turn in rows:
                self.known[id] = Candidate(
                    id=id,
                    may_answer=bool(may_answer),
                    group=session if document is None else ("document", document),
                    is_asking=bool(asks),
                    age_days=(self.prepared.now - occurred_at) / MILLISECONDS_A_DAY,
                    in_time=self.span is not None and self.span.contains(occurred_at),
                )
                if content is not None:
                    self.uncompared.append((id, content))
                self._note_turn(id, *turn)

    def _note_turn(
        self, id: int, speaker: str | None, traits: int | None, tokens: bytes | None
    ) -> None:
        if traits is None or self.prepared.meaning is None or not self.has_turns:
            return
        words = () if speaker is None else speaker.split()
        if words and self.prepared.meaning.names.isdisjoint(words) and not is_role(speaker):
            return  # a label that occurs once is a heading, not a speaker
        self.known[id].turn = TurnEvidence(
            is_speaker=not self.words_asked.isdisjoint(words), traits=traits
        )
        if tokens is not None:
            self.unmatched.append((id, tokens))

    def _compare(self) -> None:
        """Set the cosines of the rows that were read since the last time."""
        for id, cosine in cosines_of(self.uncompared, self.vector).items():
            self.known[id].cosine = cosine
        self.uncompared = []
        if self.tokens is not None:
            for id, closest in closest_tokens(self.tokens, self.unmatched).items():
                turn = self.known[id].turn
                if turn is not None:
                    turn.closest = closest
        self.unmatched = []

    def _weigh_words(self, wanted: Sequence[int]) -> dict[int, KeywordEvidence]:
        """How well the words of each of these items match the query."""
        if not self.terms:
            return {}
        rows = self.connection.words.tokens(wanted)
        evidence = self.words.weigh([tokens for _, tokens in rows], self._statistics())
        ids = (id for id, _ in rows)
        return dict.fromkeys(wanted, NO_MATCH) | dict(zip(ids, evidence, strict=True))

    def _question(self) -> Question:
        return Question(
            gains=tuple(
                inverse_frequency(self.frequencies.get(term, 0), self.items)
                for term in self.words.significant
            ),
            traits=asked_traits(self.prepared.query.text),
        )

    def _statistics(self) -> CorpusStatistics:
        return CorpusStatistics(
            items=self.items, average_length=self.average, frequencies=self.frequencies
        )

    # --- neighbours -----------------------------------------------------------------------

    def _add_neighbours(self, candidates: dict[int, Candidate]) -> None:
        """Link the best candidates to their neighbours, and make those candidates too."""
        most = max((c.words for c in candidates.values()), default=0.0) or 1.0
        grouped = sorted(
            (c for c in candidates.values() if c.group is not None),
            key=lambda c: -(c.words / most + max(0.0, c.cosine or 0.0)),
        )
        best = [c for c in grouped if c.turn is None][:NEIGHBOURED]
        best += [c for c in grouped if c.turn is not None][:TURNS_NEIGHBOURED]
        windows = neighbours.windows(self.connection, best)
        new = list({id for window in windows for id in window if id not in candidates})
        if new:
            candidates.update(self._candidates(new, self._weigh_words(new)))
        neighbours.link(candidates, windows)

    # --- hits -----------------------------------------------------------------------------

    def _found(self, ranked: Sequence[Ranked]) -> Found:
        query = self.prepared.query
        hits: list[Hit] = []
        marker = Marker(self.terms or query_terms(self.asked))
        named = named_item(self.connection, query.text, self.condition, self.values)
        if named is not None:
            sure = Ranked(id=named.rowid, value=1.0, score=1.0, parts={})
            hits.append(hit_of(named, sure, marker, explain=query.explain))
        above = [
            entry
            for entry in ranked
            if entry.score >= query.min_score and (named is None or entry.id != named.rowid)
        ]
        chosen = above[: query.limit - len(hits)]
        items, has_damage = items_of(self.connection, [entry.id for entry in chosen])
        if has_damage:
            self.degraded.add("items-damaged")
        found = [(entry, items[entry.id]) for entry in chosen if entry.id in items]
        if self.span is None:  # otherwise the asked time decides, not the newest one
            found = successors_first(found)
        hits += [hit_of(item, entry, marker, explain=query.explain) for entry, item in found]
        below = [entry.score for entry in ranked if entry.score < query.min_score]
        return Found(
            hits=tuple(hits),
            below=len(below),
            best_below=max(below, default=None),
            mode=self.prepared.mode,
            degraded=tuple(sorted(self.degraded)),
        )
