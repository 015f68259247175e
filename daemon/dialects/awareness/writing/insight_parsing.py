"""Parsers of single insights as models write them: card, task, risk, skill."""

from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from daemon.dialects.awareness.language import detection
from daemon.dialects.awareness.language.summaries import clip, first_sentence
from daemon.dialects.awareness.language.vocabulary import (
    CARD_STATUSES,
    RISK_STATUSES,
    TASK_STATUSES,
    level_named,
    status_named,
)
from daemon.dialects.awareness.refusal import InvalidArgument
from daemon.dialects.awareness.writing.event_writer import CallLabels
from daemon.dialects.awareness.writing.extraction import CATEGORIES
from store.model import Evidence, NewCard, NewRisk, NewTask

SNIPPET: Final = 1_000
#: Confidence of a card that gives none; higher if the card quotes evidence.
DEFAULT_CONFIDENCE: Final = 0.5
DEFAULT_CONFIDENCE_WITH_EVIDENCE: Final = 0.7

_SUPERSEDES: Final = ("supersedes", "update_card_id", "parent_card_id", "existing_card_id")
_SNIPPETS: Final = ("snippet", "quote", "text", "content")


class Rejection(Struct, frozen=True, kw_only=True):
    where: str
    reason: str


class Correction(Struct, frozen=True, kw_only=True):
    where: str
    reason: str


class ParsingReport:
    """Entries that were rejected, and corrections that were made while parsing."""

    def __init__(self) -> None:
        self.rejected: list[Rejection] = []
        self.corrected: list[Correction] = []

    def reject(self, where: str, reason: str) -> None:
        self.rejected.append(Rejection(where=where[:200], reason=reason))

    def correct(self, where: str, reason: str) -> None:
        self.corrected.append(Correction(where=where[:200], reason=reason))


def card_of(
    place: str, entry: dict[str, Any], report: ParsingReport, labels: CallLabels
) -> NewCard | None:
    title, summary = _text(entry, "title", "name"), _text(entry, "summary", "description")
    if not title and not summary:
        report.reject(place, "needs a title or a summary")
        return None
    category, own_tags = _category(place, _text(entry, "category"), report)
    tags = (*_texts(place, "tags", entry.pop("tags", None), report), *own_tags)
    evidence, sources = _evidence(place, entry.pop("evidence", None), report)
    confidence = _share(place, "confidence", entry, report)
    if confidence is None:
        confidence = DEFAULT_CONFIDENCE_WITH_EVIDENCE if evidence else DEFAULT_CONFIDENCE
    status = _status(place, _text(entry, "status"), CARD_STATUSES, report)
    supersedes = _text(entry, *_SUPERSEDES)
    methods = _methods(place, entry.pop("methods", None), report)
    if sources:
        entry["evidence_sources"] = sources
    return NewCard(
        category=category,
        title=clip(title or first_sentence(summary, 120), 1_000),
        summary=summary or title,
        tags=tags,
        status=status or detection.status_of(f"{title}\n{summary}"),
        confidence=confidence,
        salience=_number(place, "salience_score", entry, report),
        methods=methods,
        evidence=evidence,
        supersedes=supersedes or None,
        **_by(labels, entry),
    )


def skill_of(
    place: str, entry: dict[str, Any], report: ParsingReport, labels: CallLabels
) -> NewCard | None:
    """A skill as a card of that category, so that it has versions, evidence and lookups."""
    entry["category"] = "skill"
    for other, name in (("steps", "methods"), ("name", "title")):
        if name not in entry and other in entry:
            entry[name] = entry.pop(other)
    return card_of(place, entry, report, labels)


def task_of(
    place: str, entry: dict[str, Any], report: ParsingReport, labels: CallLabels
) -> NewTask | None:
    title = _text(entry, "title", "task", "text")
    if not title:
        report.reject(place, "needs a title")
        return None
    return NewTask(
        title=clip(title, 1_000),
        detail=_text(entry, "detail", "description"),
        priority=_level(place, "priority", entry, report),
        status=_status(place, _text(entry, "status"), TASK_STATUSES, report) or "pending",
        context=_text(entry, "context") or None,
        effort=_text(entry, "estimated_effort", "effort") or None,
        **_by(labels, entry),
    )


def risk_of(
    place: str, entry: dict[str, Any], report: ParsingReport, labels: CallLabels
) -> NewRisk | None:
    title = _text(entry, "title", "risk")
    detail = _text(entry, "detail", "description")
    if not title and not detail:
        report.reject(place, "needs a title")
        return None
    return NewRisk(
        title=clip(title or first_sentence(detail, 120), 1_000),
        detail=detail,
        level=_level(place, "level", entry, report),
        mitigation=_text(entry, "mitigation"),
        status=_status(place, _text(entry, "status"), RISK_STATUSES, report) or "active",
        **_by(labels, entry),
    )


