"""H21, H22 and H40: modern requests whose headers contradict the body."""

from __future__ import annotations

from typing import Any

from conformance import revisions
from conformance.check import NotApplicable, case, cases_of, need
from conformance.client.http_headers import encoded
from conformance.client.streamable_http import Reply
from conformance.context import Context
from conformance.suites.http_requests import Headers, basic, call, code, post, request, status

Mirrors = dict[str, tuple[str, str]]
"""Placeholder of a role's template ("{text}") → (argument, the header that mirrors it)."""


def _mirrors(ctx: Context) -> tuple[str, Mirrors]:
    """The tool whose arguments are mirrored in headers, and those arguments."""
    role = ctx.role("mirrored")
    tool = next(tool for tool in ctx.facts.tools if tool.get("name") == role.tool)
    found: Mirrors = {}
    properties = tool.get("inputSchema", {}).get("properties", {})
    for argument, filled in role.template.items():
        header = properties.get(argument, {}).get("x-mcp-header")
        if isinstance(header, str):
            found[str(filled)] = (argument, f"Mcp-Param-{header}")
    if "{text}" not in found:
        raise NotApplicable(f"{role.tool} mirrors no text in a header")
    return role.tool, found


def _called(ctx: Context, arguments: dict[str, Any], headers: Headers) -> Reply:
    tool, _ = _mirrors(ctx)
    params = {"name": tool, "arguments": arguments}
    return post(ctx, request(ctx, "tools/call", params), headers)


def _refused(ctx: Context, headers: dict[str, str]) -> None:
    """Call with the text "us-west1" and these header values; the server must reject the call."""
    _, mirrors = _mirrors(ctx)
    argument, header = mirrors["{text}"]
    said: Headers = {header: headers["{text}"]} if "{text}" in headers else {}
    answer = _called(ctx, {argument: "us-west1"}, said)
    status(answer, 400)
    code(answer, -32020)


cases_of(
    (
        ("H22a", {}),
        ("H22b", {"{text}": "us-east1"}),
        ("H22c", {"{text}": "=?base64?dXMtd2VzdDE!?="}),
    ),
    _refused,
)


def _served(answer: Reply) -> None:
    """The call may fail for other reasons, but not because of its headers."""
    messages = answer.messages()
    need(messages, f"status {answer.status} and no answer")
    error = messages[-1].get("error", {})
    need(error.get("code") != -32020, f"the headers were refused: {error.get('message')!r}")


@case("H22d")
def _decoded(ctx: Context) -> None:
    argument, header = _mirrors(ctx)[1]["{text}"]
    for value in ("us-west1", "naïve", " padded ", "=?base64?literal?="):
        _served(_called(ctx, {argument: value}, {header: encoded(value)}))


@case("H22e")
def _nothing_to_repeat(ctx: Context) -> None:
    argument, _ = _mirrors(ctx)[1]["{text}"]
    _served(_called(ctx, {}, {}))
    _served(_called(ctx, {argument: None}, {}))


@case("H22f")
def _strange_header(ctx: Context) -> None:
    argument, header = _mirrors(ctx)[1]["{text}"]
    more: Headers = {header: "us-west1", "Mcp-Param-Conform-Nothing": "x"}
    _served(_called(ctx, {argument: "us-west1"}, more))


@case("H22g")
def _numbers(ctx: Context) -> None:
    tool, mirrors = _mirrors(ctx)
    if "{count}" not in mirrors:
        raise NotApplicable(f"{tool} mirrors no integer in a header")
    argument, header = mirrors["{count}"]
    _served(_called(ctx, {argument: 42}, {header: "42"}))
    _served(_called(ctx, {argument: 42}, {header: "42.0"}))


# -- eras -----------------------------------------------------------------------------------------


def _of_version(ctx: Context, version: str) -> dict[str, Any]:
    message = basic(ctx, "odd")
    message["params"]["_meta"][revisions.PROTOCOL_VERSION] = version
    return message


@case("H40a")
def _mismatch_first(ctx: Context) -> None:
    message = _of_version(ctx, "1998-01-01")
    answer = post(ctx, message, {"MCP-Protocol-Version": "1999-01-01"})
    status(answer, 400)
    code(answer, -32020)


@case("H40b")
def _unsupported(ctx: Context) -> None:
    answer = post(ctx, _of_version(ctx, "1999-01-01"))
    status(answer, 400)
    code(answer, -32022)
    need(answer.messages()[-1].get("id") == "odd", "the response lacks the id")


@case("H40c")
def _capability(ctx: Context) -> None:
    answer = post(ctx, call(ctx, "missing_capability"))
    status(answer, 400)
    code(answer, -32021)
