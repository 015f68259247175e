"""The methods: each takes a call, decodes what it needs, and returns finished JSON.

What a method is called and which eras have it is decided by `daemon.tools.surface`; by the time a
call gets here, it may be made.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import anyio.lowlevel
import msgspec
from msgspec import UNSET, Meta, Raw, Struct

from daemon.exit_codes import CONFIG
from daemon.memory.bank_administration import AnyVerb, refused
from daemon.operations.health import glance
from daemon.rpc.caller import Caller
from daemon.rpc.context import CallContext
from daemon.rpc.dispatcher import Method
from daemon.rpc.failures import refusal
from daemon.rpc.subscriptions import Listener, honoured
from daemon.tools.authority import Forbidden
from daemon.tools.bound_tool import Answer, BoundTool
from daemon.tools.confirmation import DECLINED, can_confirm, confirmed
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from daemon.tools.progress import counted
from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.headers import check_arguments
from protocol.lifecycle import decode_params
from protocol.mcp import CallToolResult, InputRequired
from protocol.revisions import LATEST_LEGACY, SUBSCRIPTION_ID, SUPPORTED, Revision
from protocol.shape import CacheHint, shape_listing
from store.errors import StoreError

if TYPE_CHECKING:
    from daemon.rpc.peer import Peer

_call_tool: Final = msgspec.json.Decoder(mcp.CallToolParams)
_list: Final = msgspec.json.Decoder(mcp.ListParams)
_uri: Final = msgspec.json.Decoder(mcp.UriParams)
_get_prompt: Final = msgspec.json.Decoder(mcp.GetPromptParams)
_complete: Final = msgspec.json.Decoder(mcp.CompleteParams)
_set_level: Final = msgspec.json.Decoder(mcp.SetLevelParams)
_listen: Final = msgspec.json.Decoder(mcp.ListenParams)
_encoder: Final = msgspec.json.Encoder()

#: Lists and discovery change only with a new daemon; what is read may change any time.
STEADY: Final = CacheHint(ttl_ms=60_000)
FLEETING: Final = CacheHint(ttl_ms=0)

MAX_LISTENS: Final = 64
#: Resources a legacy connection may follow at once.
MAX_SUBSCRIPTIONS: Final = 1024
#: What a tool raises when it understood; anything else is a crash.
SAYS_NO: Final = (ToolFailure, ArgumentsRefused, Forbidden, StoreError)


def _initialize(call: Call, caller: Caller) -> bytes:
    revision = call.revision or LATEST_LEGACY
    return _encoder.encode(
        mcp.InitializeResult(
            protocol_version=revision.date,
            capabilities=caller.surface.capabilities(revision),
            server_info=caller.hub.shaper.server_info(revision),
            instructions=caller.surface.instructions or UNSET,
        )
    )


def _discover(call: Call, caller: Caller) -> bytes:
    revision = _revision(call)
    result = mcp.DiscoverResult(
        supported_versions=SUPPORTED,
        capabilities=caller.surface.capabilities(revision),
        instructions=caller.surface.instructions or UNSET,
    )
    return caller.hub.shaper.result(result, revision, STEADY)


def _ping(_call: Call, _caller: Caller) -> bytes:
    return b"{}"


async def _health(call: Call, caller: Caller) -> bytes:
    health = await caller.hub.health(caller.surface)
    told = health if caller.principal.is_owner else glance(health)
    return caller.hub.shaper.result(told, call.revision)


# --- tools -----------------------------------------------------------------------------------


def _list_tools(call: Call, caller: Caller) -> bytes:
    _one_page(call)
    revision = _revision(call)
    return caller.hub.shaper.result(caller.surface.tools.listing(revision), revision, STEADY)


def _call(call: Call, caller: Caller) -> bytes | Awaitable[bytes]:
    params = decode_params(_call_tool, call.params)
    tool = caller.surface.tools.find(params.name)
    if tool is None:
        raise ProtocolError(Fault.TOOL_NOT_FOUND, params.name, tool=params.name)
    call.tool = tool.spec.name
    if bytes(params.arguments)[:1] != b"{":
        raise ProtocolError(Fault.INVALID_PARAMS, "arguments: must be an object")
    _check_needs(tool, call)
    if tool.mirrored and caller.headers is not None:
        check_arguments(caller.headers, tool.mirrored, bytes(params.arguments))
    context = CallContext(call, caller, params.input_responses, params.request_state)
    revision = _revision(call)
    try:
        typed = tool.admit(params.arguments, context)
        if tool.spec.destructive and tool.spec.would_destroy(typed) and can_confirm(context):
            return _confirm_first(tool, typed, context, caller)
        given = tool.run(typed, context)
    except SAYS_NO as failure:
        return _tool_answer(refusal(tool, failure, revision), revision, caller)
    if isinstance(given, Awaitable):
        return _call_later(tool, given, revision, caller)
    return _tool_answer(given, revision, caller)


async def _call_later(
    tool: BoundTool, given: Awaitable[Answer], revision: Revision, caller: Caller
) -> bytes:
    try:
        answer = await given
    except SAYS_NO as failure:
        answer = refusal(tool, failure, revision)
    return _tool_answer(answer, revision, caller)


async def _confirm_first(
    tool: BoundTool, typed: Any, context: CallContext, caller: Caller
) -> bytes:
    """A call that destroys, and that may be made: a person is asked before it begins."""
    revision = context.revision
    try:
        said = await confirmed(tool.spec, context)
        if isinstance(said, InputRequired):
            return _tool_answer(said, revision, caller)
        if not said:
            raise ToolFailure(DECLINED)
        given = tool.run(typed, context)
        answer = await given if isinstance(given, Awaitable) else given
    except SAYS_NO as failure:
        answer = refusal(tool, failure, revision)
    return _tool_answer(answer, revision, caller)


def _tool_answer(answer: Answer, revision: Revision, caller: Caller) -> bytes:
    if isinstance(answer, CallToolResult):
        return caller.hub.shaper.tool_result(answer, revision)
    return caller.hub.shaper.result(answer, revision)


def _check_needs(tool: BoundTool, call: Call) -> None:
    """A modern request must declare what the tool will ask of the client (V20)."""
    if not tool.spec.needs or not _revision(call).modern:
        return
    declared = call.meta.capabilities
    missing = [name for name in tool.spec.needs if declared is None or not declared.has(name)]
    if missing:
        raise ProtocolError(
            Fault.MISSING_CAPABILITY,
            ", ".join(missing),
            requiredCapabilities={name: {} for name in missing},
        )


# --- resources, prompts, completion, logging -------------------------------------------------


def _listing(
    name: str, entries: Callable[[Caller], Sequence[Struct]]
) -> Callable[[Call, Caller], bytes]:
    def handle(call: Call, caller: Caller) -> bytes:
        _one_page(call)
        revision = _revision(call)
        body = _encoder.encode({name: shape_listing(entries(caller), revision)})
        return caller.hub.shaper.result(body, revision, STEADY)

    return handle


async def _list_resources(call: Call, caller: Caller) -> bytes:
    _one_page(call)
    revision = _revision(call)
    found = await _of(caller.surface.resources).list(CallContext(call, caller))
    body = _encoder.encode({"resources": shape_listing(found, revision)})
    return caller.hub.shaper.result(body, revision, FLEETING)


async def _read_resource(call: Call, caller: Caller) -> bytes:
    uri = decode_params(_uri, call.params).uri
    assert caller.surface.resources is not None
    found = await caller.surface.resources.read(uri, CallContext(call, caller))
    if found is None:
        raise ProtocolError(Fault.RESOURCE_NOT_FOUND, uri[:200], uri=uri)
    return caller.hub.shaper.result(found, _revision(call), FLEETING)


async def _subscribe(call: Call, caller: Caller) -> bytes:
    uri = decode_params(_uri, call.params).uri
    assert caller.surface.resources is not None
    if await caller.surface.resources.read(uri, CallContext(call, caller)) is None:
        raise ProtocolError(Fault.RESOURCE_NOT_FOUND, uri[:200], uri=uri)
    followed = caller.follower.uris
    if len(followed) >= MAX_SUBSCRIPTIONS and uri not in followed:
        raise ProtocolError(Fault.OVERLOADED, f"at most {MAX_SUBSCRIPTIONS} subscriptions")
    followed.add(uri)
    return b"{}"


def _unsubscribe(call: Call, caller: Caller) -> bytes:
    caller.follower.uris.discard(decode_params(_uri, call.params).uri)
    return b"{}"


def _get_prompt_messages(call: Call, caller: Caller) -> bytes | Awaitable[bytes]:
    params = decode_params(_get_prompt, call.params)
    assert caller.surface.prompts is not None
    known = {prompt.name: prompt for prompt in caller.surface.prompts.list()}
    prompt = known.get(params.name)
    if prompt is None:
        raise ProtocolError(Fault.INVALID_PARAMS, f"name: no prompt named {params.name!r}")
    for argument in prompt.arguments or []:
        if argument.required is True and argument.name not in params.arguments:
            raise ProtocolError(
                Fault.INVALID_PARAMS, f"arguments.{argument.name}: required field is missing"
            )
    context = CallContext(call, caller, params.input_responses, params.request_state)
    given = caller.surface.prompts.get(params.name, params.arguments, context)
    if isinstance(given, Awaitable):
        return _prompt_later(given, call, caller)
    return _prompt_answer(given, call, caller)


async def _prompt_later(given: Awaitable[Any], call: Call, caller: Caller) -> bytes:
    return _prompt_answer(await given, call, caller)


def _prompt_answer(given: Any, call: Call, caller: Caller) -> bytes:
    if isinstance(given, mcp.GetPromptResult):
        return caller.hub.shaper.prompt_result(given, _revision(call))
    return caller.hub.shaper.result(given, _revision(call))


async def _complete_argument(call: Call, caller: Caller) -> bytes:
    params = decode_params(_complete, call.params)
    assert caller.surface.completions is not None
    found = await caller.surface.completions.complete(params, CallContext(call, caller))
    if found is None:
        raise ProtocolError(Fault.INVALID_PARAMS, "ref: nothing to complete by that name")
    return caller.hub.shaper.result(mcp.CompleteResult(completion=found), _revision(call))


def _set_log_level(call: Call, caller: Caller) -> bytes:
    caller.log_level = decode_params(_set_level, call.params).level
    return b"{}"


# --- subscriptions ---------------------------------------------------------------------------


async def _listen_for_changes(call: Call, caller: Caller) -> bytes:
    """Acknowledge, then hold the request open until it is cancelled or one of us leaves."""
    params = decode_params(_listen, call.params)
    wants = honoured(params.notifications, caller.surface, caller.principal)
    if caller.listens >= MAX_LISTENS:
        raise ProtocolError(Fault.OVERLOADED, f"at most {MAX_LISTENS} subscriptions a connection")

    def send(frame: bytes) -> None:
        caller.tell(call, frame)

    listener = Listener(marker=call.id, wants=wants, send=send)
    caller.listens += 1
    caller.hub.changes.listen(listener)
    try:
        listener.tell("notifications/subscriptions/acknowledged", {"notifications": wants})
        await caller.leaving.wait()
    finally:
        caller.hub.changes.leave(listener)
        caller.listens -= 1
    caller.end_listening(call)
    closing = {SUBSCRIPTION_ID: Raw(call.id), **caller.hub.shaper.stamp}
    return b'{"resultType":"complete","_meta":' + _encoder.encode(closing) + b"}"


# --- between recalld's own processes ---------------------------------------------------------


class AttachParams(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a bridge says first. After a restart: its session, and what its client had asked for.

    That is said here rather than asked for again, so that it costs the client none of its requests.
    """

    version: str
    session: str | None = None
    dialects: str = ""
    bank: str = ""
    fixtures: bool = False
    log_level: mcp.LogLevel | None = None
    uris: Annotated[list[str], Meta(max_length=MAX_SUBSCRIPTIONS)] = []


