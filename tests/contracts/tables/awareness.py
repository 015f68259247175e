"""The tables of the Awareness document ("MCP Tools Reference")."""

import itertools
import json
from collections.abc import Mapping
from typing import Any, Final

from tests.contracts.client import Answer, Client
from tests.contracts.tables.model import NONE, Dialect, Parameter, Tool

#: A default that the document gives as `""`, `null` or "env var". Schemas omit such defaults;
#: contracts/awareness/test_workflow.py tests the meaning of an absent argument.
EMPTY: Final = NONE

TOOL_NAMES: Final = (
    "__awareness_workflow__",
    "awareness_init",
    "awareness_get_agent_prompt",
    "awareness_recall",
    "awareness_lookup",
    "awareness_record",
)
RECALL_MODES: Final = ("hybrid", "auto", "precise", "session", "structured")
SCOPES: Final = ("all", "timeline", "knowledge", "insights")
LOOKUP_TYPES: Final = (
    "context", "tasks", "knowledge", "risks", "session_history", "timeline", "handoff",
)  # fmt: skip
ACTIONS: Final = (
    "remember", "remember_batch", "backfill", "ingest", "update_task", "submit_insights",
)  # fmt: skip
#: "Categories auto-extracted (13 total)". The document says 13 but lists these 14.
CATEGORIES: Final = (
    "decision", "workflow", "problem_solution", "pitfall", "insight", "skill", "key_point",
    "personal_preference", "important_detail", "plan_intention", "activity_preference",
    "health_info", "career_info", "custom_misc",
)  # fmt: skip

#: "Supported IDEs": source value, IDE, rules file, strategy.
IDES: Final = (
    ("claude-code", "claude-code", "CLAUDE.md", "managed_block"),
    ("claude", "claude-code", "CLAUDE.md", "managed_block"),
    ("cursor", "cursor", ".cursor/rules/awareness.mdc", "managed_file"),
    ("windsurf", "windsurf", ".windsurfrules", "managed_block"),
    ("cline", "cline", ".clinerules", "managed_block"),
    ("copilot", "copilot", ".github/copilot-instructions.md", "managed_block"),
    ("github-copilot", "copilot", ".github/copilot-instructions.md", "managed_block"),
    ("vscode-copilot", "copilot", ".github/copilot-instructions.md", "managed_block"),
    ("codex", "codex", "AGENTS.md", "managed_block"),
    ("opencode", "codex", "AGENTS.md", "managed_block"),
)
START_MARKER: Final = "<!-- AWARENESS_RULES_START -->"
END_MARKER: Final = "<!-- AWARENESS_RULES_END -->"

#: The "Good examples" of `remember`, word for word.
GOOD_EXAMPLES: Final = (
    "Decision: Switched auth from JWT to session cookies. Reason: simpler refresh logic.\n"
    "Affected: backend/auth.py, frontend/lib/auth.ts.",
    "Bug fixed: Memory leak in background worker caused by unclosed DB connections.\n"
    "Fix: added finally block in server/awareness/tasks.py line 89.",
)
BAD_EXAMPLES: Final = ("Updated auth", "Fixed bug", "Tests pass")
#: The example of `remember_batch`.
STEPS: Final = (
    {"text": "Session summary: Added user authentication with JWT tokens"},
    {"text": "Files changed: auth.py, middleware.py, login.tsx"},
    {"text": "Decisions: Chose bcrypt over argon2 for password hashing (wider library support)"},
    {"text": "TODO: Add rate limiting to login endpoint"},
)

LONG: Final = "x" * 5_000
MEMORY_ID: Final = Parameter("memory_id", "string", default=EMPTY, bad=("a\nb", "x" * 257))
USER_ID: Final = Parameter("user_id", "string", default=EMPTY)
AGENT_ROLE: Final = Parameter("agent_role", "string", default=EMPTY)


def _mapping(name: str) -> Parameter:
    return Parameter(name, "object", default=EMPTY, accepts=("null", "string"), bad=("text", "[1]"))


def _prepare(client: Client) -> Mapping[str, Any] | None:
    """Store one event, one card, one skill, one risk and one task."""
    client.call("awareness_record", action="remember", text=GOOD_EXAMPLES[0], session_id="s-given")
    insights = {
        "knowledge_cards": [
            {
                "category": "decision",
                "title": "Session cookies instead of JWT",
                "summary": "Authentication uses session cookies; refreshing them is simpler.",
                "evidence": [{"snippet": "Switched auth from JWT to session cookies"}],
            },
            {
                "category": "skill",
                "title": "Rotate the signing key",
                "summary": "Rotate the key of the session cookies.",
                "methods": ["make a key", "deploy it", "retire the old one"],
            },
        ],
        "risks": [{"title": "Cookies without SameSite", "level": "high", "detail": "CSRF"}],
        "action_items": [{"title": "Add rate limiting to login endpoint", "priority": "high"}],
    }
    sent = client.call(
        "awareness_record", action="submit_insights", session_id="s-given", content=insights
    )
    assert not sent.is_error, sent
    return None


