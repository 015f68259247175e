"""Awareness dialect: sessions, tasks, cards and recall in five modes; see README.md."""

from typing import Final

from msgspec import Struct

from daemon.dialects.awareness import arguments as args
from daemon.dialects.awareness.memory import NAME
from daemon.dialects.awareness.refusal import FIELDS, failed, refusal
from daemon.dialects.awareness.tools import workflow
from daemon.dialects.awareness.tools.agent_prompt import GetAgentPrompt
from daemon.dialects.awareness.tools.init import Init
from daemon.dialects.awareness.tools.lookup import Lookup
from daemon.dialects.awareness.tools.recall import Recall
from daemon.dialects.awareness.tools.record import Record
from daemon.tools.dialect import Dialect
from daemon.tools.specification import LONG_CALL_SECONDS, ToolSpec
from daemon.tools.toolkit import Toolkit


class Answered(Struct, frozen=True):
    """Output schema of every tool: an object. A full schema would cost each client many tokens."""


def tools(toolkit: Toolkit) -> list[ToolSpec]:
    return [
        ToolSpec(
            name="__awareness_workflow__",
            description=workflow.DESCRIPTION,
            run=workflow.answer,
            read_only=True,
            output=Answered,
        ),
        ToolSpec(
            name="awareness_init",
            description=(
                "Start a session: returns session_id, recent days, open tasks, knowledge cards, "
                "agent profiles, skills to apply. Call ONCE, first."
            ),
            arguments=args.InitArguments,
            run=Init(toolkit),
            serves_readers=True,
            output=Answered,
            input_schema=args.schema(
                args.InitArguments,
                notes={
                    "memory_id": "default: configured",
                    "source": "claude-code, cursor, ...",
                    "days": "1-90",
                },
            ),
        ),
        ToolSpec(
            name="awareness_get_agent_prompt",
            description=(
                "Activation prompt for a role, to start a sub-agent with. Roles are listed by "
                "awareness_init and lookup context; awareness_record submit_insights changes them."
            ),
            arguments=args.PromptArguments,
            run=GetAgentPrompt(toolkit),
            read_only=True,
            output=Answered,
            input_schema=args.schema(
                args.PromptArguments,
                notes={"agent_role": "from agent_profiles"},
            ),
        ),
        ToolSpec(
            name="awareness_recall",
            description=(
                "Search memory by meaning and keywords. Not for greetings, general knowledge or "
                "what the conversation says. scope: timeline=events, knowledge=documents, "
                "insights=session summaries. recall_mode: hybrid=results+cards+tasks, "
                "auto=results, more if weak, precise=passages, session=whole sessions, "
                "structured=no vectors."
            ),
            arguments=args.RecallArguments,
            run=Recall(toolkit),
            read_only=True,
            output=Answered,
            input_schema=args.schema(
                args.RecallArguments,
                choices={"scope": args.SCOPES, "recall_mode": args.RECALL_MODES},
                notes={
                    "semantic_query": "the full question",
                    "keyword_query": "2-5 exact terms",
                    "limit": "1-30",
                    "confidence_threshold": "min for cards, 0-1",
                    "multi_level": "add session and day context",
                    "cluster_expand": "add related items",
                    "vector_weight": "0.8 factual, 0.5 keyword-heavy",
                },
            ),
        ),
        ToolSpec(
            name="awareness_lookup",
            description="Read structured memory without search: tasks, cards, risks, events.",
            arguments=args.LookupArguments,
            run=Lookup(toolkit),
            read_only=True,
            output=Answered,
            input_schema=args.schema(
                args.LookupArguments,
                choices={"type": args.LOOKUP_TYPES},
                notes={
                    "query": "keyword filter",
                    "session_id": "for session_history",
                    "priority": "high|medium|low",
                    "level": "risks: high|medium|low",
                },
            ),
        ),
        ToolSpec(
            name="awareness_record",
            description=(
                "Write to memory. remember: text. remember_batch: steps [{text}]. "
                "backfill: history. ingest: content, content_scope. update_task: task_id, status. "
                "submit_insights: content {knowledge_cards, risks, action_items, "
                "agent_profiles: [{agent_role, when_to_use, ...} or {agent_role, delete: true}]}."
            ),
            arguments=args.RecordArguments,
            run=Record(toolkit),
            output=Answered,
            task_after=LONG_CALL_SECONDS,
            input_schema=args.schema(
                args.RecordArguments,
                choices={"action": args.ACTIONS, "content_scope": args.CONTENT_SCOPES},
                notes={
                    "text": "what, why, outcome, files",
                    "session_id": "from awareness_init",
                    "status": "pending|in_progress|completed",
                    "actor": "user|assistant|tool|system",
                },
                hidden=("insights",),
            ),
        ),
    ]


DIALECT: Final = Dialect(
    name=NAME,
    tools=tools,
    instructions=(
        "Call awareness_init once at the start, search with awareness_recall, and store with "
        "awareness_record (action remember)."
    ),
    refuse=refusal,
    fail=failed,
    fields=FIELDS,
    headers={
        "memory_id": "x-awareness-memory-id",
        "agent_role": "x-awareness-agent-role",
        "api_key": "authorization",
    },
)
