"""Confirmation by the user before a tool destroys something.

A legacy client that supports elicitation is asked during the call. A modern client receives the
question as its answer and calls again with the user's reply. A client without elicitation is not
asked: the tool announces itself as destructive, and the user approved its use.
"""

from typing import Any, Final, cast

from msgspec import UNSET

from daemon.tools.context import Context
from daemon.tools.specification import ToolSpec
from protocol.mcp import InputRequired

KEY: Final = "confirm_destructive"
DECLINED: Final = "Not confirmed by the user; nothing was changed."

_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "confirm": {
            "type": "boolean",
            "title": "Yes, do it",
            "description": "This cannot be undone",
        }
    },
    "required": ["confirm"],
}


def can_confirm(context: Context) -> bool:
    """Whether the client can show a form to its user; showing URLs is not enough."""
    modes = context.capabilities.elicitation
    if modes is UNSET or not context.revision.elicitation:
        return False
    return not modes or "form" in modes


async def confirmed(spec: ToolSpec, context: Context) -> bool | InputRequired:
    """The user's decision, or the question for a modern client that has not answered it yet."""
    question = {
        "mode": "form",
        "message": f"{spec.title or spec.name} removes memories. Go on?",
        "requestedSchema": _FORM,
    }
    if not context.revision.modern:
        form = {name: value for name, value in question.items() if name != "mode"}
        return _is_yes(await context.ask("elicitation/create", form))
    reply = context.inputs.get(KEY)
    if not isinstance(reply, dict):
        request = {"method": "elicitation/create", "params": question}
        return InputRequired(input_requests={KEY: request})
    return _is_yes(reply)


def _is_yes(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    reply = cast("dict[str, Any]", answer)
    content: Any = reply.get("content")
    return (
        reply.get("action") == "accept"
        and isinstance(content, dict)
        and bool(cast("dict[str, Any]", content).get("confirm") is True)
    )
