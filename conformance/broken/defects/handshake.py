"""Defects in the handshake and in self-describing requests."""

from __future__ import annotations

import threading
from typing import Any

from conformance.broken.defects.helpers import code, failure, in_result, meta, method, params
from conformance.broken.defects.registry import Defect, add, on_message, on_reply, quirk
from conformance.revisions import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    LEGACY,
    LOG_LEVEL,
    PROTOCOL_VERSION,
    A,
    D,
    E,
)

# -- handshake ------------------------------------------------------------------------------------


def opening(name: str, cases: str, about: str, change: Any, revision: str | None = None) -> None:
    on_reply(name, cases, about, revision)(in_result("initialize", change))


opening(
    "no-capabilities", "L01a", "initialize returns no capabilities", lambda r: r.pop("capabilities")
)
opening("no-version", "L01b", "serverInfo has no version", lambda r: r["serverInfo"].pop("version"))
opening(
    "odd-instructions",
    "L14",
    "instructions are a list",
    lambda r: r.update(instructions=["do this"]),
)
opening(
    "icons-too-early",
    "L15",
    "serverInfo has icons in every revision",
    lambda r: r["serverInfo"].update(title="x", icons=[]),
    A,
)


@on_reply("speaks-what-it-does-not", "L02", "the oldest version is answered with a nonexistent one")
def _(connection: Any, request: Any, reply: Any) -> Any:
    result = reply.get("result", {})
    if method(request) == "initialize" and params(request)["protocolVersion"] == A:
        return {**reply, "result": {**result, "protocolVersion": "2024-10-07"}}
    return reply


@on_reply("agrees-to-anything", "L03a L03b L03d", "every version is echoed")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) != "initialize" or "result" not in reply:
        return reply
    version = params(request)["protocolVersion"]
    return {**reply, "result": {**reply["result"], "protocolVersion": version}}


@on_reply("offers-the-oldest", "L03c", "an unknown version is answered with the oldest")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) != "initialize" or params(request)["protocolVersion"] in LEGACY:
        return reply
    return {**reply, "result": {**reply["result"], "protocolVersion": A}}


@on_message("any-version-type", "L04a L04b L04c L04d", "a version of any type is accepted")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "initialize" and not isinstance(
        params(message).get("protocolVersion"), str
    ):
        params(message)["protocolVersion"] = D
    return message


@on_reply("wrong-code-for-initialize", "L04e L05a L05b", "a bad initialize gets an internal error")
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32603) if method(request) == "initialize" and code(reply) else reply


@on_message("closed-capabilities", "L06a L06b", "unknown members of initialize are refused")
def _(connection: Any, message: Any) -> Any:
    found = params(message)
    if method(message) == "initialize":
        unknown = set(found) - {"protocolVersion", "capabilities", "clientInfo"}
        if unknown or "teleport" in found.get("capabilities", {}):
            found["clientInfo"] = None
    return message


quirk("asks-anybody", "L07a I05a I07a", "requests are sent for undeclared capabilities")
quirk("asks-anybody-old", "L07b", "the same, in the oldest revisions", asks_anybody=True)
quirk("asks-anybody-modern", "I02c I02d", "the same, in results", revision=E, asks_anybody=True)

on_reply("ping-talks", "L08a L08b L08c L08d", "the result of ping is not empty")(
    in_result("ping", lambda r: r.update(pong=True))
)
quirk(
    "serves-early",
    "L09 V03a V03b V03c V03e V09",
    "requests are served without a handshake and without _meta",
)


@on_message("waits-for-initialized", "L11c", "nothing is served before initialized")
def _(connection: Any, message: Any) -> Any:
    early = method(message) == "tools/list" and not connection.initialized and not meta(message)
    return None if early else message


@on_reply("talks-early", "L12", "changes are notified before initialized")
def _(connection: Any, request: Any, reply: Any) -> Any:
    change = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    return [reply, change] if method(request) == "initialize" else reply


quirk("renegotiates", "L13a L13b", "a second initialize is served")


def _hold(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) != "initialize":
        return reply

    def late() -> None:
        if f"cancelled {reply['id']}" not in connection.watched:
            connection.write(reply)

    timer = threading.Timer(0.1, late)
    timer.daemon = True
    timer.start()
    return None


def _note_cancel(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        connection.watched.add(f"cancelled {params(message).get('requestId')}")
    return message


add(
    Defect(
        "initialize-can-be-cancelled",
        ("L17",),
        "initialize is cancelled like any request",
        message=_note_cancel,
        reply=_hold,
    )
)

# -- discover -------------------------------------------------------------------------------------


def discovering(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about, E)(in_result("server/discover", change))


discovering(
    "own-version-missing",
    "V01a",
    "discover lists no versions",
    lambda r: r.update(supportedVersions=[]),
)
discovering(
    "capabilities-list", "V01b", "capabilities are a list", lambda r: r.update(capabilities=[])
)
discovering(
    "fewer-capabilities",
    "V02b",
    "discover declares less than initialize",
    lambda r: r["capabilities"].pop("prompts"),
)
discovering(
    "odd-extensions",
    "V18b",
    "extensions are declared without a prefix",
    lambda r: r["capabilities"].update(extensions={"fast": True}),
)


@on_reply("discover-counts", "V21a V21b", "discover is different each time")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) != "server/discover" or "result" not in reply:
        return reply
    connection.server.calls += 1
    told = f"request number {connection.server.calls}"
    return {**reply, "result": {**reply["result"], "instructions": told}}