# --- members ----------------------------------------------------------------------------------


def _by(labels: CallLabels, rest: dict[str, Any]) -> dict[str, Any]:
    """The origin of an insight; unknown members of the entry become metadata."""
    return {
        "session": labels.session,
        "source": labels.source,
        "user": labels.user,
        "role": labels.role,
        "metadata": {**labels.defaults, **labels.metadata, **rest},
        "provenance": labels.provenance,
    }


def _text(entry: dict[str, Any], *names: str) -> str:
    """Remove the first of these members that is a text, and return it."""
    for name in names:
        value = entry.get(name)
        if isinstance(value, str):
            del entry[name]
            if value.strip():
                return value.strip()
    return ""


def _texts(place: str, name: str, value: Any, report: ParsingReport) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list):
        report.correct(f"{place}.{name}", "must be an array of texts: left out")
        return ()
    texts = [entry.strip() for entry in cast("list[Any]", value) if isinstance(entry, str)]
    if len(texts) < len(cast("list[Any]", value)):
        report.correct(f"{place}.{name}", "entries that are no text were left out")
    return tuple(dict.fromkeys(text for text in texts if text))


def _methods(place: str, value: Any, report: ParsingReport) -> tuple[str, ...]:
    """The steps in order, given as texts or as {step, description} objects."""
    if not isinstance(value, list):
        return _texts(place, "methods", value, report)
    steps: list[str] = []
    for entry in cast("list[Any]", value):
        if isinstance(entry, dict):
            members = cast("dict[str, Any]", entry)
            said = members.get("description") or members.get("text") or members.get("step")
            steps.append(str(said) if said is not None else msgspec.json.encode(members).decode())
        elif isinstance(entry, str) and entry.strip():
            steps.append(entry.strip())
        else:
            report.correct(f"{place}.methods", "entries that are no text were left out")
    return tuple(steps)


def _evidence(
    place: str, value: Any, report: ParsingReport
) -> tuple[tuple[Evidence, ...], list[str]]:
    """Quotations and their claimed sources; the store verifies the quotations."""
    if value is None:
        return (), []
    if isinstance(value, (str, dict)):
        value = [value]
    if not isinstance(value, list):
        report.correct(f"{place}.evidence", "must be an array of {snippet}: left out")
        return (), []
    pieces: list[Evidence] = []
    sources: list[str] = []
    for entry in cast("list[Any]", value):
        members = cast("dict[str, Any]", entry) if isinstance(entry, dict) else {"snippet": entry}
        snippet = next((members[n] for n in _SNIPPETS if isinstance(members.get(n), str)), "")
        if not snippet.strip():
            report.correct(f"{place}.evidence", "a piece without a snippet was left out")
            continue
        pieces.append(Evidence(snippet=clip(snippet.strip(), SNIPPET)))
        if isinstance(members.get("source"), str):
            sources.append(members["source"])
    return tuple(pieces), sources


def _category(place: str, value: str, report: ParsingReport) -> tuple[str, tuple[str, ...]]:
    plain = value.lower().replace("-", "_").replace(" ", "_")
    if plain in CATEGORIES:
        return plain, ()
    report.correct(
        f"{place}.category",
        f"'{value}' is not a category: kept as key_point" + (", tagged with it" if value else ""),
    )
    return "key_point", (value,) if value else ()


def _status(place: str, value: str, statuses: tuple[str, ...], report: ParsingReport) -> str:
    try:
        found = status_named(value, statuses)
    except InvalidArgument as refused:
        report.correct(f"{place}.status", f"{refused.args[0].partition(': ')[2]}: left out")
        return ""
    # Only another card can supersede a card.
    return "" if found == "superseded" else found


def _level(place: str, name: str, entry: dict[str, Any], report: ParsingReport) -> str:
    value = entry.pop(name, None)
    found = level_named(value) if isinstance(value, str) else None
    if found is None and value is not None:
        report.correct(f"{place}.{name}", "must be one of high, medium, low: taken as medium")
    return found or "medium"


def _share(place: str, name: str, entry: dict[str, Any], report: ParsingReport) -> float | None:
    value = _number(place, name, entry, report)
    if value is not None and not 0.0 <= value <= 1.0:
        report.correct(f"{place}.{name}", "must be from 0 to 1: left out")
        return None
    return value


def _number(place: str, name: str, entry: dict[str, Any], report: ParsingReport) -> float | None:
    value = entry.pop(name, None)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        report.correct(f"{place}.{name}", "must be a number: left out")
        return None
    return float(value)
