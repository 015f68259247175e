"""Defects in tools, prompts, completion and logging."""

from __future__ import annotations

from typing import Any

from conformance.broken.defects.helpers import (
    code,
    failure,
    in_result,
    method,
    params,
    success,
    tool,
)
from conformance.broken.defects.registry import on_message, on_notification, on_reply, quirk
from conformance.revisions import LOG_LEVEL, D, E

# -- calling tools --------------------------------------------------------------------------------


@on_reply("unknown-tools-succeed", "T08a", "an unknown tool succeeds")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return (
        success(reply, content=[])
        if str(tool(request)).startswith("mcp-conform-no-such")
        else reply
    )


@on_reply("unknown-tools-fail-softly", "T08b", "an unknown tool gives a result with isError")
def _(connection: Any, request: Any, reply: Any) -> Any:
    soft = str(tool(request)).startswith("mcp-conform-no-such")
    return success(reply, content=[], isError=True) if soft else reply


quirk("loose-names", "T08c", "tool names are not case-sensitive")
quirk("loose-arguments", "T09a T09b", "arguments are not checked")


@on_reply("hard-arguments", "T09c", "wrong arguments are a protocol error in every revision")
def _(connection: Any, request: Any, reply: Any) -> Any:
    soft = tool(request) == "echo" and reply.get("result", {}).get("isError")
    return failure(reply, -32602, "arguments: text") if soft else reply


@on_reply("field-not-named", "T09d", "the error does not name the invalid argument")
def _(connection: Any, request: Any, reply: Any) -> Any:
    soft = tool(request) == "echo" and reply.get("result", {}).get("isError")
    content = [{"type": "string", "value": "wrong"}]
    return success(reply, content=content, isError=True) if soft else reply


@on_message("arguments-required", "T10a", "a call without arguments is refused")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "tools/call":
        params(message).setdefault("arguments", None)
    return message


@on_reply("any-arguments", "T10b T10c", "arguments that are not an object are ignored")
def _(connection: Any, request: Any, reply: Any) -> Any:
    odd = not isinstance(params(request).get("arguments", {}), dict)
    return success(reply, content=[]) if method(request) == "tools/call" and odd else reply


@on_message("any-name", "T10d T10e", "a call without a name calls something")
def _(connection: Any, message: Any) -> Any:
    found = params(message)
    if method(message) == "tools/call" and not isinstance(found.get("name"), str):
        found["name"] = "tally"
    return message


@on_reply("internal-errors", "T10f T10g", "malformed calls get an internal error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "tools/call" and code(reply) else reply


@on_reply("tasks-refused", "T11a", "a task parameter is refused", D)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32602) if "task" in params(request) else reply


@on_reply("closed-params", "T11b", "unknown parameters of a call are refused")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32602) if "conformExtra" in params(request) else reply


@on_reply("failures-are-errors", "T12a", "a tool's failure is a protocol error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if tool(request) == "fail" else reply


@on_reply("failure-spoils-the-rest", "T12b", "after one failure all calls fail")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if tool(request) == "fail":
        connection.server.remembered = "failed"
    if tool(request) == "echo" and connection.server.remembered:
        return success(reply, content=[], isError=True)
    return reply


def block(name: str, cases: str, about: str, which: str, change: Any) -> None:
    """A defect in the last content block of a tool result."""
    on_reply(name, cases, about)(in_result(f"!{which}", lambda r: change(r["content"][-1])))


block(
    "not-base64",
    "T17a",
    "images are not base64",
    "test_image_content",
    lambda b: b.update(data="*"),
)
block(
    "sound-as-text",
    "T17b",
    "audio has a text type",
    "test_audio_content",
    lambda b: b.update(mimeType="text/plain"),
)
block(
    "embedded-without-uri",
    "T17c",
    "embedded resources have no uri",
    "test_embedded_resource",
    lambda b: b["resource"].pop("uri"),
)
block(
    "block-without-type",
    "T17d",
    "a block has no type",
    "test_multiple_content_types",
    lambda b: b.pop("type"),
)
on_reply("content-not-a-list", "T16", "content is an object")(
    in_result("!echo", lambda r: r.update(content={"text": "x"}))
)
on_reply("breaks-its-schema", "T05", "structured content breaks the output schema")(
    in_result("!structured", lambda r: r.update(structuredContent={"n": "seven"}))
)
on_reply("no-mirror", "T06", "structured content is not repeated as text")(
    in_result("!structured", lambda r: r.update(content=[{"type": "text", "text": "see above"}]))
)
on_reply("wordless-failure", "T07", "a failed tool returns no text")(
    in_result("!fail", lambda r: r.update(content=[]))
)


@on_notification(
    "never-tells",
    "T23a U02d U04 U12",
    "changes of lists are not notified",
)
def _(connection: Any, note: Any) -> Any:
    return None if note["method"].endswith("list_changed") else note


# -- prompts and completion -----------------------------------------------------------------------


@on_reply("prompts-broken", "P01a", "prompts/list fails")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "prompts/list" else reply


@on_reply("prompts-never-fail", "P01b P01d P01e P03a P03b", "every prompt succeeds")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return (
        success(reply, messages=[]) if method(request) == "prompts/get" and code(reply) else reply
    )


@on_reply("odd-prompt-code", "P01c", "an unknown prompt gets another code")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32000) if method(request) == "prompts/get" and code(reply) else reply


