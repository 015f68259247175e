"""Helper functions for hooks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]


def code(reply: Message) -> Any:
    return reply.get("error", {}).get("code")


def method(request: Message) -> Any:
    return request.get("method")


def tool(request: Message) -> Any:
    """The tool that a request calls, or None."""
    params = request.get("params")
    if request.get("method") != "tools/call" or not isinstance(params, dict):
        return None
    return params.get("name")


def params(message: Any) -> Message:
    """The params of a message, for changes in place; an empty object if it has none."""
    found = message.get("params") if isinstance(message, dict) else None
    return found if isinstance(found, dict) else {}


def meta(message: Any) -> Message:
    found = params(message).get("_meta")
    return found if isinstance(found, dict) else {}


def success(reply: Message, **result: Any) -> Message:
    """A success response with the id of this reply."""
    return {"jsonrpc": "2.0", "id": reply.get("id"), "result": result}


def failure(reply: Message, number: int, text: str = "no") -> Message:
    """An error response with the id of this reply."""
    return {"jsonrpc": "2.0", "id": reply.get("id"), "error": {"code": number, "message": text}}


def in_result(wanted: str, change: Callable[[Message], Any]) -> Callable[..., Message]:
    """A reply hook that changes the results of one method, or of one tool (`!` and its name)."""

    def hook(connection: Any, request: Message, reply: Message) -> Message:
        name = tool(request) if wanted.startswith("!") else method(request)
        if name == wanted.lstrip("!") and isinstance(reply.get("result"), dict):
            reply = copy.deepcopy(reply)
            change(reply["result"])
        return reply

    return hook


def in_notification(wanted: str, change: Callable[[Message], Any]) -> Callable[..., Message]:
    """A note hook that changes the params of one notification or server request."""

    def hook(connection: Any, note: Message) -> Message:
        if note.get("method") == wanted:
            note = copy.deepcopy(note)
            change(note.setdefault("params", {}))
        return note

    return hook
