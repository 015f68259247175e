"""Defects that sit in one place only: the second prompt, one method, one level, one member.

Most break a member that `message_shapes.py` does not look at, and that the official schemas do.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from typing import Any

from conformance import revisions
from conformance.broken.defects.helpers import (
    code,
    in_notification,
    in_result,
    meta,
    method,
    params,
    success,
    tool,
)
from conformance.broken.defects.registry import on_message, on_notification, on_reply, quirk

B, C, D, E = revisions.B, revisions.C, revisions.D, revisions.E
Change = Callable[[dict[str, Any]], Any]


def first(member: str, **change: Any) -> Change:
    """Change the first item of a list in a result."""
    return lambda result: result[member][0].update(change)


# -- members that only the official schemas know --------------------------------------------------

for name, where, about, change, revision in (
    ("tool-title-number", "tools/list", "a tool's title is a number", first("tools", title=5), D),
    (
        "tool-hint-title",
        "tools/list",
        "the title in annotations is a number",
        first("tools", annotations={"title": 5}),
        D,
    ),
    (
        "tool-description-list",
        "tools/list",
        "a tool's description is a list",
        first("tools", description=["a"]),
        B,
    ),
    (
        "tool-required-text",
        "tools/list",
        "required of an input schema is a string",
        lambda r: r["tools"][0]["inputSchema"].update(required="text"),
        D,
    ),
    (
        "tool-icon-without-src",
        "tools/list",
        "an icon has no src",
        first("tools", icons=[{"mimeType": "image/png"}]),
        D,
    ),
    (
        "tool-icon-sizes-text",
        "tools/list",
        "the sizes of an icon are a string",
        first("tools", icons=[{"src": "https://example.com/i.png", "sizes": "48x48"}]),
        D,
    ),
    (
        "resource-mime-number",
        "resources/list",
        "a mimeType is a number",
        first("resources", mimeType=5),
        C,
    ),
    (
        "resource-size-text",
        "resources/list",
        "the size of a resource is a string",
        first("resources", size="12"),
        C,
    ),
    (
        "resource-audience-robot",
        "resources/list",
        "a resource is for the audience robot",
        first("resources", annotations={"audience": ["robot"]}),
        B,
    ),
    (
        "resource-priority-seven",
        "resources/list",
        "a priority is 7",
        first("resources", annotations={"priority": 7}),
        D,
    ),
    (
        "resource-modified-number",
        "resources/list",
        "lastModified is a number",
        first("resources", annotations={"lastModified": 20261116}),
        D,
    ),
    (
        "template-without-name",
        "resources/templates/list",
        "a template has no name",
        lambda r: r["resourceTemplates"][0].pop("name"),
        D,
    ),
    (
        "prompt-description-number",
        "prompts/list",
        "a prompt's description is a number",
        first("prompts", description=5),
        D,
    ),
    (
        "prompt-required-text",
        "prompts/list",
        "required of an argument is the string yes",
        lambda r: [a.update(required="yes") for p in r["prompts"] for a in p.get("arguments", [])],
        D,
    ),
    (
        "prompt-result-description",
        "prompts/get",
        "the description of a rendered prompt is a list",
        lambda r: r.update(description=["x"]),
        D,
    ),
    (
        "handshake-instructions-number",
        "initialize",
        "the instructions are a number",
        lambda r: r.update(instructions=5),
        D,
    ),
    (
        "flag-as-text",
        "initialize",
        "listChanged is the string true",
        lambda r: r["capabilities"]["tools"].update(listChanged="true"),
        D,
    ),
    (
        "website-number",
        "initialize",
        "the website of the server is a number",
        lambda r: r["serverInfo"].update(websiteUrl=5),
        D,
    ),
    (
        "completion-total-text",
        "completion/complete",
        "the total of a completion is a string",
        lambda r: r["completion"].update(total="many"),
        D,
    ),
    (
        "completion-more-text",
        "completion/complete",
        "hasMore is the string no",
        lambda r: r["completion"].update(hasMore="no"),
        D,
    ),
    (
        "contents-mime-number",
        "resources/read",
        "the mimeType of contents is a number",
        lambda r: [c.update(mimeType=5) for c in r["contents"]],
        D,
    ),
    (
        "block-audience-robot",
        "!test_simple_text",
        "a content block is for the audience robot",
        lambda r: r["content"][0].update(annotations={"audience": ["robot"]}),
        D,
    ),
    (
        "link-without-name",
        "!test_simple_text",
        "a resource link has no name",
        lambda r: r["content"].append({"type": "resource_link", "uri": "test://x"}),
        D,
    ),
    (
        "discover-instructions-list",
        "server/discover",
        "the instructions of discover are a list",
        lambda r: r.update(instructions=["x"]),
        E,
    ),
    (
        "discover-extension-text",
        "server/discover",
        "the settings of an extension are a string",
        lambda r: r["capabilities"].update(extensions={"example.com/x": "on"}),
        E,
    ),
):
    on_reply(name, "Z11a", about, revision=revision)(in_result(where, change))

for name, where, about, change in (
    (
        "progress-total-text",
        "notifications/progress",
        "the total of progress is a string",
        lambda p: p.update(total="10"),
    ),
    (
        "logger-number",
        "notifications/message",
        "the logger of a message is a number",
        lambda p: p.update(logger=5),
    ),
    (
        "changed-meta-list",
        "notifications/tools/list_changed",
        "the _meta of a notification is a list",
        lambda p: p.update(_meta=[1]),
    ),
):
    on_notification(name, "Z11b", about, revision=D)(in_notification(where, change))

for name, where, about, change in (
    (
        "sampling-limit-missing",
        "sampling/createMessage",
        "a sampling request has no maxTokens",
        lambda p: p.pop("maxTokens", None),
    ),
    (
        "sampling-by-the-system",
        "sampling/createMessage",
        "a sampled message has the role system",
        lambda p: p["messages"][0].update(role="system"),
    ),
    (
        "elicitation-of-a-list",
        "elicitation/create",
        "the requested schema is of type array",
        lambda p: p.update(requestedSchema={"type": "array", "properties": {}}),
    ),
):
    on_notification(name, "Z11c", about, revision=D)(in_notification(where, change))


@on_reply("error-without-message", "Z11d J05", "errors have no message", revision=D)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if "error" in reply:
        reply["error"].pop("message", None)
    return reply


@on_reply("question-without-schema", "Z11e", "an elicitation has no schema", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    reply = copy.deepcopy(reply)
    result = reply.get("result")
    asked = result.get("inputRequests") if isinstance(result, dict) else None
    for question in asked.values() if isinstance(asked, dict) else ():
        question.get("params", {}).pop("requestedSchema", None)
    return reply


on_notification("elicitation-by-url", "I08", "a url is sent to a client of forms", revision=D)(
    in_notification(
        "elicitation/create",
        lambda p: p.update(mode="url", url="https://example.com", elicitationId="1"),
    )
)
on_notification(
    "sampling-with-tools", "I09", "tools are sent to a client without them", revision=D
)(
    in_notification(
        "sampling/createMessage",
        lambda p: p.update(tools=[{"name": "x", "inputSchema": {"type": "object"}}]),
    )
)


# -- one place of many ----------------------------------------------------------------------------

on_reply(
    "one-unstructured-tool", "T05b", "one tool with a schema returns no structure", revision=D
)(in_result("!structured", lambda r: r.pop("structuredContent")))
on_reply("structure-of-text", "T05b T05", "a structured integer is a string", revision=E)(
    in_result("!structured", lambda r: r["structuredContent"].update(n="7"))
)


@on_reply("second-argument-optional", "P01d", "only the first required argument is checked")
def _(connection: Any, request: Any, reply: Any) -> Any:
    given = params(request).get("arguments")
    if method(request) == "prompts/get" and isinstance(given, dict) and "arg1" in given:
        block = {"type": "text", "text": "half"}
        return success(reply, messages=[{"role": "user", "content": block}])
    return reply


@on_reply("long-second-completion", "C01a", "the second argument has 150 completions")
def _(connection: Any, request: Any, reply: Any) -> Any:
    argument = params(request).get("argument")
    name = argument.get("name") if isinstance(argument, dict) else None
    if method(request) == "completion/complete" and name == "arg2" and "result" in reply:
        return success(reply, completion={"values": [str(n) for n in range(150)]})
    return reply


on_reply("last-blob-damaged", "R02c", "the last resource has a damaged blob")(
    in_result(
        "resources/read",
        lambda r: [
            c.update(blob="%%%") and c.pop("text", None)
            for c in r["contents"]
            if c["uri"].endswith("watched-resource")
        ],
    )
)


@on_reply("one-method-any-version", "V06f", "prompts/get does not check the version", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "prompts/get" and code(reply) == -32022:
        return {**reply, "error": {"code": -32602, "message": "no such prompt"}}
    return reply


@on_message("one-method-any-meta", "V03f", "resources/list needs no capabilities", revision=E)
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, dict) and method(message) == "resources/list" and meta(message):
        meta(message).setdefault(revisions.CLIENT_CAPABILITIES, {})
    return message


@on_message("one-method-no-version", "V03f V03c", "tools/list needs no version", revision=E)
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, dict) and method(message) == "tools/list" and meta(message):
        meta(message).setdefault(revisions.PROTOCOL_VERSION, E)
    return message


def _announces(name: str, cases: str, about: str, note: str, **body: Any) -> None:
    """Every list is followed by a notification that was not declared."""

    def hook(connection: Any, request: Any, reply: Any) -> Any:
        if method(request) == "initialize" and "result" in reply:
            for capability in ("prompts", "resources"):
                reply["result"]["capabilities"][capability] = {}
        if method(request) == "tools/list":
            connection.notify(note, dict(body))
        return reply

    on_reply(name, cases, about, revision=D)(hook)


_announces(
    "prompts-undeclared",
    "P04",
    "changed prompts are announced without listChanged",
    "notifications/prompts/list_changed",
)
_announces(
    "resources-undeclared",
    "R12a",
    "changed resources are announced without listChanged",
    "notifications/resources/list_changed",
)
_announces(
    "updates-undeclared",
    "R12b",
    "updates are announced without subscribe",
    "notifications/resources/updated",
    uri="test://static-text",
)


@on_reply("logs-with-prompts", "G05", "prompts/get logs unasked", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "prompts/get":
        connection.notify("notifications/message", {"level": "info", "data": "a prompt"})
    return reply


@on_message("warning-means-notice", "G01h", "the level warning is taken for notice", revision=D)
def _(connection: Any, message: Any) -> Any:
    asked = isinstance(message, dict) and method(message) == "logging/setLevel"
    if asked and params(message).get("level") == "critical":
        params(message)["level"] = "debug"
    return message


@on_reply("progress-comes-late", "O08", "progress is sent after the response", revision=D)
def _(connection: Any, request: Any, reply: Any) -> Any:
    token = meta(request).get("progressToken")
    if tool(request) is not None and token is not None:
        note = {"progressToken": token, "progress": 1000}
        threading.Timer(0.05, connection.notify, ["notifications/progress", note]).start()
    return reply


@on_reply("nul-ends-the-server", "R04c", "a NUL in a uri ends the connection", revision=D)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "resources/read" and "\0" in str(params(request).get("uri")):
        return None
    return reply


for http_name, cases, about, since in (
    ("http-origin-prefix", "H02e", "an origin that starts with localhost is accepted", None),
    ("http-origin-https", "H02e", "any https origin is accepted", None),
    ("http-host-prefix", "H04", "a host that starts with localhost is accepted", None),
    ("http-no-challenge", "H41a", "a 401 carries no challenge", D),
    ("http-no-metadata", "H41b", "the protected resource metadata is missing", D),
    ("http-no-auth-servers", "H41c", "the metadata names no authorization server", D),
    ("http-other-resource", "H41d", "the metadata names another server", D),
    ("http-any-audience", "H41e", "a token for another server is accepted", D),
    ("http-unsigned", "H41f", "unsigned tokens are accepted", D),
    ("http-invisible-handle", "S01", "session ids contain a space", D),
):
    quirk(http_name, cases, about, revision=since)
