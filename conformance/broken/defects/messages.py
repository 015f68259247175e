"""Defects in JSON-RPC: ids, message shapes, errors, notifications, batches."""

from __future__ import annotations

import re
from typing import Any

from conformance.broken.defects.helpers import code, failure, meta, method, success, tool
from conformance.broken.defects.registry import Defect, add, on_line, on_message, on_reply, quirk
from conformance.revisions import D, E

# -- ids ------------------------------------------------------------------------------------------


@on_reply("ids-as-text", "J02a J02b", "numeric ids are returned as strings")
def _(connection: Any, request: Any, reply: Any) -> Any:
    small = isinstance(reply.get("id"), int) and reply["id"] < 1
    return {**reply, "id": str(reply["id"])} if small else reply


@on_reply("ids-as-doubles", "J02c J02d", "numeric ids are converted to a double")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return {**reply, "id": int(float(reply["id"]))} if isinstance(reply.get("id"), int) else reply


@on_reply("empty-id-lost", "J02e", "an empty id is treated as absent")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return {**reply, "id": reply.get("id") or None} if reply.get("id") == "" else reply


@on_message("ids-that-look-like-numbers", "J02f J03", "string ids of digits become numbers")
def _(connection: Any, message: Any) -> Any:
    id = message.get("id") if isinstance(message, dict) else None
    return {**message, "id": int(id)} if isinstance(id, str) and id.isdigit() else message


@on_reply("ids-in-ascii", "J02g F07b F09a F09b", "ids lose non-ASCII characters")
def _(connection: Any, request: Any, reply: Any) -> Any:
    id = reply.get("id")
    return {**reply, "id": id.encode("ascii", "replace").decode()} if isinstance(id, str) else reply


@on_reply("short-ids", "J02h", "ids are cut to 255 characters")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return {**reply, "id": reply["id"][:255]} if isinstance(reply.get("id"), str) else reply


@on_message("whole-ids-only", "J13", "an id written 77.0 is dropped")
def _(connection: Any, message: Any) -> Any:
    whole = isinstance(message, dict) and isinstance(message.get("id"), float)
    return None if whole else message


@on_message("ids-once-only", "J32", "a finished id cannot be reused")
def _(connection: Any, message: Any) -> Any:
    id = message.get("id") if isinstance(message, dict) else None
    if isinstance(id, str) and id in connection.watched:
        return None
    if isinstance(id, str):
        connection.watched.add(id)
    return message


@on_reply("errors-lose-ids", "J33 J09d", "errors carry no id")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return {**reply, "id": None} if "error" in reply else reply


# -- broken JSON and broken shapes ----------------------------------------------------------------


@on_reply(
    "silent-on-broken-json",
    "J06 J07a F15a F17 F22z",
    "lines that are not JSON are dropped silently",
)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return None if code(reply) == -32700 else reply


@on_line("first-object-counts", "J07b J07c", "text after the first object is ignored")
def _(connection: Any, line: bytes) -> Any:
    end = re.search(rb"\}( trailing| \{)", line)
    return line[: end.start() + 1] if end else line


@on_reply(
    "silent-on-invalid-requests",
    "J08a J08b J10a J10b J10d J11 J12a J12b J12c J12d J17 B04 B05 B07a B07b B11 B11b B13 F12a",
    "invalid requests are dropped silently",
)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return None if code(reply) == -32600 else reply


@on_reply("array-silence", "B12", "a modern array is dropped silently", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return None if code(reply) == -32600 else reply


@on_message("any-jsonrpc", "J09a J09b J09c", "the jsonrpc member is not checked")
def _(connection: Any, message: Any) -> Any:
    return {**message, "jsonrpc": "2.0"} if isinstance(message, dict) else message


@on_message("empty-method-means-ping", "J10c", "an empty method is treated as ping")
def _(connection: Any, message: Any) -> Any:
    empty = isinstance(message, dict) and message.get("method") == ""
    return {**message, "method": "ping"} if empty else message


@on_message("any-params", "J14a J14b", "params that are not an object are ignored")
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, dict) and not isinstance(message.get("params"), dict | None):
        return {name: value for name, value in message.items() if name != "params"}
    return message


@on_message("null-params-dropped", "J15", "a request whose params are null is dropped")
def _(connection: Any, message: Any) -> Any:
    null = isinstance(message, dict) and "params" in message and message["params"] is None
    return None if null else message


@on_message("closed-envelope", "J16", "unknown members beside params are refused")
def _(connection: Any, message: Any) -> Any:
    known = {"jsonrpc", "id", "method", "params", "result", "error"}
    odd = isinstance(message, dict) and set(message) - known
    return {**message, "jsonrpc": "?"} if odd else message


