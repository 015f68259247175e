"""Results that a case requires: the result object of a response, the text of a tool result."""

from __future__ import annotations

from typing import Any

from conformance.check import NotApplicable, fail
from conformance.client.frames import Frame, show


def result_of(frame: Frame, what: str) -> dict[str, Any]:
    if frame.kind == "error":
        fail(f"{what} was answered with an error: {show(frame.raw)}")
    result = frame.result
    if not isinstance(result, dict):
        fail(f"the result of {what} is not an object: {show(frame.raw)}")
    if result.get("resultType") == "input_required" and "tools/call" not in what:
        raise NotApplicable(f"{what} asks for input first")
    return result


def text_of(result: dict[str, Any]) -> str:
    """All text blocks of a tool result, joined."""
    content = result.get("content")
    if not isinstance(content, list):
        fail("the tool result has no content list")
    return "".join(
        str(block.get("text", ""))
        for block in content
        if isinstance(block, dict) and block.get("type") == "text"
    )
