"""Shapes a result for the revision of its request.

Legacy results have no modern members. Modern results always have `resultType` and the server's
name in `_meta`. Members that a revision does not define are removed, and content types that it does
not define become text, so that a client can validate every result against its own schema.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Struct

from protocol.mcp import (
    AudioContent,
    CallToolResult,
    Content,
    GetPromptResult,
    InputRequired,
    PromptMessage,
    ResourceLink,
    ServerInfo,
    TextContent,
    Tool,
)
from protocol.revisions import SERVER_INFO, Revision

_encoder: Final = msgspec.json.Encoder()

_TITLED: Final = frozenset({"title"})


class CacheHint(Struct, frozen=True):
    """How long a modern client may cache a result; the scope is always private."""

    ttl_ms: int = 0

    def members(self) -> bytes:
        return b'"ttlMs":%d,"cacheScope":"private"' % self.ttl_ms


class Shaper:
    """Encodes results; holds the server's name and version for the `_meta` of modern results."""

    def __init__(self, server: ServerInfo) -> None:
        self.server = server
        #: The `_meta` of every modern result.
        self.stamp: dict[str, Any] = {SERVER_INFO: server}
        self._meta = b'"_meta":' + _encoder.encode(self.stamp)
        self._complete = b'{"resultType":"complete",' + self._meta
        self._input_required = b'{"resultType":"input_required",' + self._meta
        self._task = b'{"resultType":"task",' + self._meta

    def result(
        self, payload: Any, revision: Revision | None, hint: CacheHint | None = None
    ) -> bytes:
        """Encode a result object; `payload` is a Struct, a mapping or encoded JSON."""
        body = payload if isinstance(payload, bytes) else _encoder.encode(payload)
        if revision is None or not revision.modern:
            return body
        head = self._input_required if isinstance(payload, InputRequired) else self._complete
        if hint is not None:
            head = head + b"," + hint.members()
        return head + b"}" if body == b"{}" else head + b"," + body[1:]

    def tool_result(self, result: CallToolResult, revision: Revision | None) -> bytes:
        """Encode a tool result with the content types and members that the revision defines."""
        if revision is not None:
            content = shape_content(result.content, revision)
            structured = result.structured_content if revision.structured else UNSET
            if content is not result.content or structured is not result.structured_content:
                result = CallToolResult(
                    content=content, structured_content=structured, is_error=result.is_error
                )
        return self.result(result, revision)

    def created_task(self, task: dict[str, Any]) -> bytes:
        """Encode the answer to a call that goes on as a task."""
        return self._task + b"," + _encoder.encode(task)[1:]

    def prompt_result(self, result: GetPromptResult, revision: Revision | None) -> bytes:
        if revision is not None:
            messages = [
                PromptMessage(
                    role=message.role, content=shape_content([message.content], revision)[0]
                )
                for message in result.messages
            ]
            result = GetPromptResult(messages=messages, description=result.description)
        return self.result(result, revision)

    def server_info(self, revision: Revision) -> dict[str, Any]:
        return _only(self.server, revision.server_fields)


def shape_content(content: list[Content], revision: Revision) -> list[Content]:
    """Replace content that the revision does not define; usually returns the same list."""
    for block in content:
        if type(block) is not TextContent and block.__struct_config__.tag not in revision.content:
            return [_block(block, revision) for block in content]
    return content


def _block(block: Content, revision: Revision) -> Content:
    if block.__struct_config__.tag in revision.content:
        return block
    match block:
        case ResourceLink():
            return TextContent(text=f"{block.name}: {block.uri}")
        case AudioContent():
            return TextContent(text=f"[{block.mime_type}: {revision.date} carries no audio]")
        case _:
            return TextContent(text=f"[content that {revision.date} does not carry]")


def shape_tools(tools: Sequence[Tool], revision: Revision) -> list[dict[str, Any]]:
    """Return tool descriptions with the members that the revision defines."""
    return [_only(tool, revision.tool_fields) for tool in tools]


def shape_listing(entries: Sequence[Struct], revision: Revision) -> list[dict[str, Any]]:
    """Return resources, templates or prompts; without titles if the revision's tools have none."""
    dropped = frozenset[str]() if "title" in revision.tool_fields else _TITLED
    return [_without(msgspec.to_builtins(entry), dropped) for entry in entries]


def _only(payload: Struct, allowed: frozenset[str]) -> dict[str, Any]:
    members = cast("dict[str, Any]", msgspec.to_builtins(payload))
    return {name: value for name, value in members.items() if name in allowed}


def _without(value: Any, dropped: frozenset[str]) -> Any:
    if not dropped:
        return value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {k: _without(v, dropped) for k, v in members.items() if k not in dropped}
    if isinstance(value, list):
        return [_without(entry, dropped) for entry in cast("list[Any]", value)]
    return value