_attach_params: Final = msgspec.json.Decoder(AttachParams)


async def _attach(call: Call, peer: "Peer") -> bytes:
    params = decode_params(_attach_params, call.params)
    peer.adopt(params)
    return _encoder.encode(
        {
            "version": peer.hub.version,
            "pid": peer.hub.pid,
            "session": await peer.session(),
            "retrySafe": peer.surface.tools.retry_safe(),
        }
    )


async def _status(_call: Call, caller: Caller) -> bytes:
    return _encoder.encode(await caller.hub.status(besides=1))


async def _stop(_call: Call, caller: Caller) -> bytes:
    caller.hub.stop()
    await anyio.lowlevel.checkpoint()
    return _encoder.encode({"stopping": True, "pid": caller.hub.pid})


class BankParams(Struct, frozen=True, kw_only=True):
    """A verb of `recalld bank`, and the data directory its caller means by it."""

    data: str
    do: AnyVerb


_bank_params: Final = msgspec.json.Decoder(BankParams)


async def _bank(call: Call, caller: Caller) -> bytes:
    hub = caller.hub
    params = decode_params(_bank_params, call.params)
    care, verb = hub.care, params.do
    if care is None:
        raise ProtocolError(Fault.METHOD_NOT_FOUND, call.method)
    _need_same(params.data, str(hub.settings.directories.data))
    try:
        done = await counted(
            CallContext(call, caller), "done", lambda progress: care.perform(verb, progress)
        )
    except StoreError as failure:
        exit = refused(failure, verb)
        raise ProtocolError(Fault.DATABASE_ERROR, exit.message, exit=exit.code) from failure
    for name in verb.banks if verb.is_change else ():
        hub.changes.bank_changed(name)
    return _encoder.encode(done)


