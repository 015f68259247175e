"""Defects in lists, resources, pages and cache hints."""

from __future__ import annotations

from typing import Any

from conformance.broken.defects.helpers import code, failure, in_result, method, params, success
from conformance.broken.defects.registry import Defect, add, on_message, on_reply, quirk
from conformance.revisions import A, E

PAGES = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}

# -- the list of tools ----------------------------------------------------------------------------


def listed(name: str, cases: str, about: str, which: str, change: Any) -> None:
    """A defect in the list entry of one tool."""

    def hook(result: dict[str, Any]) -> None:
        for tool in result["tools"]:
            if tool["name"] == which:
                change(tool)

    on_reply(name, cases, about)(in_result("tools/list", hook))


@on_reply("tools-broken", "T01 T01b V02a", "tools/list fails")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "tools/list" else reply


listed("odd-names", "T02a", "a tool has a space in its name", "big", lambda t: t.update(name="a b"))
listed("twin-names", "T02b", "two tools have the same name", "big", lambda t: t.update(name="slow"))
listed(
    "schema-not-object",
    "T03a",
    "an input schema is of type string",
    "big",
    lambda t: t.update(inputSchema={"type": "string"}),
)
listed(
    "schema-invalid",
    "T03b",
    "an input schema has a type that does not exist",
    "big",
    lambda t: t["inputSchema"]["properties"].update(bytes={"type": "number of bytes"}),
)
listed(
    "open-arguments",
    "T03c",
    "a tool without arguments takes any",
    "tally",
    lambda t: t["inputSchema"].pop("additionalProperties"),
)
listed(
    "output-schema-invalid",
    "T04a",
    "an output schema requires a number",
    "structured",
    lambda t: t.get("outputSchema", {}).update(required=[1]),
)
listed(
    "output-schema-not-object",
    "T04b",
    "an output schema is of type array",
    "structured",
    lambda t: t.update(outputSchema={"type": "array"}),
)
listed(
    "hints-as-words",
    "T15",
    "hints are strings",
    "big",
    lambda t: t.update(annotations={"readOnlyHint": "yes"}),
)
listed(
    "keywords-lost",
    "T18",
    "keywords of the schema are lost",
    "json_schema_2020_12_tool",
    lambda t: t.update(inputSchema={"type": "object"}),
)


@on_reply("shuffles", "T13a", "the order of tools changes", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "tools/list" and "cursor" not in params(request):
        connection.server.calls += 1
        if connection.server.calls % 2 and "result" in reply:
            reply["result"]["tools"].reverse()
    return reply


@on_reply("lists-by-connection", "T13b T14b R10", "lists depend on the connection", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if not connection.watched:
        connection.server.calls += 1
        connection.watched.add("odd" if connection.server.calls % 2 else "even")
    if method(request) in PAGES and "odd" in connection.watched and "result" in reply:
        reply["result"][PAGES[method(request)]].reverse()
    return reply


@on_reply("calls-change-lists", "T14a", "every call makes the list of tools shorter", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "tools/call":
        connection.server.calls += 1
    if method(request) == "tools/list" and connection.server.calls and "result" in reply:
        reply["result"]["tools"].pop()
    return reply


# -- resources ------------------------------------------------------------------------------------


@on_reply("resources-broken", "R01", "resources/list fails")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "resources/list" else reply


def reading(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about)(in_result("resources/read", change))


reading("no-contents", "R02a", "a resource has no contents", lambda r: r.pop("contents"))
reading(
    "another-uri",
    "R02b R06b",
    "contents carry another uri and another text",
    lambda r: r.update(contents=[{"uri": "test://another", "text": "?"}]),
)
reading(
    "blob-not-base64",
    "R02c",
    "blobs are not base64",
    lambda r: [c.update(blob="***") for c in r["contents"] if "blob" in c],
)


@on_reply("everything-exists", "R03a R04a R04c R09a R09b R09c", "every uri can be read")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "resources/read" and code(reply):
        return success(reply, contents=[{"uri": "test://x", "text": ""}])
    return reply


quirk("reads-files", "R04b", "a uri that leads out of the resources reads any file")


@on_reply("odd-resource-code", "R03b R09d", "resource errors have a code of their own")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32000) if method(request) == "resources/read" and code(reply) else reply


@on_reply("uri-not-told", "R03d", "the error does not name the missing uri")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "resources/read" and "error" in reply:
        reply["error"].pop("data", None)
    return reply


on_reply("uris-with-spaces", "R05", "a uri has spaces in it")(
    in_result("resources/list", lambda r: r["resources"][0].update(uri="a resource"))
)
on_reply("titles-too-early", "R11", "resources have titles in every revision", A)(
    in_result("resources/list", lambda r: r["resources"][0].update(title="x"))
)
on_reply("templates-missing", "R06a", "the list of templates has another name")(
    in_result("resources/templates/list", lambda r: r.pop("resourceTemplates"))
)


@on_reply("subscribe-broken", "R07a", "subscribing fails")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "resources/subscribe" else reply


@on_reply("subscribes-to-anything", "R07b R07c", "subscribing always succeeds")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return success(reply) if method(request) == "resources/subscribe" else reply


# -- pages ----------------------------------------------------------------------------------------


@on_reply("pages-overlap", "Q01a Q01b Q01c Q01d", "the last item of a page is listed twice")
def _(connection: Any, request: Any, reply: Any) -> Any:
    member = PAGES.get(method(request))
    if member and "result" in reply:
        reply["result"][member].append(reply["result"][member][-1])
    return reply


@on_message(
    "any-cursor", "Q02a Q02b Q02c Q02d Q03 Q03b", "an invented cursor starts at the first page"
)
def _(connection: Any, message: Any) -> Any:
    member = PAGES.get(method(message)) if isinstance(message, dict) else None
    if member and not str(params(message).get("cursor", member)).startswith(f"{member}@"):
        params(message).pop("cursor", None)
    return message


def _give(connection: Any, request: Any, reply: Any) -> Any:
    if "nextCursor" in reply.get("result", {}):
        connection.watched.add(reply["result"]["nextCursor"])
    return reply


def _take(connection: Any, message: Any) -> Any:
    cursor = params(message).get("cursor")
    if cursor is not None and cursor not in connection.watched:
        params(message)["cursor"] = "unknown here"
    return message


add(
    Defect(
        "cursors-by-connection",
        ("Q04",),
        "a cursor is valid on its connection only",
        reply=_give,
        message=_take,
    )
)

# -- hints ----------------------------------------------------------------------------------------


@on_reply("no-hints", "K01a K01b K01c K01d K01e K01f", "results carry no cache hints", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    reply.get("result", {}).pop("ttlMs", None)
    return reply


@on_reply("scope-by-page", "K02", "pages of one list have different scopes", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if "cursor" in params(request) and "result" in reply:
        reply["result"]["cacheScope"] = "public"
    return reply
