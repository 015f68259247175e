"""`_extraction_instruction`: asks the caller's model to extract insights from the recorded events.

The caller has just sent the text, so the instruction does not repeat it. It names the categories,
the JSON to send back, and a few cards that may be duplicates or outdated. It stays under 2 KB and
is left out if there is nothing to extract: repetitions, one-liners, tool output.
"""

from collections.abc import Sequence
from typing import Final

from daemon.dialects.awareness.language.detection import event_type_of, status_of
from daemon.dialects.awareness.language.summaries import clip
from store.model import Item

LIMIT_BYTES: Final = 2_000
MIN_CHARACTERS: Final = 60
MIN_WORDS: Final = 8
#: Event types of callers that contain no knowledge.
NOISE: Final = frozenset(
    {"tool_call", "tool_use", "tool_result", "code_change", "session_checkpoint", "heartbeat"}
)

CATEGORIES: Final = (
    "decision", "workflow", "problem_solution", "pitfall", "insight", "skill", "key_point",
    "personal_preference", "important_detail", "plan_intention", "activity_preference",
    "health_info", "career_info", "custom_misc",
)  # fmt: skip

_TEXT: Final = """\
[AWARENESS EXTRACTION] From {what} you just recorded ({ids}), extract what will still matter in a
later session; then call awareness_record(action="submit_insights", session_id="{session}",
content=<JSON>). Nothing durable? Send empty lists, or skip the call.
JSON: {{"knowledge_cards":[{{"category","title","summary","tags":[],"confidence":0-1,
"status":"open|in_progress|resolved|noted","evidence":[{{"snippet":"<words quoted from it>"}}],
"supersedes":"<id, if it replaces a card below>","methods":[]}}],
"risks":[{{"title","level":"high|medium|low","detail","mitigation"}}],
"action_items":[{{"title","priority":"high|medium|low","detail"}}],
"completed_tasks":[{{"task_id","reason"}}]}}
Category, first that fits: chose between alternatives: decision; bug found AND fixed:
problem_solution; trap or limit: pitfall; procedure done 2+ times: skill (summary = instruction to
inject, methods = steps); process, setup, configuration: workflow; reusable learning: insight;
technical fact: key_point. About the person: personal_preference, important_detail,
plan_intention, activity_preference, health_info, career_info, custom_misc.
Write self-contained summaries; quote evidence word for word.
"""
_KNOWN: Final = "Known cards (do not repeat; supersede what is outdated):\n"
_END: Final = "[END]"


def is_worth_extracting(text: str, event_type: str | None) -> bool:
    """Whether a recorded text may contain knowledge worth a card.

    Decisions and open tasks may be short. `event_type` is the caller's label; a detected type does
    not exclude a text.
    """
    if event_type in NOISE:
        return False
    words = len(text.split(None, MIN_WORDS))
    if event_type_of(text) == "decision" or status_of(text) == "open":
        return words >= MIN_WORDS // 2
    return len(text) >= MIN_CHARACTERS and words >= MIN_WORDS


def instruction(ids: Sequence[str], session: str, known: Sequence[Item]) -> str:
    """The instruction for these events; `known` are similar cards, most similar first."""
    what = "the event" if len(ids) == 1 else f"the {len(ids)} events"
    shown = ", ".join(ids[:3]) + (", …" if len(ids) > 3 else "")
    text = _TEXT.format(what=what, ids=shown, session=clip(session, 100))
    room = LIMIT_BYTES - len(text.encode()) - len(_KNOWN.encode()) - len(_END)
    lines: list[str] = []
    for card in known:
        line = f"- {card.id} [{card.category}] {clip(' '.join(card.title.split()), 70)}\n"
        room -= len(line.encode())
        if room < 0:
            break
        lines.append(line)
    return text + (_KNOWN + "".join(lines) if lines else "") + _END
