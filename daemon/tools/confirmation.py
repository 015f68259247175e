"""Asking a person before something is destroyed, where the client can.

Legacy clients that elicit are asked on the spot; modern ones get the question as an answer and call
again with what the person said. A client that cannot be asked is not: its user has said yes to the
tool, which says of itself that it destroys.
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
    """Whether there is somebody to ask: a client that shows forms, not only URLs."""
    modes = context.capabilities.elicitation
    if modes is UNSET or not context.revision.elicitation:
        return False
    return not modes or "form" in modes


async def confirmed(spec: ToolSpec, context: Context) -> bool | InputRequired:
    """What the person said; for a modern client without an answer yet, the question."""
    question = {
        "mode": "form",
        "message": f"{spec.title or spec.name} removes memories. Go on?",
        "requestedSchema": _FORM,
    }
    if not context.revision.modern:
        asked = {name: value for name, value in question.items() if name != "mode"}
        return _is_yes(await context.ask("elicitation/create", asked))
    given = context.inputs.get(KEY)
    if not isinstance(given, dict):
        request = {"method": "elicitation/create", "params": question}
        return InputRequired(input_requests={KEY: request})
    return _is_yes(given)


def _is_yes(answer: Any) -> bool:
    if not isinstance(answer, dict):
        return False
    said = cast("dict[str, Any]", answer)
    content: Any = said.get("content")
    return (
        said.get("action") == "accept"
        and isinstance(content, dict)
        and bool(cast("dict[str, Any]", content).get("confirm") is True)
    )
