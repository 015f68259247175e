"""The plan of one query in one bank: candidates, their evidence, their order, the answers.

All of it runs in one read transaction on one connection, as a plain function:

1. candidates by words: posting lists of the telling terms, newest first and cut at `POSTINGS`;
   terms longer than that are skipped while a rarer one exists, else pairs of them are tried;
2. candidates by meaning: the nearest vectors (all compared, or a graph and its tail). The query's
   own vector is waited for only here: the model works while words are looked up;
3. evidence for all of them: BM25 from the stored tokens, exact cosine from the stored vectors;
4. the same for their neighbours in session or document, for those that look best so far;
5. `fusion.rank`, and the rows of those that won.

An item's row is read once, whichever way it was found (`_describe`).

Filters are part of the search. At first as if there were none: when most of what is found may
answer, the rest is left out and that was that. Otherwise the search begins again, narrowly: a
filter that leaves few items means all of those are compared; one that leaves many means lists and
neighbours are filtered before they are cut.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple

from msgspec import Struct

from store.errors import NotFound
from store.model import Found, Hit, Item, Mode, Query
from store.ranking.bm25 import CorpusStatistics, best_possible, bm25, inverse_frequency
from store.ranking.fusion import Candidate, Ranked, Weights, rank
from store.ranking.snippets import Marker
from store.ranking.tokenizer import Term, index_text, query_terms, quoted
from store.sqlite.database import Connection
from store.sqlite.rows.items import fetch, find, is_unfiltered, item_of, where
from store.sqlite.rows.table import RowDamaged
from store.sqlite.vectors.cache import VectorCache, cosines_of, scan, stored_cosines

POSTINGS: Final = 1_000  # rows of one term's list that are looked at
FEW: Final = 2_000  # items a filter may leave for all of them to be compared
SHORTLIST: Final = 40  # candidates from either side; more for a longer answer
MOST: Final = 0.75  # the share of what is found that must pass the filters for that to be enough
NEIGHBOURED: Final = 20  # of which so many have their neighbours looked at
MILLISECONDS_A_DAY: Final = 86_400_000.0


def _beside(scope: str, place: str) -> str:
    """A statement for the two before and the two after each item, within a scope, by place."""

    def near(sign: str, order: str, skipped: int) -> str:
        return (
            f"(SELECT near.id FROM items AS near WHERE near.{scope} = one.{scope}"
            f" AND near.{place} {sign} one.{place} AND near.forgotten_at IS NULL"
            f" ORDER BY near.{place} {order} LIMIT 1 OFFSET {skipped})"
        )

    before = f"{near('<', 'DESC', 1)}, {near('<', 'DESC', 0)}"
    after = f"{near('>', 'ASC', 0)}, {near('>', 'ASC', 1)}"
    return f"SELECT {before}, one.id, {after} FROM items AS one WHERE one.id IN ({{marks}})"


_IN_DOCUMENT: Final = _beside("document", "position")
_IN_SESSION: Final = _beside("session", "id")


# The model's number is bound between the values of the condition and the ids.
_VECTOR_JOIN: Final = " LEFT JOIN vectors ON vectors.item = items.id AND vectors.model = ?"


class _Worded(NamedTuple):
    """What an item's words say about the query."""

    score: float
    is_phrase: bool
    is_exact: bool


_NO_WORDS: Final = _Worded(0.0, False, False)


class Meaning(Struct, frozen=True):
    """The query as a vector, and where vectors like it are."""

    vector: Callable[[], Any]  # NDArray[np.float32]; waits for it, or raises EmbedderFailed
    model: int  # which model's vectors in this bank may be compared with it
    cache: VectorCache


class Question(Struct, frozen=True, kw_only=True):
    """A query and all that answering it needs, besides the bank."""

    query: Query
    mode: Mode
    weights: Weights
    now: int
    meaning: Meaning | None = None
    degraded: tuple[str, ...] = ()


def answer(connection: Connection, question: Question) -> Found:
    """The answers to a question, best first."""
    return _Search(connection, question).run()


