"""`awareness_recall`: search in five modes, which differ in their search and in their additions.

| mode | searches | adds |
|---|---|---|
| hybrid | words and meaning | days, cards in two tiers, tasks, risks |
| auto | words and meaning | the same, if the results are weak |
| precise | words and meaning | nothing; neighbouring chunks are joined to passages |
| session | words and meaning | nothing; each result is expanded to the history of its session |
| structured | words of cards, no vectors | days, cards in two tiers, tasks, risks |
"""

from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from daemon.dialects.awareness import answers, memory
from daemon.dialects.awareness.answers import BriefCard, DayView, RiskView, TaskView
from daemon.dialects.awareness.arguments import (
    RECALL_MODES,
    SCOPES,
    RecallArguments,
    at_least,
    chosen,
    mapping,
    share,
)
from daemon.dialects.awareness.language.keywords import keywords_of
from daemon.dialects.awareness.memory import MemoryReader
from daemon.dialects.awareness.reading import bank_overview, expansion, passages, repetition
from daemon.dialects.awareness.reading.expansion import Cluster, Levels
from daemon.dialects.awareness.reading.passages import Result
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.tools.context import Context
from daemon.tools.toolkit import Toolkit, iso
from store.model import Card, Filters, Found, Hit, Kind, Query

MOST: Final = 30
#: If the best result scores less, `auto` adds structured data.
WEAK_SCORE: Final = 0.5
#: Results with a lower score are coincidental and are left out.
FLOOR: Final = 0.02
DAYS: Final = 7
#: Results fetched in addition, because some repeat others.
REPETITIONS: Final = 6

#: The kinds of results of a scope. In the modes that add structured data, cards, tasks and risks
#: have fields of their own; in the other modes they are results of the scope `all`.
_RAW: Final[dict[str, tuple[Kind, ...]]] = {
    "all": ("event", "memory", "chunk", "narrative"),
    "timeline": ("event", "memory"),
    "knowledge": ("chunk",),
    "insights": ("narrative",),
}
#: The structured data of a scope.
_PARTS: Final[dict[str, frozenset[str]]] = {
    "all": frozenset({"days", "cards", "tasks", "risks"}),
    "timeline": frozenset({"days", "tasks"}),
    "knowledge": frozenset({"cards"}),
    "insights": frozenset({"days", "cards", "risks"}),
}


class Recalled(Struct, frozen=True, kw_only=True):
    """An answer; structured fields are set in the modes that add structured data."""

    recall_mode: str
    scope: str
    memory_id: str
    keyword_query: str
    results: list[Result]
    verified_cards: list[BriefCard] | UnsetType = UNSET
    unverified_cards: list[BriefCard] | UnsetType = UNSET
    recent_days: list[DayView] | UnsetType = UNSET
    open_tasks: list[TaskView] | UnsetType = UNSET
    risks: list[RiskView] | UnsetType = UNSET
    supplemented: str | UnsetType = UNSET
    levels: Levels | UnsetType = UNSET
    clusters: list[Cluster] | UnsetType = UNSET
    degraded: list[str] | UnsetType = UNSET
    generated_at: str


class Structured(Struct, frozen=True, kw_only=True):
    verified_cards: list[BriefCard]
    unverified_cards: list[BriefCard]
    recent_days: list[DayView]
    open_tasks: list[TaskView]
    risks: list[RiskView]


class RecallQuestion(Struct, frozen=True, kw_only=True):
    """A recall request with validated parameters."""

    reader: MemoryReader
    text: str
    #: The caller's keywords; None if the question itself is matched.
    keywords: str | None
    mode: str
    scope: str
    limit: int
    filters: Filters
    vector_weight: float | None
    keyword_weight: float | None

    def query(
        self,
        kinds: tuple[Kind, ...],
        *,
        limit: int | None = None,
        mode: Literal["keyword", "hybrid"] = "hybrid",
    ) -> Query:
        return Query(
            bank=self.reader.bank,
            text=self.text,
            keywords=self.keywords,
            mode=mode,
            limit=limit or self.limit,
            kinds=kinds,
            filters=self.filters,
            vector_weight=self.vector_weight,
            keyword_weight=self.keyword_weight,
            min_score=FLOOR,
        )

    def shown(self, found: Found) -> Found:
        """The results without repetitions, at most `limit` of them."""
        hits = tuple(repetition.without_repetitions(found.hits)[: self.limit])
        return msgspec.structs.replace(found, hits=hits)


