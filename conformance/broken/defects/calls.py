"""Defects during calls: progress, cancellation, subscriptions, requests to the client."""

from __future__ import annotations

from typing import Any

from conformance.broken.defects.helpers import (
    failure,
    in_notification,
    in_result,
    meta,
    method,
    params,
    tool,
)
from conformance.broken.defects.registry import (
    Defect,
    add,
    on_message,
    on_notification,
    on_reply,
    quirk,
)
from conformance.revisions import SUBSCRIPTION_ID, A, E

PROGRESS = "notifications/progress"
ACK = "notifications/subscriptions/acknowledged"

# -- progress -------------------------------------------------------------------------------------

quirk("progress-for-all", "O01a", "progress comes without a token")


def _other_type(params: dict[str, Any]) -> None:
    token = params["progressToken"]
    params["progressToken"] = str(token) if isinstance(token, int) else len(token)


def progressing(
    name: str, cases: str, about: str, change: Any, revision: str | None = None
) -> None:
    on_notification(name, cases, about, revision)(in_notification(PROGRESS, change))


progressing("tokens-change-type", "O01b O01c O01d O01e", "tokens change their type", _other_type)
progressing("no-progress", "O02a", "progress does not increase", lambda p: p.update(progress=1))
progressing(
    "message-too-early", "O04", "progress has a message", lambda p: p.update(message="x"), A
)
progressing("beyond-the-total", "O05", "progress exceeds its total", lambda p: p.update(total=-1))
progressing(
    "one-token",
    "O07",
    "all progress goes to one token",
    lambda p: p.update(progressToken="one"),
)


@on_reply("progress-after-the-answer", "O02b", "progress comes after the answer")
def _(connection: Any, request: Any, reply: Any) -> Any:
    token = meta(request).get("progressToken")
    late = {"progressToken": token, "progress": 1000}
    return [reply, {"jsonrpc": "2.0", "method": PROGRESS, "params": late}] if token else reply


quirk("progress-after-cancel", "O02c O02d", "progress goes on after a cancel")


@on_message("drops-odd-tokens", "O03a O03b", "a request with an invalid token is dropped")
def _(connection: Any, message: Any) -> Any:
    token = meta(message).get("progressToken", 0)
    return message if isinstance(token, str | int) and not isinstance(token, bool) else None


# -- cancellation ---------------------------------------------------------------------------------

quirk(
    "cancel-ignored",
    "X01a",
    "a cancelled call goes on and is answered",
    answers_cancelled=True,
    never_stops=True,
)
quirk(
    "cancel-ignored-modern",
    "X01b",
    "a cancelled call goes on and is answered",
    revision=E,
    answers_cancelled=True,
    never_stops=True,
)
quirk(
    "work-goes-on",
    "X01c",
    "a cancelled call is not answered, but its work goes on",
    never_stops=True,
)
quirk("loose-ids", "X05", "ids are compared as text")
quirk("cancels-all", "X12", "a cancel ends all calls")


@on_message("dies-of-cancel", "X01d X03a X06 X13", "after a cancel the connection is dead")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        connection.watched.add("dead")
    return None if "dead" in connection.watched and tool(message) else message


@on_message("answers-cancels", "X02", "a cancel is answered")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        connection.write(failure({"id": params(message).get("requestId")}, -32800))
    return message


