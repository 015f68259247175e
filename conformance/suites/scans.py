"""Scans: rules for every frame of a run."""

from __future__ import annotations

import re
from typing import Any

from conformance import message_shapes, revisions
from conformance.check import scan
from conformance.client.frames import kind_of
from conformance.client.observer import ReceivedFrame

ANSWERS = ("result", "error")
MODERN_WORDS = ("resultType", "ttlMs", "cacheScope")
CLIENT_CAPABILITY = {
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
    "roots/list": "roots",
}
META_KEY = re.compile(
    r"([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?"
    r"([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)


def judged(wrong: str | None) -> str | bool:
    return True if wrong is None else wrong


def readable(received: ReceivedFrame) -> bool:
    return received.frame.problem is None and isinstance(received.frame.value, dict)


# -- messages -------------------------------------------------------------------------------------


@scan("J01")
def _is_a_message(received: ReceivedFrame) -> str | bool | None:
    value = received.frame.value
    if not readable(received):
        return "not a message" if received.frame.problem is None else None
    if value.get("jsonrpc") != "2.0":
        return f"jsonrpc is {value.get('jsonrpc')!r}"
    return True if kind_of(value) != "invalid" else "neither request, notification nor response"


@scan("J04")
def _one_of_result_and_error(received: ReceivedFrame) -> str | bool | None:
    value = received.frame.value
    if not readable(received) or "method" in value:
        return None
    count = ("result" in value) + ("error" in value)
    return True if count == 1 else f"{count} of result and error"


@scan("J05")
def _error_object(received: ReceivedFrame) -> str | bool | None:
    if not readable(received) or "error" not in received.frame.value:
        return None
    return judged(message_shapes.error(received.frame.value["error"]))


@scan("J05b")
def _error_message(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "error" or not isinstance(received.frame.error.get("message"), str):
        return None
    message = received.frame.error["message"]
    if "\n" in message:
        return "an error message of several lines"
    return True if len(message) <= 400 else f"an error message of {len(message)} characters"


@scan("J26a")
def _reserved_codes(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "error" or received.revision != revisions.E:
        return None
    code = received.frame.code
    if isinstance(code, int) and -32099 <= code <= -32020 and code not in (-32020, -32021, -32022):
        return f"code {code} is reserved and not defined"
    return True


@scan("J26b")
def _retired_codes(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "error" or received.revision != revisions.E:
        return None
    return (
        True
        if received.frame.code not in (-32002, -32042)
        else f"code {received.frame.code} is retired"
    )


@scan("J26c")
def _discouraged_codes(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "error" or received.revision != revisions.E:
        return None
    code = received.frame.code
    legacy = isinstance(code, int) and -32019 <= code <= -32000 and code != -32002
    return f"code {code} is of the range new servers should not use" if legacy else True


@scan("J31")
def _answered_once(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind not in ANSWERS or not received.frame.has_id:
        return None
    return "a second answer to one request" if received.is_repeated else True


@scan("F02b")
def _plain_utf8(received: ReceivedFrame) -> str | bool | None:
    problem = received.frame.problem or ""
    return problem if "UTF-8" in problem or "byte order" in problem else True


@scan("F03a")
def _nothing_else(received: ReceivedFrame) -> str | bool | None:
    return received.frame.problem or True


@scan("F23a")
def _no_constants(received: ReceivedFrame) -> str | bool | None:
    problem = received.frame.problem or ""
    return problem if re.match(r"-?(NaN|Infinity)", problem) else True


@scan("F31")
def _no_requests(received: ReceivedFrame) -> str | bool | None:
    if received.revision != revisions.E or received.peer.initialized:
        return None
    return "a request from the server" if received.frame.kind == "request" else True


# -- eras -----------------------------------------------------------------------------------------


@scan("L07a")
def _declared_only(received: ReceivedFrame) -> str | bool | None:
    needed = CLIENT_CAPABILITY.get(received.frame.method or "")
    if received.frame.kind != "request" or needed is None:
        return None if received.frame.kind != "result" else True
    declared = needed in received.peer.capabilities
    return True if declared else f"{received.frame.method}, which the client did not declare"


scan("L07b")(_declared_only)


@scan("V14a")
def _no_modern_words(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.revision == revisions.E:
        return None
    if not isinstance(received.frame.result, dict):
        return None
    meta = received.frame.result.get("_meta")
    words = [word for word in MODERN_WORDS if word in received.frame.result]
    words += [k for k in (meta if isinstance(meta, dict) else {}) if k == revisions.SERVER_INFO]
    return f"{words} in a legacy result" if words else True


@scan("V14b")
def _result_type(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.revision != revisions.E or received.sent is None:
        return None
    result = received.frame.result
    return True if isinstance(result, dict) and "resultType" in result else "no resultType"


@scan("V15")
def _names_itself(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.revision != revisions.E:
        return None
    meta = received.frame.result.get("_meta") if isinstance(received.frame.result, dict) else None
    named = isinstance(meta, dict) and revisions.SERVER_INFO in meta
    return True if named else "the result does not name the server"


@scan("V17")
def _meta_keys(received: ReceivedFrame) -> str | bool | None:
    body = received.frame.result if received.frame.kind == "result" else received.frame.params
    meta = body.get("_meta") if isinstance(body, dict) else None
    if not isinstance(meta, dict):
        return None
    odd = [name for name in meta if not META_KEY.fullmatch(name)]
    return f"_meta keys {odd}" if odd else True


@scan("V19")
def _known_result_type(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.revision != revisions.E:
        return None
    kind = (
        received.frame.result.get("resultType") if isinstance(received.frame.result, dict) else None
    )
    if kind is None:
        return None
    return True if kind in ("complete", "input_required") else f"resultType {kind!r}"


@scan("K03a")
def _no_legacy_hints(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "result" or received.revision == revisions.E:
        return None
    result = received.frame.result
    hints = [w for w in ("ttlMs", "cacheScope") if isinstance(result, dict) and w in result]
    return f"{hints} in a legacy result" if hints else True


@scan("K03b")
def _no_hints_on_questions(received: ReceivedFrame) -> str | bool | None:
    result = received.frame.result
    if not isinstance(result, dict) or result.get("resultType") != "input_required":
        return None
    hints = [word for word in ("ttlMs", "cacheScope") if word in result]
    return f"{hints} on a result that asks for input" if hints else True


@scan("I01")
def _where_questions_are_allowed(received: ReceivedFrame) -> str | bool | None:
    result = received.frame.result
    if not isinstance(result, dict) or received.sent is None or received.revision != revisions.E:
        return None
    if result.get("resultType") != "input_required":
        return True
    allowed = ("tools/call", "prompts/get", "resources/read")
    return True if received.sent.method in allowed else f"{received.sent.method} asks for input"


# -- notifications --------------------------------------------------------------------------------


@scan("G02")
def _logging_declared(received: ReceivedFrame) -> str | bool | None:
    if received.frame.method != "notifications/message":
        return True if received.frame.kind == "notification" else None
    declared = received.peer.server_capabilities
    return "logging is not declared" if declared is not None and "logging" not in declared else True


@scan("T23b")
def _changes_declared(received: ReceivedFrame) -> str | bool | None:
    if received.frame.method != "notifications/tools/list_changed":
        return True if received.frame.kind == "notification" else None
    tools = (received.peer.server_capabilities or {}).get("tools")
    if received.peer.server_capabilities is None:
        return None
    told = isinstance(tools, dict) and tools.get("listChanged") is True
    return True if told else "tools.listChanged is not declared"


@scan("X08")
def _server_cancels(received: ReceivedFrame) -> str | bool | None:
    if received.frame.method != "notifications/cancelled":
        return True if received.frame.kind in ("notification", "result") else None
    id = received.frame.params.get("requestId")
    if received.revision == revisions.E:
        sent = received.peer.request_with(id)
        fine = sent is not None and sent.method == "subscriptions/listen"
        return True if fine else "the server cancels something that is no subscription"
    own = any(request.id == id for request in received.peer.server_requests)
    return True if own else "the server cancels a request it did not make"


@scan("U08")
def _listen_streams(received: ReceivedFrame) -> str | bool | None:
    if received.revision != revisions.E or received.frame.kind != "notification":
        return None
    meta = received.frame.params.get("_meta")
    if not isinstance(meta, dict) or revisions.SUBSCRIPTION_ID not in meta:
        return None
    loose = received.frame.method in ("notifications/progress", "notifications/message")
    return f"{received.frame.method} on a subscription" if loose else True


# -- shapes ---------------------------------------------------------------------------------------


def shaped(methods: tuple[str, ...]) -> Any:
    def look(received: ReceivedFrame) -> str | bool | None:
        if (
            received.frame.kind != "result"
            or received.sent is None
            or received.sent.method not in methods
        ):
            return None
        return judged(
            message_shapes.result(received.revision, received.sent.method, received.frame.result)
        )

    return look


for _id, _methods in (
    ("Z10a", ("initialize", "server/discover")),
    ("Z10b", ("tools/list",)),
    ("Z10c", ("tools/call",)),
    ("Z10d", ("resources/list", "resources/templates/list", "resources/read")),
    ("Z10e", ("prompts/list", "prompts/get")),
    ("Z10f", ("completion/complete",)),
):
    scan(_id)(shaped(_methods))


@scan("Z10g")
def _notification_shapes(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "notification":
        return None
    params = received.frame.value.get("params")
    method = received.frame.method or ""
    declared = received.peer.server_capabilities or received.peer.known_capabilities
    own = isinstance(declared, dict) and ("experimental" in declared or "extensions" in declared)
    if own and not message_shapes.is_known_notification(received.revision, method):
        return None  # a declared experimental capability or extension may define it
    return judged(message_shapes.notification(received.revision, method, params))


@scan("Z10h")
def _request_shapes(received: ReceivedFrame) -> str | bool | None:
    if received.frame.kind != "request" or received.revision == revisions.E:
        return None
    params = received.frame.value.get("params")
    return judged(message_shapes.request(received.revision, received.frame.method or "", params))