class Recall:
    def __init__(self, toolkit: Toolkit) -> None:
        self._toolkit = toolkit

    async def __call__(self, arguments: RecallArguments, context: Context) -> Recalled:
        question = await self._question(arguments, context)
        found, cards = await self._search(question)
        weakness = _weakness(found) if question.mode == "auto" else ""
        structured = (
            await self._structured(question, cards, found)
            if question.mode in ("hybrid", "structured") or weakness
            else None
        )
        extra: dict[str, Any] = msgspec.structs.asdict(structured) if structured else {}
        if weakness:
            extra["supplemented"] = weakness
        if arguments.multi_level:
            extra["levels"] = await expansion.levels(question.reader, found, question.filters)
        if arguments.cluster_expand:
            extra["clusters"] = await expansion.clusters(question.reader, found, question.filters)
        return Recalled(
            recall_mode=question.mode,
            scope=question.scope,
            memory_id=question.reader.bank,
            keyword_query=question.keywords or keywords_of(question.text),
            results=await self._results(question, found),
            degraded=list(found.degraded) or UNSET,
            generated_at=iso(self._toolkit.now()),
            **extra,
        )

    async def _question(self, arguments: RecallArguments, context: Context) -> RecallQuestion:
        text = arguments.semantic_query.strip()
        if not text:
            raise InvalidArgument("semantic_query: must not be empty")
        mode = chosen("recall_mode", arguments.recall_mode, RECALL_MODES)
        scope = chosen("scope", arguments.scope, SCOPES)
        limit = at_least("limit", arguments.limit, 1, MOST)
        threshold = share("confidence_threshold", arguments.confidence_threshold)
        vector_weight = share("vector_weight", arguments.vector_weight)
        keyword_weight = share("full_text_weight", arguments.full_text_weight)
        people = memory.filters_for(arguments.user_id, arguments.agent_role, arguments.session_id)
        filters = msgspec.structs.replace(
            people,
            metadata=mapping("metadata_filter", arguments.metadata_filter),
            min_confidence=threshold,  # only cards have a confidence
        )
        if vector_weight is not None and keyword_weight is None:
            keyword_weight = 1.0 - vector_weight
        elif keyword_weight is not None and vector_weight is None:
            vector_weight = 1.0 - keyword_weight
        return RecallQuestion(
            reader=await memory.to_read(self._toolkit, context, arguments.memory_id),
            text=text,
            keywords=arguments.keyword_query.strip() or None,
            mode=mode,
            scope=scope,
            limit=limit,
            filters=filters,
            vector_weight=vector_weight,
            keyword_weight=keyword_weight,
        )

    async def _search(self, question: RecallQuestion) -> tuple[Found, list[Hit]]:
        """The results, and the cards found by the same search."""
        search = question.reader.engine.search
        if question.mode == "structured":
            return Found(), []
        more = question.limit + REPETITIONS
        if question.scope != "all" or question.mode != "hybrid":
            kinds = () if question.scope == "all" else _RAW[question.scope]
            return question.shown(await search(question.query(kinds, limit=more))), []
        # One search over all kinds costs half as much as two filtered searches. A second search is
        # needed only if cards crowded out the other kinds.
        room = 3 * question.limit + 10
        everything = await search(question.query((), limit=room))
        raw = tuple(hit for hit in everything.hits if hit.item.kind in _RAW["all"])
        if len(raw) < question.limit and len(everything.hits) == room:
            raw = (await search(question.query(_RAW["all"], limit=more))).hits
        cards = [hit for hit in everything.hits if hit.item.kind == "card"]
        return question.shown(msgspec.structs.replace(everything, hits=raw)), cards

    async def _results(self, question: RecallQuestion, found: Found) -> list[Result]:
        match question.mode:
            case "precise":
                return await passages.joined(question.reader, found)
            case "session":
                return await expansion.whole_sessions(question.reader, found, question.filters)
            case _:
                return [passages.excerpt(hit) for hit in found.hits]

    # --- structured data ------------------------------------------------------------------

    async def _structured(
        self, question: RecallQuestion, found_cards: list[Hit], found: Found
    ) -> Structured:
        reader, filters = question.reader, question.filters
        parts = _PARTS[question.scope]
        cards = await self._cards(question, found_cards) if "cards" in parts else []
        verified = [answers.brief_card(card, score) for card, score in cards if card.is_verified]
        unverified = [
            answers.brief_card(card, score) for card, score in cards if not card.is_verified
        ]
        risks: list[RiskView] = []
        if "risks" in parts:
            wanted = msgspec.structs.replace(filters, statuses=("active", "mitigated"))
            listed, _ = await reader.engine.risks(reader.bank, filters=wanted, limit=question.limit)
            risks = [answers.risk_view(risk) for risk in listed]
        return Structured(
            verified_cards=verified,
            unverified_cards=unverified,
            recent_days=(
                await bank_overview.recent_days(
                    reader, DAYS, filters, shown={hit.item.id for hit in found.hits}
                )
                if "days" in parts
                else []
            ),
            open_tasks=(
                await bank_overview.open_tasks(reader, question.limit, filters)
                if "tasks" in parts
                else []
            ),
            risks=risks,
        )

    async def _cards(
        self, question: RecallQuestion, found_cards: list[Hit]
    ) -> list[tuple[Card, float | None]]:
        """Cards matching the question, best first; `structured` adds the latest cards."""
        engine, bank, limit = question.reader.engine, question.reader.bank, question.limit
        scored = {hit.item.id: hit.score for hit in found_cards[:limit]}
        if len(scored) < limit:
            by_words = await engine.search(question.query(("card",), mode="keyword"))
            for hit in by_words.hits:
                scored.setdefault(hit.item.id, hit.score)
        best = sorted(scored, key=lambda id: -scored[id])[:limit]
        cards: list[tuple[Card, float | None]] = [
            (await engine.card(bank, id), scored[id]) for id in best
        ]
        if question.mode == "structured" and len(cards) < limit:
            wanted = msgspec.structs.replace(question.filters, statuses=bank_overview.LIVE_CARDS)
            latest, _ = await engine.cards(bank, filters=wanted, limit=limit)
            room = limit - len(cards)
            cards += [(card, None) for card in latest if card.id not in scored][:room]
        return cards


def _weakness(found: Found) -> str:
    """The reason for adding structured data; empty if the results are good."""
    if not found.hits:
        return "nothing was found by words or meaning"
    best = found.hits[0].score
    if best < WEAK_SCORE:
        return f"the best answer scores {best:.2f}, below {WEAK_SCORE}"
    return ""