@on_reply(
    "unknown-methods-succeed",
    "J18 J19a J19b J19c J20 L16 L16b V23a V23b V23c V23d R08a R08b V13b F01a",
    "an unknown method gets an empty result",
)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return success(reply) if code(reply) == -32601 else reply


# -- notifications and stray responses ------------------------------------------------------------


@on_message(
    "answers-notifications",
    "J21a J21b J21c J21d J22 L11a L11b V23e X04a X04b X04c X04d",
    "notifications are answered",
)
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, dict) and "method" in message and "id" not in message:
        connection.write({"jsonrpc": "2.0", "id": None, "result": {}})
    return message


@on_message("answers-responses", "J23a J23b J24", "responses are answered")
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, dict) and "method" not in message and "id" in message:
        connection.write(failure(message, -32600))
        return None
    return message


# -- failing handlers, duplicates -----------------------------------------------------------------


@on_reply("crashes-succeed", "J25a", "a crashed tool reports success")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return success(reply, content=[]) if tool(request) == "crash" else reply


@on_reply("tracebacks", "J25b", "a crashed tool shows its traceback")
def _(connection: Any, request: Any, reply: Any) -> Any:
    text = 'Traceback (most recent call last): File "/srv/app.py", line 3'
    return failure(reply, -32603, text) if tool(request) == "crash" else reply


@on_reply("duplicates-answered", "J27a J27b", "a duplicate id in flight gets two responses")
def _(connection: Any, request: Any, reply: Any) -> Any:
    data = reply.get("error", {}).get("data")
    return {**reply, "id": data["duplicateId"]} if data and "duplicateId" in data else reply


@on_line("coin-toss", "J28", "of duplicate members sometimes the first wins, sometimes the last")
def _(connection: Any, line: bytes) -> Any:
    if b'"method":"no/such"' in line:
        connection.server.calls += 1
        if connection.server.calls % 2:
            return line.replace(b'"method":"ping"', b'"other":0')
    return line


quirk("same-request-id", "J29", "every request of the server has the same id")

# -- defects that scans detect --------------------------------------------------------------------


@on_reply("no-jsonrpc", "J01", "results lack the jsonrpc member")
def _(connection: Any, request: Any, reply: Any) -> Any:
    bare = {name: value for name, value in reply.items() if name != "jsonrpc"}
    return bare if tool(request) == "echo" else reply


@on_reply("result-and-error", "J04", "a response has both a result and an error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    both = {**reply, "error": {"code": 0, "message": "none"}}
    return both if tool(request) == "echo" else reply


@on_reply("codes-as-words", "J05", "error codes are strings")
def _(connection: Any, request: Any, reply: Any) -> Any:
    words = {"code": "not found", "message": "no"}
    return {**reply, "error": words} if code(reply) == -32601 else reply


@on_reply("long-winded-errors", "J05b", "error messages have several lines")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32601, "one\ntwo") if code(reply) == -32601 else reply


@on_reply("invented-codes", "J26a", "errors use a reserved code", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32050) if code(reply) == -32601 else reply


@on_reply(
    "retired-codes", "J26b R03c", "a missing resource gets -32002 in every revision", revision=E
)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32002) if method(request) == "resources/read" and code(reply) else reply


@on_reply("old-codes", "J26c", "an unknown tool gets a code of the old range", revision=E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32001) if tool(request) == "no-such-tool" else reply


@on_reply("answers-twice", "J31", "a call is answered twice")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return [reply, reply] if tool(request) == "echo" else reply


# -- batches --------------------------------------------------------------------------------------


@on_message("drops-batches", "B01 B06 B09 B10 B14 B16", "arrays are dropped silently")
def _(connection: Any, message: Any) -> Any:
    return None if isinstance(message, list) else message


@on_message("answers-batched-notifications", "B02 B03", "notifications in a batch are answered")
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, list):
        return [{"id": "?", **e} if isinstance(e, dict) and "method" in e else e for e in message]
    return message


def _unwrap(connection: Any, message: Any) -> Any:
    alone = isinstance(message, list) and len(message) == 1 and isinstance(message[0], dict)
    return message[0] if alone and message[0].get("method") == "initialize" else message


add(
    Defect(
        "initialize-in-a-batch",
        ("B07a", "B07b"),
        "initialize inside a batch is served",
        message=_unwrap,
        quirks={"renegotiates": True},
    )
)


@on_message("arrays-anywhere", "B11 B13", "arrays are processed in every revision", revision=D)
def _(connection: Any, message: Any) -> Any:
    if isinstance(message, list):
        for element in message:
            served = "ping" if not meta(element) else method(element)
            connection.write({"jsonrpc": "2.0", "id": element.get("id"), "result": {"was": served}})
        return None
    return message