def in_messages(name: str, cases: str, about: str, which: str, change: Any) -> None:
    def hook(connection: Any, request: Any, reply: Any) -> Any:
        if method(request) == "prompts/get" and which in str(params(request).get("name")):
            for message in reply.get("result", {}).get("messages", []):
                change(message)
        return reply

    on_reply(name, cases, about)(hook)


in_messages(
    "system-role",
    "P02a",
    "a message has the role system",
    "simple",
    lambda m: m.update(role="system"),
)
in_messages(
    "arguments-ignored",
    "P02b",
    "arguments of prompts are ignored",
    "with_arguments",
    lambda m: m["content"].update(text="hello"),
)
in_messages(
    "prompt-resource-without-uri",
    "P02c",
    "a resource in a prompt has no uri",
    "embedded",
    lambda m: m["content"].update(resource={"text": "x"}),
)
in_messages(
    "prompt-image-broken",
    "P02d",
    "an image in a prompt is not base64",
    "image",
    lambda m: m["content"].update(data="?"),
)


def completing(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about)(
        in_result("completion/complete", lambda r: change(r["completion"]))
    )


completing(
    "too-many-values", "C01a", "101 values", lambda c: c.update(values=["x"] * 101, total=101)
)
completing("odd-total", "C01b", "the total is less than the values", lambda c: c.update(total=1))


@on_reply("completion-not-served", "C01c", "completions are declared but not served")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32601) if method(request) == "completion/complete" else reply


@on_reply("completes-anything", "C02a C03a C03b C03c", "every completion succeeds")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "completion/complete" and code(reply):
        return success(reply, completion={"values": []})
    return reply


@on_reply("context-refused", "C02b", "a completion with a context is refused")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32602) if "context" in params(request) else reply


# -- logging --------------------------------------------------------------------------------------


@on_reply("fewer-levels", "G01a", "a level of the specification is rejected")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32602) if params(request).get("level") == "notice" else reply


@on_reply("any-level", "G01b G01c G01d", "every level is accepted")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return success(reply) if method(request) == "logging/setLevel" else reply


quirk("logs-always", "G01e", "levels are ignored")
quirk(
    "logs-unasked", "G03a", "log messages are sent without a request", revision=E, logs_always=True
)


@on_notification("never-logs", "G01f", "log messages are never sent")
def _(connection: Any, note: Any) -> Any:
    return None if note["method"] == "notifications/message" else note


@on_notification("never-logs-modern", "G03b", "log messages are never sent", E)
def _(connection: Any, note: Any) -> Any:
    return None if note["method"] == "notifications/message" else note


quirk("one-level", "G01g", "one level for all connections")
quirk("logs-late", "G03c", "log messages come after the response", revision=E)
quirk("remembers-level", "G03d", "the log level of a request applies to the next", revision=E)


@on_message("any-request-level", "G04", "an unknown log level is ignored")
def _(connection: Any, message: Any) -> Any:
    meta = params(message).get("_meta")
    if isinstance(meta, dict) and meta.get(LOG_LEVEL) == "verbose":
        del meta[LOG_LEVEL]
    return message


on_reply("logs-undeclared", "G02", "log messages without the capability")(
    in_result("initialize", lambda r: r["capabilities"].pop("logging"))
)
on_reply("changes-undeclared", "T23b", "changes are notified without listChanged")(
    in_result("initialize", lambda r: r["capabilities"].update(tools={}))
)


@on_reply("prompts-need-arguments", "P02e", "a prompt without the member arguments is refused")
def _(connection: Any, request: Any, reply: Any) -> Any:
    absent = method(request) == "prompts/get" and "arguments" not in params(request)
    return failure(reply, -32602) if absent else reply