@on_message("confirms-cancels", "N06", "a cancelled call gets a result")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        id = params(message).get("requestId")
        connection.write({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
    return message


@on_message("confirms-ended-subscriptions", "U06a", "a cancelled subscription gets a result")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        id = params(message).get("requestId")
        connection.write({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete"}})
    return message


@on_message("cancel-in-advance", "X03b", "a cancel applies to later requests")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "notifications/cancelled":
        connection.watched.add(str(params(message).get("requestId")))
    hit = "id" in message and str(message["id"]) in connection.watched
    return None if hit else message


@on_reply("cancels-the-client", "X08", "the server cancels requests of its client")
def _(connection: Any, request: Any, reply: Any) -> Any:
    note = {"method": "notifications/cancelled", "params": {"requestId": 1}}
    return [{"jsonrpc": "2.0", **note}, reply] if method(request) == "tools/list" else reply


quirk("one-at-a-time", "N01a N01b I06", "requests are handled one at a time")

# -- subscriptions --------------------------------------------------------------------------------


def acknowledging(name: str, cases: str, about: str, change: Any) -> None:
    on_notification(name, cases, about, E)(in_notification(ACK, change))


@on_notification("no-acknowledgement", "U01a", "a subscription is not acknowledged")
def _(connection: Any, note: Any) -> Any:
    return None if note["method"] == ACK else note


def _odd_id(params: dict[str, Any]) -> None:
    id = params["_meta"][SUBSCRIPTION_ID]
    params["_meta"][SUBSCRIPTION_ID] = str(id) if isinstance(id, int) else f"{id}?"


acknowledging(
    "honours-more",
    "U01b U03c",
    "the acknowledgement lists types that were not requested",
    lambda p: p["notifications"].update(resourcesListChanged=True),
)
acknowledging("subscription-ids-change", "U02a U02b U02c", "ids of subscriptions change", _odd_id)
acknowledging(
    "honours-the-moon",
    "U03b",
    "unknown types are acknowledged",
    lambda p: p["notifications"].update(moonPhaseChanged=True),
)
acknowledging(
    "resources-not-watched",
    "U13",
    "resource subscriptions are not acknowledged",
    lambda p: p["notifications"].pop("resourceSubscriptions", None),
)
quirk(
    "tells-everybody",
    "V12 U03a U03d U09",
    "changes are notified to every connection",
    revision=E,
)
quirk("listens-forever", "U06b", "a cancelled subscription stays active")


@on_message("any-filter", "U05a U05b U05c U05d U05e U05f", "a malformed filter is treated as empty")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "subscriptions/listen":
        params(message)["notifications"] = {}
    return message


@on_message("listens-only", "U14", "no request is served while a subscription is open")
def _(connection: Any, message: Any) -> Any:
    return None if connection.listens else message


@on_message("listens-to-anybody", "U15", "a subscription needs no _meta")
def _(connection: Any, message: Any) -> Any:
    if method(message) == "subscriptions/listen" and not meta(message):
        connection.write({"jsonrpc": "2.0", "id": message["id"], "result": {}})
        return None
    return message


@on_notification("progress-on-subscriptions", "U08", "progress is sent on a subscription", E)
def _(connection: Any, note: Any) -> Any:
    if note["method"] == PROGRESS:
        note["params"]["_meta"] = {SUBSCRIPTION_ID: "x"}
    return note


# -- requests to the client -----------------------------------------------------------------------

ASKS = "!test_input_required_result_elicitation"


def asking(name: str, cases: str, about: str, change: Any) -> None:
    on_reply(name, cases, about, E)(in_result(ASKS, change))


asking(
    "asks-for-nothing",
    "I02a",
    "an input_required result has no input requests",
    lambda r: r.pop("inputRequests", None),
)
asking(
    "asks-for-a-ping",
    "I02b",
    "an input request has an unknown method",
    lambda r: r.update(inputRequests={"x": {"method": "ping"}}),
)
asking(
    "never-satisfied",
    "I04a I04c",
    "an answered input request is repeated",
    lambda r: r.update(resultType="input_required"),
)
asking(
    "hints-on-questions",
    "K03b",
    "input_required results carry cache hints",
    lambda r: r.update(ttlMs=0) if r["resultType"] == "input_required" else None,
)
on_reply("lists-ask", "I01", "a list asks for input", E)(
    in_result("prompts/list", lambda r: r.update(resultType="input_required", requestState="x"))
)
on_reply("state-lost", "I04d", "the state is not given to the client", E)(
    in_result("!test_input_required_result_request_state", lambda r: r.pop("requestState", None))
)
quirk("believes-state", "I03", "a modified requestState is accepted", revision=E)


@on_message("makes-up-answers", "I04b I04e I04f", "missing input responses are invented")
def _(connection: Any, message: Any) -> Any:
    if params(message).get("inputResponses") in ({}, "yes", [1]):
        params(message)["inputResponses"] = {"who": {}}
    return message


quirk("never-asks", "I05b I07b", "no request is sent to the client")


def _offended(connection: Any, message: Any) -> Any:
    """Stop answering once the client has declined a request."""
    answer = isinstance(message, dict) and "method" not in message
    if answer and message.get("result", {}).get("action") != "accept":
        connection.watched.add("offended")
    return None if "offended" in connection.watched else message


add(
    Defect(
        "takes-offence",
        ("I05c", "I05d", "I05e"),
        "after a decline the client gets no more responses",
        message=_offended,
    )
)