_events: Final = itertools.count(1)


def _new_event(client: Client) -> Mapping[str, Any] | None:
    """Return a new text: a repeated one gets no extraction instruction."""
    return {"text": f"{GOOD_EXAMPLES[1]} Seen {next(_events)} times."}


def _refusal_message(answer: Answer) -> str:
    assert answer.is_error
    body = json.loads(answer.text)
    assert list(body) == ["error"]
    assert answer.result is not None and answer.result["structuredContent"] == body
    return str(body["error"])


def _snapshot(client: Client) -> Any:
    seen: dict[str, Any] = {}
    for kind in ("tasks", "knowledge", "risks", "timeline"):
        answer = client.call("awareness_lookup", type=kind, limit=500, include_completed=True)
        seen[kind] = answer.json
    return seen


DIALECT: Final = Dialect(
    name="awareness",
    tools=(
        Tool(
            name="__awareness_workflow__",
            parameters=(),
            result={},
            additional=frozenset({"message", "next"}),
            arguments={},
            read_only=True,
        ),
        Tool(
            name="awareness_init",
            parameters=(
                MEMORY_ID,
                Parameter("source", "string", default=EMPTY, bad=(LONG,)),
                Parameter("days", "integer", default=7, bad=(0, -1)),
                Parameter("max_cards", "integer", default=20, bad=(-1,)),
                Parameter("max_tasks", "integer", default=20, bad=(-1,)),
                Parameter("user_id", "string", default=EMPTY, bad=(LONG,)),
                Parameter("agent_role", "string", default=EMPTY, bad=(LONG,)),
                Parameter("client_capabilities", "string", default=EMPTY),
            ),
            result={
                "session_id": "string",
                "context": "object",
                "context.recent_days": "array",
                "context.recent_days[]": "object",
                "context.recent_days[].date": "string",
                "context.recent_days[].narrative": "string",
                "context.recent_days[].count": "integer",
                "context.open_tasks": "array",
                "context.knowledge_cards": "array",
                "agent_profiles": "array",
                "agent_profiles[]": "object",
                "agent_profiles[].agent_role": "string",
                "agent_profiles[].title": "string",
                "agent_profiles[].when_to_use": "string",
                "active_skills": "array",
                "active_skills[]": "object",
                "active_skills[].title": "string",
                "active_skills[].summary": "string",
                "active_skills[].methods": "array",
                "active_skills[].methods[]": "string",
                "setup_hints": "object",
                "setup_hints.ide_rules": "object",
                "setup_hints.ide_rules.ide": "string",
                "setup_hints.ide_rules.rules_file": "string",
                "setup_hints.ide_rules.rules_content": "string",
                "setup_hints.ide_rules.strategy": "string",
                "setup_hints.ide_rules.start_marker": "string",
                "setup_hints.ide_rules.end_marker": "string",
                "setup_hints.ide_rules.conflict_policy": "string",
                "setup_hints.ide_rules.instruction": "string",
            },
            additional=frozenset(
                {
                    "memory_id",
                    "context.last_sessions",
                    "context.days_included",
                    "context.generated_at",
                    "context.open_tasks[]",
                    "context.knowledge_cards[]",
                }
            ),
            arguments={"source": "claude-code"},
            prepare=_prepare,
        ),
        Tool(
            name="awareness_get_agent_prompt",
            parameters=(
                Parameter("agent_role", "string", required=True),
                MEMORY_ID,
                Parameter("api_key", "string", default=EMPTY),
            ),
            result={
                "agent_role": "string",
                "title": "string",
                "activation_prompt": "string",
                "system_prompt": "string",
            },
            arguments={"agent_role": "developer_agent"},
            read_only=True,
        ),
        Tool(
            name="awareness_recall",
            parameters=(
                Parameter("semantic_query", "string", required=True, bad=("", "  ")),
                Parameter("keyword_query", "string", default=EMPTY),
                MEMORY_ID,
                Parameter("scope", "string", default="all", enum=SCOPES, bad=("", "some")),
                Parameter("limit", "integer", default=6, bad=(0, -1)),
                Parameter(
                    "recall_mode", "string", default="hybrid", enum=RECALL_MODES, bad=("", "fast")
                ),
                Parameter(
                    "confidence_threshold",
                    "number",
                    default=EMPTY,
                    accepts=("null",),
                    bad=(-0.1, 1.1),
                ),
                USER_ID,
                AGENT_ROLE,
                Parameter("session_id", "string", default=EMPTY),
                Parameter("multi_level", "boolean", default=False),
                Parameter("cluster_expand", "boolean", default=False),
                _mapping("metadata_filter"),
                # Not in the parameter table, but in the text above it ("WEIGHTS").
                Parameter("vector_weight", "number", accepts=("null",), bad=(-1, 2)),
                Parameter("full_text_weight", "number", accepts=("null",), bad=(-1, 2)),
            ),
            result={
                "verified_cards": "array",
                "unverified_cards": "array",
                "open_tasks": "array",
                "recent_days": "array",
                "results": "array",
                "results[]": "object",
                "results[].content": "string",
                "results[].score": "number",
                "results[].metadata": "object",
            },
            additional=frozenset(
                {
                    "recall_mode",
                    "scope",
                    "memory_id",
                    "keyword_query",
                    "risks",
                    "generated_at",
                    "degraded",
                    "results[].truncated",
                    "verified_cards[]",
                    "unverified_cards[]",
                    "open_tasks[]",
                    "recent_days[]",
                }
            ),
            arguments={"semantic_query": "Why did we switch auth to session cookies?"},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name="awareness_lookup",
            parameters=(
                Parameter("type", "string", required=True, enum=LOOKUP_TYPES, bad=("", "cards")),
                MEMORY_ID,
                Parameter("days", "integer", default=7, bad=(0, -1)),
                Parameter("max_cards", "integer", default=20, bad=(-1,)),
                Parameter("max_tasks", "integer", default=20, bad=(-1,)),
                Parameter("query", "string", default=EMPTY),
                Parameter("category", "string", default=EMPTY, bad=("nonsense",)),
                Parameter("status", "string", default=EMPTY, bad=("banana",)),
                Parameter("priority", "string", default=EMPTY, bad=("soon",)),
                Parameter("include_completed", "boolean", default=False),
                Parameter("level", "string", default=EMPTY, bad=("dire",)),
                Parameter("session_id", "string", default=EMPTY),
                Parameter("limit", "integer", default=50, bad=(0, -1)),
                Parameter("offset", "integer", default=0, bad=(-1,)),
                USER_ID,
                AGENT_ROLE,
            ),
            result={
                "recent_days": "array",
                "open_tasks": "array",
                "knowledge_cards": "array",
            },
            additional=frozenset(
                {
                    "agent_profiles",
                    "memory_id",
                    "last_sessions",
                    "days_included",
                    "generated_at",
                    "recent_days[]",
                    "open_tasks[]",
                    "knowledge_cards[]",
                }
            ),
            arguments={"type": "context"},
            prepare=_prepare,
            read_only=True,
        ),
        Tool(
            name="awareness_record",
            parameters=(
                Parameter("action", "string", required=True, enum=ACTIONS, bad=("", "forget")),
                MEMORY_ID,
                Parameter("session_id", "string", default=EMPTY, bad=(LONG,)),
                Parameter("text", "string", default=EMPTY, bad=("", " ", "x" * 1_048_577)),
                Parameter("steps", "array", default=EMPTY, accepts=("null", "string")),
                Parameter(
                    "history",
                    "string",
                    default=EMPTY,
                    accepts=("array", "null"),
                    typed=False,
                    bad=("a transcript that this action does not use",),
                ),
                Parameter(
                    "content",
                    "string",
                    default=EMPTY,
                    accepts=("array", "object", "null", "number", "boolean"),
                    typed=False,
                    bad=({"text": "in the wrong place"},),
                ),
                Parameter(
                    "content_scope",
                    "string",
                    default="timeline",
                    enum=("timeline", "knowledge"),
                    bad=("", "insights"),
                ),
                Parameter("task_id", "string", default=EMPTY, bad=("task_1",)),
                Parameter("status", "string", default=EMPTY, bad=("banana",)),
                Parameter("source", "string", default=EMPTY, bad=(LONG,)),
                Parameter("actor", "string", default=EMPTY, bad=("nobody",)),
                Parameter("event_type", "string", default=EMPTY, bad=(LONG,)),
                _mapping("metadata"),
                _mapping("metadata_defaults"),
                Parameter("user_id", "string", default=EMPTY, bad=(LONG,)),
                Parameter("agent_role", "string", default=EMPTY, bad=(LONG,)),
                Parameter("generate_summary", "boolean", default=True),
                Parameter("max_events", "integer", default=800, bad=(0, -1)),
            ),
            result={"_extraction_instruction": "string"},
            additional=frozenset({"memory_id", "source", "session_id", "event", "result"}),
            arguments={"action": "remember", "text": GOOD_EXAMPLES[1]},
            prepare=_new_event,
        ),
    ),
    refusal_message=_refusal_message,
    snapshot=_snapshot,
)
