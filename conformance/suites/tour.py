"""The tour: calls every method once, so that the scans have frames to check."""

from __future__ import annotations

from conformance import revisions, roles
from conformance.check import Failed, NotApplicable, SetupFailed
from conformance.client.peer import Peer
from conformance.client.wire import WireError
from conformance.context import Context

ROLES = (
    "echo",
    "structured",
    "fail",
    "image",
    "audio",
    "embedded",
    "mixed",
    "progress",
    "nonfinite",
)


DISRUPTIVE = (
    "crash",
    "print",
    "slow",
    "test_reconnection",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "trigger-long-running-operation",
    "longRunningOperation",
)
"""Fixtures that other cases call: they take long or change the server."""


def tour(ctx: Context) -> None:
    """Call every method once, so that the scans have frames to check.

    The tour asserts nothing; the scans check the responses.
    """
    peer: Peer | None = None
    for step in (_lists, _calls, _reads, _undeclared, _changes, _errors):
        try:
            peer = peer or ctx.fresh()
            step(ctx, peer)
        except (Failed, NotApplicable, SetupFailed, WireError):
            peer = None  # the next step gets a new connection
    try:
        _questions(ctx)
    except (Failed, NotApplicable, SetupFailed, WireError):
        return


def _lists(ctx: Context, peer: Peer) -> None:
    for capability, methods in (
        ("tools", ("tools/list",)),
        ("resources", ("resources/list", "resources/templates/list")),
        ("prompts", ("prompts/list",)),
    ):
        if ctx.offers(capability):
            for method in methods:
                peer.call(method, {})
    peer.marker()


def _errors(ctx: Context, peer: Peer) -> None:
    for method, params in (
        ("no/such/method", {}),
        ("tools/call", {"name": "no-such-tool", "arguments": {}}),
        ("tools/call", {"name": 17}),
        ("resources/read", {"uri": "test://no-such-resource"}),
        ("prompts/get", {"name": "no-such-prompt"}),
    ):
        peer.call(method, params)
    peer.probe(b"{broken", quiet=0.1)


def _calls(ctx: Context, peer: Peer) -> None:
    for name in ROLES:
        role = ctx.has_role(name)
        if role is not None:
            params = {"name": role.tool, "arguments": role.arguments(text="tour")}
            id = peer.request("tools/call", params, meta={"progressToken": f"tour-{name}"})
            peer.wait(lambda f, id=id: f.kind == "invalid" or f.id == id, ctx.timeout)  # type: ignore[misc]
    peer.marker()
    for role in roles.calls(ctx.facts.tools, ctx.settings.vouched):
        if role.tool not in DISRUPTIVE:
            arguments = role.arguments(text="tour", seconds=0.01, bytes=10, count=1)
            peer.call("tools/call", {"name": role.tool, "arguments": arguments})
    peer.marker()


def _reads(ctx: Context, peer: Peer) -> None:
    for resource in ctx.facts.resources[:4]:
        peer.call("resources/read", {"uri": resource.get("uri")})
    for prompt in ctx.facts.prompts[:6]:
        names = [a.get("name") for a in prompt.get("arguments") or [] if isinstance(a, dict)]
        arguments = {str(n): "test://static-text" if "ri" in str(n) else "tour" for n in names}
        peer.call("prompts/get", {"name": prompt.get("name"), "arguments": arguments})
        if names and (ctx.offers("completions") or ctx.revision == revisions.A):
            ref = {"type": "ref/prompt", "name": prompt.get("name")}
            argument = {"name": str(names[0]), "value": ""}
            peer.call("completion/complete", {"ref": ref, "argument": argument})
    if not ctx.modern and ctx.offers("logging"):
        peer.call("logging/setLevel", {"level": "debug"})
    if role := ctx.has_role("logging"):
        meta = {revisions.LOG_LEVEL: "debug"} if ctx.modern else None
        peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()}, meta=meta)


def _questions(ctx: Context) -> None:
    peer = ctx.fresh(capabilities={"sampling": {}, "elicitation": {}, "roots": {}})
    for name in ("asks", "asks_state") if ctx.modern else ("sampling", "elicitation"):
        if (role := ctx.has_role(name)) is not None:
            peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})


def _undeclared(ctx: Context, peer: Peer) -> None:
    """Call the tools that ask, as a client that cannot be asked."""
    for name in ("sampling", "elicitation"):
        if not ctx.modern and (role := ctx.has_role(name)) is not None:
            peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})


def _changes(ctx: Context, peer: Peer) -> None:
    if ctx.modern:
        filter = {"toolsListChanged": True, "promptsListChanged": True}
        peer.request("subscriptions/listen", {"notifications": filter}, id="tour-listen")
        peer.marker()
    for name in ("change_tools", "change_prompts"):
        if (role := ctx.has_role(name)) is not None:
            peer.call("tools/call", {"name": role.tool, "arguments": role.arguments()})
    peer.marker()
    peer.marker()
