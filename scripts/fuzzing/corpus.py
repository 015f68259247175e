"""Valid frames of all five revisions: seeds for mutation, and requests that must be answered.

The prefix of an id tells the oracle which responses to require:

- `V-N`: sent unchanged, to a method that answers at once. Must be answered exactly once.
- `s-N`: long-running (`slow`, `subscriptions/listen`). Will be cancelled; may remain unanswered.
- others: ids from mutated frames. May be answered at most as often as they were sent.
"""

from random import Random
from typing import Any, Final

Frame = dict[str, Any]

LEGACY: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN: Final = "2026-07-28"
REVISIONS: Final = (*LEGACY, MODERN)
BATCHING: Final = "2025-03-26"

TEXTS: Final = (
    "x",
    "hello",
    "naïve café",
    "日本語",
    "🧠 brain",
    "a\nb\tc",
    "\u2028\u0085",
    "e\u0301",
)

# Methods that are answered at once in every revision, with a result or an error.
PROMPT: Final[tuple[tuple[str, Frame | None], ...]] = (
    ("ping", None),
    ("tools/list", {}),
    ("tools/list", None),
    ("tools/list", {"cursor": "abc"}),
    ("tools/call", {"name": "echo", "arguments": {"text": "hello"}}),
    ("tools/call", {"name": "echo", "arguments": {}}),
    ("tools/call", {"name": "fail", "arguments": {"message": "no"}}),
    ("tools/call", {"name": "print", "arguments": {"text": "not on the wire"}}),
    ("tools/call", {"name": "big", "arguments": {"bytes": 3000}}),
    ("tools/call", {"name": "structured", "arguments": {"n": 3}}),
    ("tools/call", {"name": "tally", "arguments": {}}),
    ("tools/call", {"name": "nowhere", "arguments": {}}),
    ("tools/call", {"name": "test_simple_text"}),
    ("tools/call", {"name": "test_image_content"}),
    ("tools/call", {"name": "echo", "arguments": {"text": "t"}, "_meta": {"progressToken": 7}}),
    ("health/check", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "test://static-text"}),
    ("resources/templates/list", {}),
    ("resources/subscribe", {"uri": "test://watched-resource"}),
    ("resources/unsubscribe", {"uri": "test://watched-resource"}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "test_simple_prompt"}),
    ("prompts/get", {"name": "test_prompt_with_arguments", "arguments": {"arg1": "a"}}),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "test_prompt_with_arguments"},
            "argument": {"name": "arg1", "value": "par"},
        },
    ),
    ("logging/setLevel", {"level": "warning"}),
    ("server/discover", {}),
    ("tasks/list", {}),
    ("no/such/method", {"a": [1, 2, {"b": None}]}),
)

NOTICES: Final[tuple[tuple[str, Frame | None], ...]] = (
    ("notifications/initialized", None),
    ("notifications/roots/list_changed", None),
    ("notifications/progress", {"progressToken": 1, "progress": 0.5}),
    ("notifications/cancelled", {"requestId": "nobody", "reason": "fuzz"}),
    ("notifications/unknown", {"x": 1}),
    ("tools/call", {"name": "echo", "arguments": {"text": "a request without an id"}}),
)


def meta() -> Frame:
    """The `_meta` object of a modern request."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "fuzz", "version": "1"},
    }


def opening(identity: object, version: str) -> Frame:
    return {
        "jsonrpc": "2.0",
        "id": identity,
        "method": "initialize",
        "params": {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": "fuzz", "version": "1"},
        },
    }


def call(identity: object, method: str, params: Frame | None, *, modern: bool) -> Frame:
    frame: Frame = {"jsonrpc": "2.0", "id": identity, "method": method}
    if modern:
        given = dict(params or {})
        frame["params"] = {**given, "_meta": {**given.get("_meta", {}), **meta()}}
    elif params is not None:
        frame["params"] = dict(params)
    return frame


def prompt_request(rng: Random, identity: object, revision: str) -> Frame:
    """A request that any server answers at once; sometimes of the other era."""
    method, params = rng.choice(PROMPT)
    if params is not None and params.get("name") == "echo" and params.get("arguments"):
        params = {**params, "arguments": {"text": rng.choice(TEXTS)}}
    modern = (revision == MODERN) != (rng.random() < 0.1)
    return call(identity, method, params, modern=modern)


def lasting_request(rng: Random, identity: object, revision: str) -> Frame:
    """A long-running request."""
    if rng.random() < 0.2:
        wanted = {"notifications": {"toolsListChanged": True}}
        return call(identity, "subscriptions/listen", wanted, modern=True)
    arguments: Frame = {"seconds": rng.choice((0.001, 0.01, 30)), "steps": rng.choice((1, 3))}
    params: Frame = {"name": "slow", "arguments": arguments}
    if rng.random() < 0.5:
        params["_meta"] = {"progressToken": rng.choice((0, "", 5, "t"))}
    return call(identity, "tools/call", params, modern=revision == MODERN)


def cancel(identity: object) -> Frame:
    params = {"requestId": identity, "reason": "fuzz"}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def notice(rng: Random) -> Frame:
    method, params = rng.choice(NOTICES)
    frame: Frame = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        frame["params"] = dict(params)
    return frame


def unasked_response(rng: Random, identity: object) -> Frame:
    if rng.random() < 0.5:
        return {"jsonrpc": "2.0", "id": identity, "result": {}}
    return {"jsonrpc": "2.0", "id": identity, "error": {"code": -1, "message": "fuzz"}}
