"""J: JSON-RPC messages: ids, shapes, errors, notifications."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, fail, need
from conformance.client.frames import dump, key, same, show
from conformance.context import Context

INVALID_REQUEST = (-32600,)
PARSE_ERROR = (-32700,)
INVALID_PARAMS = (-32602, -32600)


def bare(ctx: Context, **members: Any) -> bytes:
    """The basic request of the revision with members replaced; None removes a member."""
    message = ctx.peer.build(ctx.peer.basic)
    for name, value in members.items():
        if value is None:
            message.pop(name, None)
        else:
            message[name] = value
    return dump(message)


# -- ids ------------------------------------------------------------------------------------------


def echoed(ctx: Context, id: Any) -> None:
    peer = ctx.peer
    peer.request(peer.basic, id=id)
    frame = peer.wait(lambda f: f.kind in ("result", "error"), ctx.timeout)
    if frame is None:
        fail(f"no answer to id {show(dump(id), 80)}")
    need(
        same(frame.id, id),
        f"id {show(dump(id), 80)} came back as {show(dump(frame.id), 80)}",
    )


cases_of(
    (
        ("J02a", 0),
        ("J02b", -1),
        ("J02c", 2**53 + 1),
        ("J02d", 10**30),
        ("J02e", ""),
        ("J02f", "0"),
        ("J02g", "é-\U0001f600-\u05d0"),
        ("J02h", "k" * 10_000),
    ),
    echoed,
)


@case("J03")
def _number_and_string(ctx: Context) -> None:
    peer = ctx.peer
    if ctx.has_role("slow"):
        method, params = "tools/call", ctx.slow(0.1)
    else:
        method, params = peer.basic, {}
    number, text = 700123, "700123"
    peer.request(method, params, id=number)
    peer.request(method, params, id=text)
    for id in (number, text):
        frame = peer.reply(id)
        need(frame.kind == "result", f"the call with id {id!r} failed: {show(frame.raw)}")


@case("J13")
def _integral_float_id(ctx: Context) -> None:
    raw = bare(ctx, id=77).replace(b'"id":77', b'"id":77.0', 1)
    frames = [f for f in ctx.peer.probe(raw) if f.kind in ("result", "error")]
    need(frames, "no answer to a request with id 77.0")
    frame = frames[0]
    if frame.kind == "error":
        need(frame.code == -32600, f"refused with {frame.code!r}, which is not -32600")
    else:
        need(frame.id == 77, f"id 77.0 came back as {frame.id!r}")


@case("J32")
def _finished_id_again(ctx: Context) -> None:
    peer = ctx.peer
    for _ in range(2):
        frame = peer.call(peer.basic, id="the-same-id")
        need(
            frame.kind == "result",
            f"an id that was used and finished is refused: {show(frame.raw)}",
        )


@case("J33")
def _error_echoes_id(ctx: Context) -> None:
    frame = ctx.peer.call("no/such/method", id="conform-é-33")
    need(frame.kind == "error", f"a result for an unknown method: {show(frame.raw)}")


# -- broken JSON and broken shapes ----------------------------------------------------------------


@case("J06")
def _broken_json(ctx: Context) -> None:
    ctx.peer.expect_error(b'{bad json "id": 5}', PARSE_ERROR)


def unparsable(ctx: Context, spoil: Any) -> None:
    ctx.peer.expect_error(spoil(bare(ctx, id=4711)), PARSE_ERROR, may_echo=4711)


cases_of(
    (
        ("J07a", lambda good: good[:-8]),
        ("J07b", lambda good: good + b" trailing"),
        ("J07c", lambda good: good + b" " + good),
    ),
    unparsable,
)


def not_an_object(ctx: Context, raws: tuple[bytes, ...]) -> None:
    for raw in raws:
        ctx.peer.expect_error(raw, INVALID_REQUEST)


cases_of(
    (("J08a", (b"42", b'"ping"')), ("J08b", (b"null", b"true"))),
    not_an_object,
)


def wrong_shape(ctx: Context, members: dict[str, Any]) -> None:
    ctx.peer.expect_error(bare(ctx, id=4712, **members), INVALID_REQUEST, may_echo=4712)


cases_of(
    (
        ("J09a", {"jsonrpc": None}),
        ("J09b", {"jsonrpc": "1.0"}),
        ("J09c", {"jsonrpc": 2}),
        ("J10a", {"method": None}),
        ("J10b", {"method": 17}),
    ),
    wrong_shape,
)


@case("J09d")
def _readable_id_echoed(ctx: Context) -> None:
    ctx.peer.expect_error(bare(ctx, id=4713, jsonrpc="1.0"), INVALID_REQUEST, id=4713)


@case("J10c")
def _empty_method(ctx: Context) -> None:
    ctx.peer.expect_error(bare(ctx, id=4714, method=""), (-32600, -32601), may_echo=4714)


@case("J10d")
def _null_method(ctx: Context) -> None:
    raw = bare(ctx, id=4715, method="x").replace(b'"method":"x"', b'"method":null')
    ctx.peer.expect_error(raw, INVALID_REQUEST, may_echo=4715)


def odd_id(ctx: Context, ids: tuple[bytes, ...]) -> None:
    for id in ids:
        raw = bare(ctx, id=4716).replace(b'"id":4716', b'"id":' + id, 1)
        ctx.peer.expect_error(raw, INVALID_REQUEST)


cases_of(
    (
        ("J11", (b"null",)),
        ("J12a", (b"1.5",)),
        ("J12b", (b"true", b"false")),
        ("J12c", (b"[1]", b"[]")),
        ("J12d", (b'{"a":1}', b"{}")),
    ),
    odd_id,
)


def odd_params(ctx: Context, values: tuple[Any, ...]) -> None:
    for value in values:
        raw = bare(ctx, id=4717, params=value)
        ctx.peer.expect_error(raw, INVALID_PARAMS, may_echo=4717)


cases_of((("J14a", ([1, 2],)), ("J14b", (5, "text", True))), odd_params)


@case("J15")
def _null_params(ctx: Context) -> None:
    raw = bare(ctx, id=4718, params="x").replace(b'"params":"x"', b'"params":null')
    frames = [f for f in ctx.peer.probe(raw) if f.kind in ("result", "error")]
    need(frames, "no answer to a request whose params are null")
    if frames[0].kind == "error":
        need(frames[0].code in INVALID_PARAMS, f"refused with {frames[0].code!r}")


@case("J16")
def _extra_members(ctx: Context) -> None:
    message = ctx.peer.build(ctx.peer.basic)
    ctx.peer.send({**message, "x-extra": {"deep": [1]}, "version": "9"})
    frame = ctx.peer.reply(message["id"])
    need(frame.kind == "result", f"an unknown member beside params is refused: {show(frame.raw)}")


@case("J17")
def _method_and_result(ctx: Context) -> None:
    message = ctx.peer.build(ctx.peer.basic, id=4719)
    ctx.peer.expect_error(dump({**message, "result": {}}), INVALID_REQUEST, may_echo=4719)


# -- methods --------------------------------------------------------------------------------------


@case("J18")
def _unknown_method(ctx: Context) -> None:
    for method in ("no/such/method", "conform"):
        frame = ctx.peer.call(method)
        need(frame.kind == "error", f"{method!r} was answered with {show(frame.raw)}")
        need(frame.code == -32601, f"{method!r} gave error {frame.code!r}, which is not -32601")


def other_method(ctx: Context, methods: tuple[str, ...]) -> None:
    """Names that resemble a method are not served; J18 tests the code."""
    for method in methods:
        frame = ctx.peer.call(method)
        need(frame.kind == "error", f"{method!r} was answered with {show(frame.raw)}")


cases_of(
    (
        ("J19a", ("Tools/List", "TOOLS/CALL", "tools/List")),
        ("J19b", ("rpc.discover", "rpc.x")),
        ("J19c", ("tools/list/", "tools/list ", " tools/list", "tools")),
    ),
    other_method,
)


@case("J20")
def _undeclared_capability(ctx: Context) -> None:
    methods: list[tuple[str, str, dict[str, Any]]] = [
        ("prompts", "prompts/list", {}),
        ("resources", "resources/list", {}),
        ("tools", "tools/list", {}),
    ]
    if ctx.revision != revisions.A:
        ref = {"type": "ref/prompt", "name": "x"}
        completion = {"ref": ref, "argument": {"name": "x", "value": ""}}
        methods.append(("completions", "completion/complete", completion))
    if not ctx.modern:
        methods.append(("logging", "logging/setLevel", {"level": "info"}))
    if ctx.revision == revisions.D:
        methods.append(("tasks", "tasks/list", {}))
    absent = [row for row in methods if not ctx.offers(row[0])]
    if not absent:
        raise NotApplicable("the server declares every capability")
    for capability, method, params in absent:
        frame = ctx.peer.call(method, params)
        what = f"{capability} is not declared, yet {method}"
        need(frame.kind == "error", f"{what} was answered with {show(frame.raw)}")
        need(frame.code == -32601, f"{what} gave {frame.code!r}, which is not -32601")


# -- notifications and stray responses ------------------------------------------------------------


def never_answered(ctx: Context, messages: tuple[dict[str, Any], ...]) -> None:
    for message in messages:
        ctx.peer.expect_silence(dump({"jsonrpc": "2.0", **message}))


cases_of(
    (
        ("J21a", ({"method": "notifications/no_such_thing"}, {"method": "x", "params": {"a": 1}})),
        ("J21b", ({"method": "notifications/cancelled", "params": {"nonsense": [1]}},)),
        (
            "J22",
            (
                {"method": "tools/call", "params": {"name": "no-such-tool", "arguments": {}}},
                {"method": "ping"},
                {"method": "no/such/method"},
            ),
        ),
        ("J23a", ({"id": 991, "result": {}}, {"id": "nobody", "result": {"x": 1}})),
        ("J23b", ({"id": 992, "error": {"code": -1, "message": "no"}},)),
        ("J24", ({"id": 993, "result": {"resultType": "complete"}},)),
    ),
    never_answered,
)


@case("J21c")
def _bad_notification_params(ctx: Context) -> None:
    raw = dump({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": 5})
    for frame in ctx.peer.probe(raw, expected=0):
        need(frame.kind != "result", f"a notification was answered: {show(frame.raw)}")
        if frame.kind == "error":
            need(not frame.has_id and frame.code in (-32600, -32602), show(frame.raw))


@case("J21d")
def _notification_before_initialize(ctx: Context) -> None:
    ctx.raw().expect_silence(dump({"jsonrpc": "2.0", "method": "notifications/early"}))


# -- failing handlers, duplicates -----------------------------------------------------------------


@case("J25a")
def _crash(ctx: Context) -> None:
    role = ctx.role("crash")
    frame = ctx.peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    if frame.kind == "error":
        need(isinstance(frame.code, int), f"error without a code: {show(frame.raw)}")
    else:
        need(frame.result.get("isError") is True, f"a crash reported as success: {show(frame.raw)}")
    ctx.peer.marker()


@case("J25b")
def _crash_keeps_its_insides(ctx: Context) -> None:
    role = ctx.role("crash")
    frame = ctx.peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    for word in (b"Traceback", b'File \\"', b".py", b"site-packages", b"    at ", b"node_modules"):
        need(
            word not in frame.raw, f"the response shows internals of the server ({word.decode()!r})"
        )


def _duplicates(ctx: Context) -> list[Any]:
    """The responses to two concurrent calls with the same id."""
    peer = ctx.fresh()
    message = peer.build("tools/call", ctx.slow(0.3), id=4720)
    peer.send(message)
    peer.send(message)
    first = peer.reply(4720, ctx.timeout + 1)
    second = peer.wait(lambda f: f.kind != "request" and key(f.id) == key(4720), 0.5)
    return [first] if second is None else [first, second]


@case("J27a")
def _first_survives(ctx: Context) -> None:
    first = _duplicates(ctx)[0]
    need(first.kind == "result", f"the second call affected the first: {show(first.raw)}")


@case("J27b")
def _second_not_answered(ctx: Context) -> None:
    answers = _duplicates(ctx)
    need(len(answers) == 1, f"{len(answers)} answers under one id")


@case("J28")
def _duplicate_keys(ctx: Context) -> None:
    raw = bare(ctx, id=4721).replace(b'"jsonrpc":"2.0"', b'"jsonrpc":"2.0","method":"no/such"', 1)
    told = []
    for _ in range(2):
        frames = [f for f in ctx.peer.probe(raw) if f.kind in ("result", "error")]
        need(frames, "no answer to an object with two members of one name")
        told.append((frames[0].kind, frames[0].code))
    need(told[0] == told[1], f"the same frame was handled in two ways: {told}")
    if told[0][0] == "error":
        need(
            told[0][1] in (-32700, -32600), f"expected the last member or -32700, got {told[0][1]}"
        )


@case("J29")
def _server_request_ids(ctx: Context) -> None:
    kinds = {"sampling": "sampling", "elicitation": "elicitation"}
    role = next((r for r in kinds if ctx.has_role(r)), None)
    if role is None or (role == "elicitation" and ctx.revision < revisions.C):
        raise NotApplicable("no tool makes the server send a request")
    peer = ctx.fresh(capabilities={kinds[role]: {}})
    answer_questions(peer)
    part = ctx.role(role)
    for _ in range(3):
        peer.call("tools/call", {"name": part.tool, "arguments": part.arguments()})
    asked = [frame for frame in peer.server_requests if frame.method != "ping"]
    need(asked, "the server sent no request although the capability is declared")
    ids = [key(frame.id) for frame in asked]
    need(all(frame.has_id for frame in asked), "a server request with a null id")
    need(len(set(ids)) == len(ids), f"request ids were used twice: {ids}")


def answer_questions(peer: Any) -> None:
    """Answer sampling and elicitation requests; accept everything."""
    peer.answerers["sampling/createMessage"] = lambda _: {
        "role": "assistant",
        "content": {"type": "text", "text": "something"},
        "model": "none",
        "stopReason": "endTurn",
    }
    peer.answerers["elicitation/create"] = lambda params: {
        "action": "accept",
        "content": fill(params.get("requestedSchema")),
    }
    peer.answerers["roots/list"] = lambda _: {"roots": []}


def fill(schema: Any) -> dict[str, Any]:
    """Content that satisfies a flat elicitation schema."""
    values: dict[str, Any] = {}
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, rule in (properties if isinstance(properties, dict) else {}).items():
        kind = rule.get("type") if isinstance(rule, dict) else "string"
        if isinstance(rule, dict) and rule.get("enum"):
            values[name] = rule["enum"][0]
        elif kind == "boolean":
            values[name] = True
        elif kind in ("number", "integer"):
            values[name] = 7
        else:
            values[name] = "conform@example.org" if "mail" in name else "conform"
    return values
