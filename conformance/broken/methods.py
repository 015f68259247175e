"""The methods of the reference server, one table for each era."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from conformance.broken import fixtures, skills, tasks, tools
from conformance.broken.errors import INFO, RpcError
from conformance.client.frames import key
from conformance.revisions import ALL, LEVELS, SUBSCRIPTION_ID, B, C, D, E
from conformance.revisions import LEGACY as LEGACY_DATES

if TYPE_CHECKING:
    from conformance.broken.reference import Call

Method = Callable[["Call"], None]


def subscription(id: Any) -> dict[str, Any]:
    return {SUBSCRIPTION_ID: id}


def capabilities(revision: str) -> dict[str, Any]:
    offered: dict[str, Any] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
        "logging": {},
    }
    if revision >= B:
        offered["completions"] = {}
    if revision >= E:
        offered["extensions"] = {tasks.EXTENSION: {}, skills.EXTENSION: {}}
    return offered


def initialize(call: Call) -> None:
    version = call.params.get("protocolVersion")
    connection = call.connection
    if call.modern:
        raise RpcError(-32601, "no such method")
    if connection.revision is not None and not connection.quirk("renegotiates"):
        raise RpcError(-32600, "already initialised")
    if not isinstance(version, str):
        raise RpcError(-32602, "protocolVersion is not a string")
    for member in ("capabilities", "clientInfo"):
        if not isinstance(call.params.get(member), dict):
            raise RpcError(-32602, f"{member} is not an object")
    agreed = version if version in LEGACY_DATES else D
    if connection.quirk("one_state"):
        agreed = connection.server.remembered = connection.server.remembered or agreed
    connection.revision = call.revision = agreed
    connection.capabilities = call.params["capabilities"]
    info: dict[str, Any] = dict(INFO)
    if agreed >= C:
        info["title"] = "The reference server"
    if agreed >= D:
        info["description"] = "Correct until told otherwise"
    call.answer(
        {
            "result": {
                "protocolVersion": agreed,
                "capabilities": capabilities(agreed),
                "serverInfo": info,
                "instructions": "Break me.",
            }
        }
    )


def ping(call: Call) -> None:
    call.answer({"result": {}})


def cached(call: Call, result: dict[str, Any]) -> dict[str, Any]:
    if not call.modern:
        return result
    return {**result, "ttlMs": 60_000, "cacheScope": "private"}


def discover(call: Call) -> None:
    offered = capabilities(call.revision)
    result = {"supportedVersions": [*reversed(ALL)], "capabilities": offered}
    call.answer({"result": cached(call, {**result, "instructions": "Break me."})})


def paged(
    member: str, size: int, items: Callable[[str], list[dict[str, Any]]]
) -> Callable[[Call], None]:
    """A list method with pages of `size` items."""

    def method(call: Call) -> None:
        cursor = call.params.get("cursor")
        start = 0
        if "cursor" in call.params:
            if not isinstance(cursor, str):
                raise RpcError(-32602, "cursor is not a string")
            name, _, place = cursor.partition("@")
            if name != member or not place.isdigit():
                raise RpcError(-32602, "no such cursor")
            start = int(place)
        everything = items(call.revision)
        result: dict[str, Any] = {member: everything[start : start + size]}
        if start + size < len(everything):
            result["nextCursor"] = f"{member}@{start + size}"
        call.answer({"result": cached(call, result)})

    return method


def _string(call: Call, name: str) -> str:
    value = call.params.get(name)
    if not isinstance(value, str):
        raise RpcError(-32602, f"{name} is not a string")
    return value


def read(call: Call) -> None:
    uri = _string(call, "uri")
    contents = fixtures.read(uri)
    if contents is None and uri in skills.FILES:
        contents = {"uri": uri, "mimeType": "text/plain", "text": skills.FILES[uri]}
    if contents is None and call.connection.quirk("reads_files"):
        path = Path("/", *Path(unquote(uri.partition("://")[2])).parts).resolve()
        if path.is_file():
            contents = {"uri": uri, "text": path.read_text()}
    if contents is None:
        raise RpcError(-32602 if call.modern else -32002, "no such resource", {"uri": uri})
    call.answer({"result": cached(call, {"contents": [contents]})})


def subscribe(call: Call) -> None:
    uri = _string(call, "uri")
    if fixtures.read(uri) is None:
        raise RpcError(-32002, "no such resource", {"uri": uri})
    call.connection.watched.add(uri)
    call.answer({"result": {}})


def unsubscribe(call: Call) -> None:
    call.connection.watched.discard(_string(call, "uri"))
    call.answer({"result": {}})


def prompt(call: Call) -> None:
    name = _string(call, "name")
    if name not in fixtures.PROMPTS:
        raise RpcError(-32602, "no such prompt")
    arguments = call.params.get("arguments", {})
    for argument in fixtures.PROMPTS[name]:
        if not isinstance(arguments, dict) or not isinstance(arguments.get(argument), str):
            raise RpcError(-32602, f"argument {argument} is not a string")
    call.answer({"result": {"messages": fixtures.messages(name, arguments)}})


def complete(call: Call) -> None:
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or ref.get("type") not in ("ref/prompt", "ref/resource"):
        raise RpcError(-32602, "ref is no reference")
    if not isinstance(argument, dict) or not isinstance(argument.get("value"), str):
        raise RpcError(-32602, "argument has no value")
    if ref["type"] == "ref/prompt" and ref.get("name") not in fixtures.PROMPTS:
        raise RpcError(-32602, "no such prompt")
    words = [w for w in ("paris", "park", "party") if w.startswith(argument["value"])]
    found = {"values": words, "total": len(words), "hasMore": False}
    call.answer({"result": {"completion": found}})


def set_level(call: Call) -> None:
    level = call.params.get("level")
    if level not in LEVELS:
        raise RpcError(-32602, "no such level")
    target = call.connection
    if target.quirk("one_level"):
        for connection in target.server.connections:
            connection.log_level = level
    target.log_level = level
    call.answer({"result": {}})


FILTER = {
    "toolsListChanged": bool,
    "promptsListChanged": bool,
    "resourcesListChanged": bool,
    "resourceSubscriptions": list,
    "taskIds": list,
}


def listen(call: Call) -> None:
    wanted = call.params.get("notifications")
    if not isinstance(wanted, dict):
        raise RpcError(-32602, "notifications is not an object")
    for name, kind in FILTER.items():
        if name in wanted and not isinstance(wanted[name], kind):
            raise RpcError(-32602, f"notifications.{name} has the wrong type")
    if "taskIds" in wanted:
        tasks.require(call, "tasks_listen_for_anybody")
    honoured = {name: value for name, value in wanted.items() if name in FILTER and value}
    connection, id = call.connection, call.request["id"]
    with connection.lock:
        connection.in_flight.pop(key(id), None)
        connection.listens[key(id)] = (id, honoured)
    params = {"_meta": subscription(id), "notifications": honoured}
    connection.notify("notifications/subscriptions/acknowledged", params)


SHARED: dict[str, Method] = {
    "tools/list": paged("tools", 20, fixtures.tools),
    "tools/call": tools.call_tool,
    "resources/list": paged("resources", 2, fixtures.resources),
    "resources/templates/list": paged("resourceTemplates", 2, fixtures.templates),
    "resources/read": read,
    "prompts/list": paged("prompts", 3, fixtures.prompts),
    "prompts/get": prompt,
    "completion/complete": complete,
}
LEGACY: dict[str, Method] = {
    **SHARED,
    "initialize": initialize,
    "ping": ping,
    "logging/setLevel": set_level,
    "resources/subscribe": subscribe,
    "resources/unsubscribe": unsubscribe,
}
MODERN: dict[str, Method] = {
    **SHARED,
    **tasks.METHODS,
    **skills.METHODS,
    "server/discover": discover,
    "subscriptions/listen": listen,
}
