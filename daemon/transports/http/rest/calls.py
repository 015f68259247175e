"""REST calls of tools: the context that a tool sees, the way through the gate, plain JSON out.

A REST call goes through the same gate as an MCP call, with the same limits, authorisation, schemas
and error table; no JSON-RPC message is built.
"""

from collections.abc import Awaitable
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from daemon.bridge.retry_advice import advice
from daemon.rpc.failures import Failure, reason_of
from daemon.rpc.gate import Gate, Method, Pending
from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.subscriptions import Subscriptions
from daemon.tools.authority import Principal
from daemon.tools.bound_tool import Answer, BoundTool
from daemon.tools.errors import ArgumentsRefused, ToolFailure
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import CLOSE, Receive, Refusal, read_body, require_json
from daemon.transports.http.mcp.refusals import retry_after
from daemon.transports.http.mcp.sessions import HttpSessions
from daemon.transports.http.mcp.visitor import Visitor
from protocol.connection import Call
from protocol.headers import Headers
from protocol.jsonrpc import not_json, unfit
from protocol.lifecycle import ClientCapabilities, Implementation, Meta
from protocol.mcp import CallToolResult, InputRequired, TextContent
from protocol.revisions import LATEST_LEGACY, Revision
from store.errors import InvalidInput

_encoder: Final = msgspec.json.Encoder()


class RestContext:
    """A REST call as its tool sees it: the client can be sent nothing but the answer."""

    __slots__ = (
        "_subscriptions",
        "_surface",
        "_visitor",
        "answer",
        "headers",
        "is_limited",
        "tool",
    )

    def __init__(
        self,
        tool: BoundTool,
        visitor: Visitor,
        surface: Surface,
        subscriptions: Subscriptions,
        headers: Headers,
        *,
        is_limited: bool = True,
    ) -> None:
        self.tool = tool
        self.is_limited = is_limited
        self.headers: Headers | None = headers
        #: Set when the tool has finished.
        self.answer: Answer | None = None
        self._visitor = visitor
        self._surface = surface
        self._subscriptions = subscriptions

    revision: Revision = LATEST_LEGACY
    client: Implementation | None = None
    capabilities = ClientCapabilities()
    transport = "http"
    state: str | None = None

    @property
    def principal(self) -> Principal:
        return self._visitor.principal

    @property
    def bank(self) -> str:
        return self._visitor.bank

    @property
    def window(self) -> SlidingWindow | None:
        return self._visitor.window if self.is_limited else None

    @property
    def session_id(self) -> str | None:
        return self._visitor.session_id

    @property
    def inputs(self) -> dict[str, Any]:
        return {}

    async def session(self) -> str:
        return await self._visitor.session()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """REST has no progress messages."""

    async def log(self, level: str, data: Any) -> None:
        """REST has no log messages."""

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        raise ToolFailure("a REST client cannot be asked anything; use MCP for this tool")

    def announce(self, change: str, uri: str | None = None) -> None:
        self._subscriptions.announce(self._surface, change, uri)

    def changed(self, bank: str) -> None:
        self._subscriptions.bank_changed(bank)

    def detach(self) -> None:
        """Nothing to do: a REST answer cannot be fetched later."""


class RestCalls:
    """Runs tools for REST endpoints."""

    def __init__(
        self,
        *,
        gate: Gate,
        sessions: HttpSessions,
        surface: Surface,
        subscriptions: Subscriptions,
        frame_bytes: int,
    ) -> None:
        self._frame_bytes = frame_bytes
        self._gate = gate
        self._sessions = sessions
        self._surface = surface
        self._subscriptions = subscriptions
        self._method = Method(_run, has_deadline=True, waits_for_engine=True)
        self._long_method = Method(_run)
        self._running: set[Pending] = set()

    def close(self) -> None:
        """The daemon is leaving: answer the running calls now, with an error."""
        for pending in self._running:
            pending.cancel()

    async def read_arguments(
        self, headers: dict[str, list[str]], receive: Receive, access: AccessRecord
    ) -> bytes:
        """The body of a request, which must be JSON."""
        require_json(headers)
        arguments = await read_body(headers, receive, self._frame_bytes)
        access.bytes_in = len(arguments)
        problem = unfit(arguments)
        if problem:
            raise Refusal(400, problem)
        return arguments

    async def run(
        self,
        tool: BoundTool,
        arguments: bytes,
        headers: Headers,
        principal: Principal,
        access: AccessRecord,
        *,
        is_long: bool = False,
        is_limited: bool = True,
    ) -> bytes:
        """The JSON of a tool's answer, or the `Refusal` that its failure amounts to.

        A call that is not limited takes no slot of the caller's rate limiter.
        """
        access.tool = tool.spec.name
        meta = Meta(traceparent=access.traceparent)
        call = Call(b"", b"", "rest", arguments, None, meta, tool=tool.spec.name)
        visitor = self._sessions.visitor(principal, "")
        context = RestContext(
            tool, visitor, self._surface, self._subscriptions, headers, is_limited=is_limited
        )
        method = self._long_method if is_long else self._method
        return _json_of(await self._through_gate(method, call, context))

    async def _through_gate(self, method: Method, call: Call, context: RestContext) -> Answer:
        """Pass a call through the gate; its answer, or the `Refusal` its failure amounts to."""
        outcome = self._gate.begin(method, call, context, 1)
        if isinstance(outcome, Pending):
            pending = outcome
            self._running.add(pending)
            try:
                with pending:
                    outcome = await pending.outcome
            finally:
                self._running.discard(pending)
            if pending.was_cancelled:
                words = advice(context.tool.spec.is_retry_safe)
                raise Refusal(503, f"the daemon is stopping; {words}", headers=[CLOSE])
        if isinstance(outcome, Failure):
            headers = [retry_after(outcome)] if outcome.retry_seconds else []
            raise Refusal(outcome.status, outcome.reason, code=outcome.code, headers=headers)
        assert context.answer is not None
        return context.answer


def _run(call: Call, context: RestContext) -> bytes | Awaitable[bytes]:
    """The handler behind the gate: decode and authorise the arguments, run the tool."""
    tool = context.tool
    try:
        answer = tool.call(Raw(call.params), context)
    except ArgumentsRefused:
        _require_object(call.params)
        raise
    except InvalidInput as failure:
        failure.args = (reason_of(tool, failure),)
        raise
    if isinstance(answer, Awaitable):
        return _finish(answer, context)
    context.answer = answer
    return b""


async def _finish(pending: Awaitable[Answer], context: RestContext) -> bytes:
    try:
        context.answer = await pending
    except InvalidInput as failure:
        failure.args = (reason_of(context.tool, failure),)
        raise
    return b""


def _require_object(body: bytes) -> None:
    """Explain why a body is not a JSON object; called only after its arguments were rejected."""
    try:
        msgspec.json.decode(body, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise ArgumentsRefused("the body must be a JSON object") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise ArgumentsRefused(not_json(body, error)) from None


def _json_of(answer: Answer) -> bytes:
    """A tool's answer as plain JSON: its structure, its text, or its content blocks."""
    if isinstance(answer, InputRequired):
        raise Refusal(400, "this tool needs a client that can be asked; use MCP", code="tool_error")
    if answer.is_error:
        raise Refusal(400, _text_of(answer), code="tool_error")
    if answer.structured_content is not UNSET:
        return _encoder.encode(answer.structured_content)
    if all(isinstance(block, TextContent) for block in answer.content):
        return _encoder.encode(_text_of(answer))
    return _encoder.encode(answer.content)


def _text_of(answer: CallToolResult) -> str:
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))
