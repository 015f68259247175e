"""Shapes of all messages that a server may send, by revision.

A rule is a type name ("str", "int", "num", "bool", "obj", "any", "id", "b64", "whole"), a tuple of
literals, a list with one rule (a list of such), a dictionary of members (a name ending in `?` may
be absent), or a function that checks a value. Members without a rule are allowed, as in the
official schemas. `judge` returns the first violation, or None.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from functools import cache
from typing import Any

from conformance import revisions
from conformance.revisions import B, C, D, E

Rule = Any
"""str | tuple | list | dict | Callable[[Any, str], str | None]; recursive, hence in words."""

_PRIMITIVES: dict[str, Callable[[Any], bool]] = {
    "str": lambda v: isinstance(v, str),
    "int": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "num": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool),
    "obj": lambda v: isinstance(v, dict),
    "any": lambda v: True,
    "id": lambda v: isinstance(v, str | int) and not isinstance(v, bool),
    "b64": lambda v: isinstance(v, str) and _is_base64(v),
    "whole": lambda v: (
        isinstance(v, int | float) and not isinstance(v, bool) and float(v).is_integer() and v >= 0
    ),
}


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def judge(value: Any, rule: Rule, path: str = "") -> str | None:
    """The first violation of a rule, or None."""
    where = path or "it"
    if isinstance(rule, str):
        return None if _PRIMITIVES[rule](value) else f"{where} is not {rule}: {_short(value)}"
    if isinstance(rule, tuple):
        known = isinstance(value, str) and value in rule
        return None if known else f"{where} is {_short(value)}, not one of {rule}"
    if isinstance(rule, list):
        if not isinstance(value, list):
            return f"{where} is not a list: {_short(value)}"
        for number, item in enumerate(value):
            if wrong := judge(item, rule[0], f"{path}[{number}]"):
                return wrong
        return None
    if isinstance(rule, dict):
        if not isinstance(value, dict):
            return f"{where} is not an object: {_short(value)}"
        for name, part in rule.items():
            plain = name.rstrip("?")
            if plain in value:
                if wrong := judge(value[plain], part, f"{path}.{plain}"):
                    return wrong
            elif not name.endswith("?"):
                return f"{path}.{plain} is missing"
        return None
    verdict: str | None = rule(value, path)
    return verdict


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"


def map_of(rule: Rule) -> Rule:
    """An object whose members all follow one rule."""

    def check(value: Any, path: str) -> str | None:
        if not isinstance(value, dict):
            return f"{path} is not an object"
        for name, item in value.items():
            if wrong := judge(item, rule, f"{path}.{name}"):
                return wrong
        return None

    return check


def one_of(member: str, variants: dict[str, Rule]) -> Rule:
    """A union, discriminated by one member."""

    def check(value: Any, path: str) -> str | None:
        kind = value.get(member) if isinstance(value, dict) else None
        if not isinstance(kind, str) or kind not in variants:
            return f"{path}.{member} is {_short(kind)}, which this revision does not know"
        return judge(value, variants[kind], path)

    return check


def both(*rules: Rule) -> Rule:
    def check(value: Any, path: str) -> str | None:
        return next((wrong for rule in rules if (wrong := judge(value, rule, path))), None)

    return check


def _contents(value: Any, path: str) -> str | None:
    wrong = judge(value, {"uri": "str", "mimeType?": "str", "text?": "str", "blob?": "b64"}, path)
    if wrong is None and ("text" in value) == ("blob" in value):
        return f"{path} needs text or blob, and one only"
    return wrong


ANNOTATIONS = {"audience?": [("user", "assistant")], "priority?": "num", "lastModified?": "str"}
ICONS = [{"src": "str", "mimeType?": "str", "theme?": ("light", "dark")}]
NAMED = {"name": "str", "title?": "str", "description?": "str", "icons?": ICONS}
RESOURCE = {**NAMED, "uri": "str", "mimeType?": "str", "size?": "num", "annotations?": ANNOTATIONS}
TEMPLATE = {**NAMED, "uriTemplate": "str", "mimeType?": "str", "annotations?": ANNOTATIONS}
PROMPT = {**NAMED, "arguments?": [{"name": "str", "title?": "str", "required?": "bool"}]}
HINTS = {
    "title?": "str",
    "readOnlyHint?": "bool",
    "destructiveHint?": "bool",
    "idempotentHint?": "bool",
    "openWorldHint?": "bool",
}
IMPLEMENTATION = {**NAMED, "version": "str", "websiteUrl?": "str"}
CAPABILITIES = {
    "experimental?": "obj",
    "logging?": "obj",
    "completions?": "obj",
    "prompts?": {"listChanged?": "bool"},
    "resources?": {"subscribe?": "bool", "listChanged?": "bool"},
    "tools?": {"listChanged?": "bool"},
    "extensions?": map_of("obj"),
}
FILTER = {
    "toolsListChanged?": "bool",
    "promptsListChanged?": "bool",
    "resourcesListChanged?": "bool",
    "resourceSubscriptions?": ["str"],
}
ERROR = {"code": "int", "message": "str"}


@cache
def _content(revision: str) -> Rule:
    extra = {"annotations?": ANNOTATIONS}
    variants: dict[str, Rule] = {
        "text": {"text": "str", **extra},
        "image": {"data": "b64", "mimeType": "str", **extra},
        "resource": {"resource": _contents, **extra},
    }
    if revision >= B:
        variants["audio"] = {"data": "b64", "mimeType": "str", **extra}
    if revision >= C:
        variants["resource_link"] = RESOURCE
    return one_of("type", variants)


@cache
def _tool(revision: str) -> Rule:
    schema: dict[str, Rule] = {"type": ("object",), "required?": ["str"]}
    if revision < E:
        schema["properties?"] = map_of("obj")
    rule: dict[str, Rule] = {**NAMED, "inputSchema": schema}
    if revision >= B:
        rule["annotations?"] = HINTS
    if revision in (C, D):
        rule["outputSchema?"] = {"type": ("object",)}
    if revision >= E:
        rule["outputSchema?"] = "obj"
    return rule


@cache
def _results(revision: str) -> dict[str, Rule]:
    cached = {"ttlMs": "whole", "cacheScope": ("public", "private")} if revision >= E else {}
    page = {"nextCursor?": "str"}
    call: dict[str, Rule] = {"content": [_content(revision)], "isError?": "bool"}
    if revision in (C, D):
        call["structuredContent?"] = "obj"
    message = {"role": ("user", "assistant"), "content": _content(revision)}
    results: dict[str, Rule] = {
        "tools/list": {"tools": [_tool(revision)], **page, **cached},
        "tools/call": call,
        "resources/list": {"resources": [RESOURCE], **page, **cached},
        "resources/templates/list": {"resourceTemplates": [TEMPLATE], **page, **cached},
        "resources/read": {"contents": [_contents], **cached},
        "prompts/list": {"prompts": [PROMPT], **page, **cached},
        "prompts/get": {"description?": "str", "messages": [message]},
        "completion/complete": {
            "completion": {"values": ["str"], "total?": "int", "hasMore?": "bool"}
        },
    }
    if revision >= E:
        results["server/discover"] = {
            "supportedVersions": ["str"],
            "capabilities": CAPABILITIES,
            "instructions?": "str",
            **cached,
        }
    else:
        results["initialize"] = {
            "protocolVersion": "str",
            "capabilities": CAPABILITIES,
            "serverInfo": IMPLEMENTATION,
            "instructions?": "str",
        }
        for empty in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
            results[empty] = {}
    return results


INPUT_REQUIRED: Rule = {
    "inputRequests?": map_of(
        one_of(
            "method",
            {
                "elicitation/create": {"params": {"message": "str"}},
                "sampling/createMessage": {"params": {"messages": ["obj"], "maxTokens": "num"}},
                "roots/list": {},
            },
        )
    ),
    "requestState?": "str",
}


def result(revision: str, method: str, value: Any) -> str | None:
    """The first violation in the result of a method, or None."""
    envelope: dict[str, Rule] = {"_meta?": "obj"}
    if revision >= E:
        envelope["_meta?"] = {f"{revisions.SERVER_INFO}?": IMPLEMENTATION}
        envelope["resultType"] = "str"
        if isinstance(value, dict) and value.get("resultType") == "input_required":
            return judge(value, {**envelope, **INPUT_REQUIRED}, "result")
    rule = _results(revision).get(method, {})
    return judge(value, {**envelope, **rule}, "result")


@cache
def _notifications(revision: str) -> dict[str, Rule]:
    token = {"progressToken": "id", "progress": "num", "total?": "num", "message?": "str"}
    known: dict[str, Rule] = {
        "notifications/cancelled": {"requestId": "id", "reason?": "str"},
        "notifications/progress": token,
        "notifications/message": {"level": revisions.LEVELS, "logger?": "str", "data": "any"},
        "notifications/resources/updated": {"uri": "str"},
        "notifications/resources/list_changed": {},
        "notifications/tools/list_changed": {},
        "notifications/prompts/list_changed": {},
    }
    if revision >= E:
        known["notifications/subscriptions/acknowledged"] = {"notifications": FILTER}
    if revision == D:
        known["notifications/tasks/status"] = {}
        known["notifications/elicitation/complete"] = {}
    return known


def is_known_notification(revision: str, method: str) -> bool:
    return method in _notifications(revision)


def notification(revision: str, method: str, params: Any) -> str | None:
    """The first violation in a notification, or None."""
    known = _notifications(revision)
    if method not in known:
        return f"{method} is no notification of {revision}"
    if params is None and not any(not name.endswith("?") for name in known[method]):
        return None
    return judge(params, {"_meta?": "obj", **known[method]}, "params")


@cache
def _requests(revision: str) -> dict[str, Rule]:
    known: dict[str, Rule] = {"ping": {}, "roots/list": {}}
    known["sampling/createMessage"] = {
        "messages": [{"role": ("user", "assistant"), "content": "any"}],
        "maxTokens": "num",
    }
    if revision >= C:
        known["elicitation/create"] = {"message": "str"}
    return known


def request(revision: str, method: str, params: Any) -> str | None:
    """The first violation in a request from the server, or None."""
    known = _requests(revision)
    if revision >= E:
        return "a server sends no requests in this revision"
    if method.startswith("tasks/") and revision == D:
        return None
    if method not in known:
        return f"{method} is no request of {revision}"
    return judge(params if params is not None else {}, known[method], "params")


def error(value: Any) -> str | None:
    """The first violation in an error object, or None."""
    return judge(value, ERROR, "error")