@on_reply("anonymous", "V01c V15", "results lack serverInfo in _meta", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if "result" not in reply:
        return reply
    return {**reply, "result": {k: v for k, v in reply["result"].items() if k != "_meta"}}


# -- the envelope ---------------------------------------------------------------------------------


@on_message(
    "capabilities-optional",
    "V03d V05b V05c V05d",
    "missing client capabilities are treated as empty",
)
def _(connection: Any, message: Any) -> Any:
    found = meta(message)
    if PROTOCOL_VERSION in found and not isinstance(found.get(CLIENT_CAPABILITIES), dict):
        found[CLIENT_CAPABILITIES] = {}
    return message


@on_reply(
    "wrong-code-for-capabilities", "V05e", "malformed client capabilities get another code", E
)
def _(connection: Any, request: Any, reply: Any) -> Any:
    odd = not isinstance(meta(request).get(CLIENT_CAPABILITIES), dict)
    return failure(reply, -32603) if odd and code(reply) else reply


@on_message("names-required", "V04a V04b", "a client without valid clientInfo gets no response")
def _(connection: Any, message: Any) -> Any:
    found = meta(message)
    nameless = PROTOCOL_VERSION in found and not isinstance(found.get(CLIENT_INFO), dict)
    return None if nameless else message


@on_reply("capabilities-required", "V05a", "a client with no capabilities gets no list", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32021) if method(request) == "tools/list" else reply


@on_message(
    "any-modern-version", "V06a V06b V06c V24", "every version is treated as the modern one"
)
def _(connection: Any, message: Any) -> Any:
    if isinstance(meta(message).get(PROTOCOL_VERSION), str):
        meta(message)[PROTOCOL_VERSION] = E
    return message


@on_reply("wrong-supported", "V06d", "the supported versions differ from discover", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if code(reply) == -32022:
        reply["error"]["data"]["supported"] = ["2031-01-01"]
    return reply


@on_reply("requested-not-told", "V06e", "the requested version is not returned", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if code(reply) == -32022:
        del reply["error"]["data"]["requested"]
    return reply


@on_message("any-modern-version-type", "V07a V07b V07c", "a version of any type is accepted")
def _(connection: Any, message: Any) -> Any:
    found = meta(message)
    if PROTOCOL_VERSION in found and not isinstance(found[PROTOCOL_VERSION], str):
        found[PROTOCOL_VERSION] = E
    return message


@on_message("discover-first", "V08", "nothing is served before discover")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "server/discover":
        connection.watched.add("discovered")
    served = "discovered" in connection.watched or method(message) == "initialize"
    return message if served else None


quirk("remembers-capabilities", "V09b", "capabilities of earlier requests are remembered")


@on_message("pins-the-era", "V10", "initialize fails after a modern request")
def _(connection: Any, message: Any) -> Any:
    if meta(message):
        connection.watched.add("modern")
    late = method(message) == "initialize" and "modern" in connection.watched
    return None if late else message


@on_reply("modern-words-everywhere", "V11 V14a K03a", "legacy results have modern members")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if "result" not in reply:
        return reply
    words = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return {**reply, "result": {**words, **reply["result"]}}


@on_reply("no-result-type", "V14b", "modern results have no resultType")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "tools/list" and "result" in reply:
        reply["result"].pop("resultType", None)
    return reply


@on_message(
    "meta-hides-the-handshake", "V13a", "initialize with a _meta is not treated as a handshake"
)
def _(connection: Any, message: Any) -> Any:
    if method(message) == "initialize" and meta(message):
        del params(message)["protocolVersion"]
    return message


KNOWN = {PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, "progressToken"}


@on_message("closed-meta", "V16a V16b", "a request with unknown _meta keys is dropped")
def _(connection: Any, message: Any) -> Any:
    return None if set(meta(message)) - KNOWN else message


@on_reply("echoes-meta", "V16c", "the client's _meta is returned", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    if "result" in reply:
        reply["result"]["_meta"] = {**meta(request), **reply["result"].get("_meta", {})}
    return reply


@on_reply("odd-meta-keys", "V17", "_meta has keys outside the grammar")
def _(connection: Any, request: Any, reply: Any) -> Any:
    if method(request) == "tools/list" and "result" in reply:
        reply["result"]["_meta"] = {**reply["result"].get("_meta", {}), "no such key!": 1}
    return reply


@on_message("extensions-refused", "V18a", "a client with an unknown extension is dropped")
def _(connection: Any, message: Any) -> Any:
    return None if "extensions" in meta(message).get(CLIENT_CAPABILITIES, {}) else message


on_reply("odd-result-type", "V19", "a result has an unknown resultType", E)(
    in_result("tools/list", lambda r: r.update(resultType="task"))
)


@on_reply("capability-not-named", "V20a", "the capability that is missing is not named", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return failure(reply, -32021) if code(reply) == -32021 else reply


@on_reply("capability-never-enough", "V20b", "a capability is missing even if it is declared", E)
def _(connection: Any, request: Any, reply: Any) -> Any:
    return (
        failure(reply, -32021)
        if params(request).get("name") == "test_missing_capability"
        else reply
    )