def _need_same(meant: str, ours: str) -> None:
    """What is destroyed must be what was meant: the socket alone does not say whose data it is."""
    if os.path.realpath(meant) != os.path.realpath(ours):
        details = f"the daemon at that socket serves {ours}, not {meant}; name another socket"
        raise ProtocolError(Fault.INVALID_PARAMS, details, exit=CONFIG)


# --- the table -------------------------------------------------------------------------------

#: Offered only on the unix socket, whose peers are the owner's own processes.
PRIVATE: Final = frozenset({"recalld/attach", "recalld/status", "recalld/stop", "recalld/bank"})

METHODS: Final[dict[str, Method]] = {
    "initialize": Method(_initialize, counted=False),
    "server/discover": Method(_discover, counted=False),
    "ping": Method(_ping, counted=False),
    "health/check": Method(_health, counted=False),
    "tools/list": Method(_list_tools),
    "tools/call": Method(_call),
    "resources/list": Method(_list_resources),
    "resources/templates/list": Method(
        _listing("resourceTemplates", lambda caller: _of(caller.surface.resources).templates())
    ),
    "resources/read": Method(_read_resource),
    "resources/subscribe": Method(_subscribe),
    "resources/unsubscribe": Method(_unsubscribe),
    "prompts/list": Method(_listing("prompts", lambda caller: _of(caller.surface.prompts).list())),
    "prompts/get": Method(_get_prompt_messages),
    "completion/complete": Method(_complete_argument),
    "logging/setLevel": Method(_set_log_level),
    "subscriptions/listen": Method(_listen_for_changes),
    "recalld/attach": Method(_attach, counted=False),
    "recalld/status": Method(_status, counted=False),
    "recalld/stop": Method(_stop, counted=False),
    "recalld/bank": Method(_bank, counted=False),
}


def _of(offered: Any) -> Any:
    """A group the surface is known to offer, since the method was admitted."""
    assert offered is not None
    return offered


def _revision(call: Call) -> Revision:
    return call.revision or LATEST_LEGACY


def _one_page(call: Call) -> None:
    """Our lists have one page: a cursor that is not the beginning was never given out."""
    if call.params == b"{}":
        return
    cursor = decode_params(_list, call.params).cursor
    if cursor:
        raise ProtocolError(Fault.INVALID_PARAMS, "cursor: not one that this list gave out")
