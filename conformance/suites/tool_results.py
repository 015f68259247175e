"""T05 to T17: content blocks and structured content of tool results."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from conformance import json_schema, revisions
from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import show
from conformance.client.results import text_of
from conformance.context import Context


def called(ctx: Context, name: str, **values: Any) -> dict[str, Any]:
    role = ctx.role(name)
    return ctx.peer.tool(role.tool, role.arguments(**values))


def structured(ctx: Context) -> tuple[dict[str, Any], Any]:
    """A structured result and the schema that it must satisfy."""
    role = ctx.role("structured")
    tool = next(t for t in ctx.facts.tools if t.get("name") == role.tool)
    if "outputSchema" not in tool:
        raise NotApplicable(f"{role.tool!r} has no output schema")
    result = ctx.peer.tool(role.tool, role.arguments())
    need(result.get("isError") is not True, f"{role.tool!r} failed: {result}")
    return result, tool["outputSchema"]


@case("T05")
def _obeys_its_schema(ctx: Context) -> None:
    result, rule = structured(ctx)
    need("structuredContent" in result, "an output schema, but no structuredContent")
    wrong = json_schema.check_value(result["structuredContent"], rule)
    need(wrong is None, f"structuredContent breaks the output schema: {wrong}")


@case("T06")
def _mirrored(ctx: Context) -> None:
    result, _ = structured(ctx)
    for block in result.get("content", []):
        try:
            if json.loads(block.get("text", "")) == result.get("structuredContent"):
                return
        except ValueError:
            continue
    fail("no text block holds the structured content as JSON")


@case("T07")
def _failure_has_text(ctx: Context) -> None:
    result = called(ctx, "fail", text="it is broken")
    need(result.get("isError") is True, f"not an error: {result}")
    need(text_of(result).strip(), "an error without a text")


@case("T12a")
def _failure_is_a_result(ctx: Context) -> None:
    role = ctx.role("fail")
    params = {"name": role.tool, "arguments": role.arguments(text="it is broken")}
    frame = ctx.peer.call("tools/call", params)
    need(frame.kind == "result", f"a tool's failure is a result, not {show(frame.raw)}")
    need(frame.result.get("isError") is True, f"not marked as an error: {show(frame.raw)}")


@case("T12b")
def _failure_then_success(ctx: Context) -> None:
    called(ctx, "fail", text="it is broken")
    result = called(ctx, "echo", text="fine")
    need(result.get("isError") is not True, "a call after a failed one failed too")


@case("T16")
def _plain_result(ctx: Context) -> None:
    result = called(ctx, "echo", text="plain")
    need(isinstance(result.get("content"), list), "no content list")
    need(result.get("isError", False) is False, f"isError is {result.get('isError')!r}")


def encoded(data: Any, what: str) -> None:
    need(isinstance(data, str) and data, f"{what} has no data")
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        fail(f"{what} is not base64: {error}")


def binary_block(ctx: Context, kind: str) -> None:
    if kind == "audio" and ctx.revision < revisions.B:
        raise NotApplicable("audio came with 2025-03-26")
    blocks = [b for b in called(ctx, kind).get("content", []) if b.get("type") == kind]
    need(blocks, f"no {kind} block in the result")
    for block in blocks:
        encoded(block.get("data"), f"the {kind} block")
        mime = block.get("mimeType")
        need(isinstance(mime, str) and mime.startswith(f"{kind}/"), f"its mimeType is {mime!r}")


cases_of((("T17a", "image"), ("T17b", "audio")), binary_block)


@case("T17c")
def _embedded(ctx: Context) -> None:
    blocks = [b for b in called(ctx, "embedded").get("content", []) if b.get("type") == "resource"]
    need(blocks, "no embedded resource in the result")
    for block in blocks:
        inner = block.get("resource", {})
        need(isinstance(inner.get("uri"), str), "an embedded resource without a uri")
        need(("text" in inner) != ("blob" in inner), "an embedded resource needs text or blob, one")
        if "blob" in inner:
            encoded(inner["blob"], "the embedded blob")


@case("T17d")
def _mixed(ctx: Context) -> None:
    content = called(ctx, "mixed").get("content", [])
    need(len(content) > 1, f"{len(content)} blocks where several were expected")
    for block in content:
        need(isinstance(block, dict) and isinstance(block.get("type"), str), f"a block {block!r}")