class _Search:
    """The state of one query while it runs."""

    def __init__(self, connection: Connection, question: Question) -> None:
        query = question.query
        self.connection = connection
        self.question = question
        self.degraded = set(question.degraded)
        self.shortlist = max(SHORTLIST, 2 * query.limit)
        self.condition, self.values = where(query.filters, query.kinds)
        self.is_filtered = not is_unfiltered(query.filters, query.kinds)
        counts: tuple[int, int, int] = connection.execute(
            "SELECT change, items, words FROM state"
        ).fetchone()
        self.change, self.items, words = counts
        self.asked = query.keywords if query.keywords is not None else query.text
        self.terms: Sequence[Term] = () if question.mode == "semantic" else query_terms(self.asked)
        self.average = words / max(1, self.items)
        self.frequencies: dict[str, int] = {}
        self.vector: Any = None  # the query's, once it was waited for
        self.known: dict[int, Candidate] = {}  # those whose rows were read
        self.uncompared: list[tuple[int, bytes]] = []  # their vectors, before the query's is there
        self.is_narrow = False  # whether lists and neighbours are filtered before they are cut
        self.allowed: list[int] | None = None
        if self.is_filtered and question.meaning and question.meaning.cache.coverage().is_waiting:
            self._narrow()  # a scan without the filter would be the longer one

    def run(self) -> Found:
        candidates = self._gather()
        if not self.is_narrow:
            answering = {id: c for id, c in candidates.items() if c.may_answer}
            enough = max(MOST * len(self.known), self.question.query.limit)
            if len(answering) < min(enough, len(self.known)):
                self._narrow()
                candidates = self._gather()
            elif self.is_filtered:
                candidates = answering
        if self.question.mode == "hybrid":
            self._add_neighbours(candidates)
        ranked = rank(
            list(candidates.values()),
            yardstick=best_possible(self.terms, self._statistics()),
            mode=self.question.mode,
            weights=self.question.weights,
            limit=self.question.query.limit,
        )
        return self._found(ranked)

    # --- candidates -----------------------------------------------------------------------

    def _gather(self) -> dict[int, Candidate]:
        by_words = self._by_words()
        words = self._weigh_words(by_words)
        best = nlargest(self.shortlist, by_words, key=lambda id: (words[id].score, id))
        self._describe(best)
        by_meaning = self._by_meaning()
        words |= self._weigh_words([id for id in by_meaning if id not in words])
        return self._candidates({*best, *by_meaning}, words)

    def _narrow(self) -> None:
        """Filter before anything is cut; look up all the items that are left when those are few."""
        self.is_narrow = True
        rows = self.connection.execute(
            f"SELECT items.id FROM items WHERE {self.condition} LIMIT ?", (*self.values, FEW + 1)
        ).fetchall()
        self.allowed = [id for (id,) in rows] if len(rows) <= FEW else None

    def _by_words(self) -> Sequence[int]:
        if not self.terms or not self.items:
            return ()
        telling = [term for term in self.terms if term.weight == 1.0]
        postings = {term.text: self._postings(quoted(term.text)) for term in telling}
        for term in self.terms:
            self.frequencies[term.text] = self._frequency(term, postings.get(term.text))
        if self.allowed is not None:
            return self.allowed
        gains = {
            term.text: term.weight * inverse_frequency(self.frequencies[term.text], self.items)
            for term in telling
        }
        sums: dict[int, float] = {}
        whole = [term for term in telling if len(postings[term.text]) <= POSTINGS]
        for term in whole or self._common(telling, gains, sums):
            gain = gains[term.text]
            for id in postings[term.text]:
                sums[id] = sums.get(id, 0.0) + gain
        return [id for _, id in nlargest(2 * self.shortlist, zip(sums.values(), sums, strict=True))]

    def _common(
        self, telling: Sequence[Term], gains: dict[str, float], sums: dict[int, float]
    ) -> Sequence[Term]:
        """Every term is common: items that hold several of them, then the newest with the rarest.

        Adds to `sums` what holds several, and gives the terms whose cut lists may be used.
        """
        rarest = sorted(telling, key=lambda term: -gains[term.text])[:4]
        pairs = [(a, b) for at, a in enumerate(rarest) for b in rarest[at + 1 :]]
        groups: list[tuple[Term, ...]] = [tuple(rarest)] if len(rarest) > 2 else []
        for group in [*groups, *pairs]:
            gain = sum(gains[term.text] for term in group)
            for id in self._postings(" AND ".join(quoted(term.text) for term in group)):
                sums[id] = max(sums.get(id, 0.0), gain)
        return rarest[:1] if len(sums) < self.shortlist else ()

    def _postings(self, expression: str) -> list[int]:
        """The newest items that match, one more than `POSTINGS` when there are more."""
        if self.is_narrow and self.allowed is None:
            sql = (
                "SELECT words.rowid FROM words JOIN items ON items.id = words.rowid"
                f" WHERE words MATCH ? AND {self.condition} ORDER BY words.rowid DESC LIMIT ?"
            )
            rows = self.connection.execute(sql, (expression, *self.values, POSTINGS + 1))
        else:
            sql = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?"
            rows = self.connection.execute(sql, (expression, POSTINGS + 1))
        return [id for (id,) in rows]

    def _frequency(self, term: Term, postings: Sequence[int] | None) -> int:
        """In how many items a term is: counted, or judged from how soon its list was full."""
        if postings is None:  # a stop word: common by definition, whatever the language
            return max(1, self.items // 2)
        if len(postings) <= POSTINGS:
            return len(postings)
        span = max(1, self.change - postings[-1])
        return min(self.items, round(len(postings) * self.change / span))

    def _by_meaning(self) -> Sequence[int]:
        meaning = self.question.meaning
        if meaning is None or not self.items:
            return ()
        self.vector = meaning.vector()
        meaning.cache.refresh(self.connection, meaning.model)
        if self.allowed is not None:
            return self._meaning_among(meaning, self.allowed)
        wanted = self.shortlist * (4 if self.is_narrow else 1)
        while True:
            found = meaning.cache.nearest(self.vector, wanted)
            if found is None:
                return self._scanned(meaning)
            kept = self._sound(found, meaning)
            if self.is_filtered and not self.is_narrow:
                return kept  # enough or not: `run` decides
            if len(kept) >= min(self.shortlist, self.items) or len(found) < wanted:
                return kept if len(kept) >= self.question.query.limit else self._topped(kept)
            if wanted >= 16 * self.shortlist:
                return self._scanned(meaning)
            wanted *= 4

    def _topped(self, kept: Sequence[int]) -> Sequence[int]:
        """Fewer than asked for although the cache gave all it has: only a scan knows better."""
        meaning = self.question.meaning
        return self._scanned(meaning) if meaning is not None and self.is_filtered else kept

    def _scanned(self, meaning: Meaning) -> Sequence[int]:
        condition = self.condition if self.is_filtered or self.is_narrow else ""
        values = self.values if condition else ()
        found, is_all = scan(
            self.connection, self.vector, meaning.model, self.shortlist, condition, values
        )
        if not is_all:
            self.degraded.add("vectors-partial")
        return list(found)

    def _meaning_among(self, meaning: Meaning, allowed: Sequence[int]) -> Sequence[int]:
        import numpy as np

        ids = np.array(allowed, dtype=np.int64)
        found = meaning.cache.among(self.vector, ids, self.shortlist)
        if found is None:
            found = stored_cosines(self.connection, self.vector, meaning.model, allowed)
        return nlargest(self.shortlist, found, key=found.__getitem__)

    def _sound(self, found: dict[int, float], meaning: Meaning) -> list[int]:
        """Those that are there and may answer; the cache hears of those that are gone."""
        self._describe(found)
        self._compare()
        near = [c for c in map(self.known.get, found) if c is not None and c.cosine is not None]
        if len(near) < len(found):
            meaning.cache.discard(found.keys() - {c.id for c in near}, self.change)
        return [c.id for c in near if c.may_answer]

    # --- evidence -------------------------------------------------------------------------

    def _candidates(self, ids: Iterable[int], words: dict[int, "_Worded"]) -> dict[int, Candidate]:
        """What is known of each of these, with what its words say; not of those that are gone."""
        self._describe(ids)
        self._compare()
        found = {id: self.known[id] for id in ids if id in self.known}
        for id, candidate in found.items():
            worded = words.get(id)
            if worded is not None:
                candidate.words, candidate.is_phrase, candidate.is_exact = worded
        return found

    def _describe(self, ids: Iterable[int]) -> None:
        """Read the rows of those not read yet; what is forgotten or gone stays unknown."""
        model = None if self.question.meaning is None else self.question.meaning.model
        wanted = [id for id in ids if id not in self.known]
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            rows = self.connection.execute(
                f"SELECT items.id, {self.condition}, items.session, items.document,"
                " items.occurred_at, substr(rtrim(items.text), -1) = '?',"
                f" {'NULL' if model is None else 'vectors.bytes'} FROM items"
                f"{'' if model is None else _VECTOR_JOIN}"
                f" WHERE items.id IN ({','.join('?' * len(some))}) AND items.forgotten_at IS NULL",
                (*self.values, *(() if model is None else (model,)), *some),
            )
            for id, may_answer, session, document, occurred_at, asks, content in rows:
                self.known[id] = Candidate(
                    id=id,
                    may_answer=bool(may_answer),
                    group=session if document is None else ("document", document),
                    is_asking=bool(asks),
                    age_days=(self.question.now - occurred_at) / MILLISECONDS_A_DAY,
                )
                if content is not None:
                    self.uncompared.append((id, content))

    def _compare(self) -> None:
        """How near in meaning those are that were read since the last time."""
        for id, cosine in cosines_of(self.uncompared, self.vector).items():
            self.known[id].cosine = cosine
        self.uncompared = []

    def _weigh_words(self, wanted: Sequence[int]) -> dict[int, "_Worded"]:
        """What the words of each of these say about the query."""
        if not self.terms:
            return {}
        rows: list[tuple[int, str]] = []
        for start in range(0, len(wanted), 500):
            some = wanted[start : start + 500]
            # FTS5's own table of texts: asking through `words` takes twice as long.
            rows += self.connection.execute(
                f"SELECT id, c0 FROM words_content WHERE id IN ({','.join('?' * len(some))})", some
            ).fetchall()
        scores = bm25(self.terms, (tokens for _, tokens in rows), self._statistics())
        phrase = index_text(self.asked)
        length = phrase.count(" ") + 1
        found = dict.fromkeys(wanted, _NO_WORDS)
        for (id, tokens), score in zip(rows, scores, strict=True):
            is_phrase = is_exact = False
            if phrase in tokens:
                if length > 1 and f" {phrase} " in f" {tokens} ":
                    is_phrase = length > 2 or length * 3 >= tokens.count(" ") + 1
                    is_exact = length * 5 >= (tokens.count(" ") + 1) * 4
                elif phrase == tokens:
                    is_exact = is_phrase = bool(phrase)
            found[id] = _Worded(score, is_phrase, is_exact)
        return found

    def _statistics(self) -> CorpusStatistics:
        return CorpusStatistics(
            items=self.items, average_length=self.average, frequencies=self.frequencies
        )

    # --- neighbours -----------------------------------------------------------------------

    def _add_neighbours(self, candidates: dict[int, Candidate]) -> None:
        """Link the best candidates with what stands beside them, and bring that in."""
        most = max((c.words for c in candidates.values()), default=0.0) or 1.0
        best = sorted(
            (c for c in candidates.values() if c.group is not None),
            key=lambda c: -(c.words / most + max(0.0, c.cosine or 0.0)),
        )[:NEIGHBOURED]
        links = self._windows(best)
        new = list({id for window in links for id in window if id not in candidates})
        if new:
            candidates.update(self._candidates(new, self._weigh_words(new)))
        for window in links:
            for at, id in enumerate(window):
                candidate = candidates.get(id)
                if candidate is None:
                    continue
                if at > 0:
                    candidate.before = window[at - 1]
                if at > 1:
                    candidate.two_before = window[at - 2]
                if at + 1 < len(window):
                    candidate.after = window[at + 1]

    def _windows(self, candidates: Sequence[Candidate]) -> list[list[int]]:
        """The ids around each of these in its session or document, in order."""
        in_documents = [c.id for c in candidates if isinstance(c.group, tuple)]
        in_sessions = [c.id for c in candidates if not isinstance(c.group, tuple)]
        rows = [
            row
            for ids, statement in ((in_documents, _IN_DOCUMENT), (in_sessions, _IN_SESSION))
            if ids
            for row in self.connection.execute(
                statement.format(marks=",".join("?" * len(ids))), ids
            ).fetchall()
        ]
        return [[id for id in row if id is not None] for row in rows]

    # --- answers --------------------------------------------------------------------------

    def _found(self, ranked: Sequence[Ranked]) -> Found:
        query = self.question.query
        hits: list[Hit] = []
        marker = Marker(self.terms or query_terms(self.asked))
        named = self._named()
        if named is not None:
            sure = Ranked(id=named.rowid, value=1.0, score=1.0, parts={})
            hits.append(self._hit(named, sure, marker))
        above = [
            entry
            for entry in ranked
            if entry.score >= query.min_score and (named is None or entry.id != named.rowid)
        ]
        chosen = above[: query.limit - len(hits)]
        items = self._items([entry.id for entry in chosen])
        hits += [self._hit(items[entry.id], entry, marker) for entry in chosen if entry.id in items]
        return Found(
            hits=tuple(hits),
            below=sum(entry.score < query.min_score for entry in ranked),
            mode=self.question.mode,
            degraded=tuple(sorted(self.degraded)),
        )

    def _named(self) -> Item | None:
        """The item whose id the query is, if it is one that may answer."""
        name = self.question.query.text.strip()
        if not name or len(name) > 256 or any(sign.isspace() for sign in name):
            return None
        try:
            item = find(self.connection, name)
        except NotFound:
            return None
        (may_answer,) = self.connection.execute(
            f"SELECT {self.condition} FROM items WHERE items.id = ?", (*self.values, item.rowid)
        ).fetchone()
        return item if may_answer else None

    def _items(self, ids: Sequence[int]) -> dict[int, Item]:
        found: dict[int, Item] = {}
        for row in fetch(self.connection, ids):
            try:
                found[row[0]] = item_of(row)
            except RowDamaged:
                self.degraded.add("items-damaged")
        return found

    def _hit(self, item: Item, entry: Ranked, marker: Marker) -> Hit:
        shown = marker.snippet(item.text)
        return Hit(
            item=item,
            score=entry.score,
            snippet=shown.text,
            matches=shown.matches,
            parts=entry.parts if self.question.query.explain else None,
        )
