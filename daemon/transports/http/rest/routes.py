"""REST, to the letter of seed 004: tools by name, JSON in, JSON out.

    POST /tools/search   POST /tools/get   GET /tools/sources   GET /tools/list
    POST /tools/{name}   any registered tool: `{"result": …}`

REST joins where a tool is called (DESIGN section 2): a tool's name and raw arguments, with the same
limiter, authorisation and schemas as everywhere else. No JSON-RPC envelope is ever built. The three
tools that seed 004 gives routes of their own answer bare, all others inside `result`.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
from msgspec import UNSET, Raw

from daemon.bridge.retry_advice import advice
from daemon.rpc.dispatcher import contained
from daemon.rpc.failures import RateLimited, error_for, is_known, reason_of, status_of
from daemon.tools.authority import Principal
from daemon.tools.bound_tool import Answer, BoundTool
from daemon.tools.errors import ArgumentsRefused, Missing, ToolFailure
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import Access
from daemon.transports.http.edge.messages import (
    CLOSE,
    Receive,
    Refusal,
    Scope,
    Send,
    headers_of,
    read_body,
    reply,
    require_json,
)
from daemon.transports.http.mcp.sessions import HttpSessions, Visitor
from daemon.transports.http.rest.openapi import document
from daemon.transports.http.router import Route
from protocol.errors import ProtocolError, sentence
from protocol.jsonrpc import not_json, unfit
from protocol.lifecycle import ClientCapabilities, Implementation
from protocol.mcp import CallToolResult, InputRequired, TextContent
from protocol.revisions import LATEST_LEGACY, Revision

if TYPE_CHECKING:
    from daemon.rpc.hub import Hub

PREFIX: Final = "/tools/"
#: Tools whose answer is the whole body; the one with GET takes no arguments.
BARE: Final = {"search": "POST", "get": "POST", "sources": "GET"}

_encoder: Final = msgspec.json.Encoder()


class RestContext:
    """One REST call, from a tool's side: no client to talk to besides answering."""

    __slots__ = ("_surface", "_visitor")

    def __init__(self, visitor: Visitor, surface: Surface) -> None:
        self._visitor = visitor
        self._surface = surface

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
    def inputs(self) -> dict[str, Any]:
        return {}

    async def session(self) -> str:
        return await self._visitor.session()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Nobody listens while a REST call runs."""

    async def log(self, level: str, data: Any) -> None:
        """As `progress`."""

    async def ask(self, method: str, params: dict[str, Any]) -> Any:
        raise ToolFailure("a REST client cannot be asked anything; use MCP for this tool")

    def announce(self, change: str, uri: str | None = None) -> None:
        self._visitor.hub.changes.announce(self._surface, change, uri)

    def changed(self, bank: str) -> None:
        self._visitor.hub.changes.bank_changed(bank)

    def detach(self) -> None:
        """There is nothing to come back to."""


class Rest:
    """The endpoints under /tools, and the document that describes them."""

    def __init__(self, hub: "Hub", sessions: HttpSessions) -> None:
        self._hub = hub
        self._sessions = sessions
        self._surface = hub.surface_for("")
        self._running: set[anyio.CancelScope] = set()
        names = {spec.name for spec in self._surface.tools.specs()}
        #: Only where Context Harness is served; by another's name or alias, a tool is like any.
        self._bare = {name: verb for name, verb in BARE.items() if name in names}

    def routes(self) -> dict[str, Route]:
        found = {
            "/tools/list": Route("/tools/list", self._list, ("GET",)),
            "/openapi.json": Route("/openapi.json", self._describe, ("GET",)),
        }
        for name, verb in self._bare.items():
            found[PREFIX + name] = Route(PREFIX + name, self._call, (verb,))
        return found

    def fallback(self) -> dict[str, Route]:
        return {PREFIX: Route("/tools/{name}", self._call, ("POST",))}

    def close(self) -> None:
        """The daemon is leaving: what runs is answered now."""
        for scope in self._running:
            scope.cancel()

    async def _describe(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: Access
    ) -> None:
        body = document(self._surface, self._bare, has_mcp=self._hub.settings.mcp)
        await reply(send, 200, body)

    async def _list(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: Access
    ) -> None:
        """Seed 004: every registered tool."""
        tools = [
            {
                "name": spec.name,
                "description": spec.description,
                "builtin": True,
                "parameters": spec.describe().input_schema,
            }
            for spec in self._surface.tools.specs()
        ]
        await reply(send, 200, _encoder.encode({"tools": tools}))

    async def _call(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: Access
    ) -> None:
        name = scope["path"].removeprefix(PREFIX)
        tool = self._surface.tools.find(name)
        if tool is None:
            raise Refusal(404, f"no tool registered with name: {name[:128]}")
        access.tool = tool.spec.name
        arguments = b"{}"
        if scope["method"] == "POST":
            headers = headers_of(scope)
            require_json(headers)
            arguments = await read_body(headers, receive, self._hub.settings.frame_bytes)
            access.took = len(arguments)
            _require_object(arguments)
        visitor = self._sessions.visitor(principal, "")
        with self._hub.dispatcher.span("rest", access.traceparent):
            body = await self._run(tool, arguments, visitor)
        if name not in self._bare:
            body = b'{"result":' + body + b"}"
        await reply(send, 200, body)

    async def _run(self, tool: BoundTool, arguments: bytes, visitor: Visitor) -> bytes:
        """Run a tool within its time; what it gives, as JSON, or the `Refusal` it amounts to."""
        started = self._hub.clock()
        given: list[Answer] = []

        async def work() -> None:
            window = visitor.window
            wait = window.admit() if window is not None else 0.0
            if wait:
                raise RateLimited(self._hub.limiter.limit, wait)
            answer = tool.call(Raw(arguments), RestContext(visitor, self._surface))
            given.append(await answer if isinstance(answer, Awaitable) else answer)

        self._hub.begin()
        failure: Exception | None = None
        stop = anyio.CancelScope()
        self._running.add(stop)
        try:
            with stop, anyio.fail_after(self._hub.settings.call_seconds):
                failure = await contained(work())
            if stop.cancelled_caught:
                words = advice(tool.spec.is_retry_safe)
                failure = Refusal(503, f"the daemon is stopping; {words}", headers=[CLOSE])
        except TimeoutError as late:
            failure = late
        finally:
            self._running.discard(stop)
            self._hub.finish()
            outcome = "error" if failure is not None else "ok"
            seconds = self._hub.clock() - started
            self._hub.meter.call_done("rest", tool.spec.name, outcome, seconds)
        if failure is not None:
            raise self._refusal(failure, tool)
        return _json_of(given[0])

    def _refusal(self, failure: Exception, tool: BoundTool) -> Refusal:
        """What a failure amounts to, said without the words of a protocol nobody speaks here."""
        reason = sentence(reason_of(tool, failure))
        match failure:
            case Refusal():
                return failure
            case TimeoutError():
                seconds = self._hub.settings.call_seconds
                return Refusal(408, f"the tool did not answer in {seconds:g} s")
            case ArgumentsRefused():
                return Refusal(400, reason)
            case Missing():
                return Refusal(404, reason)
            case ToolFailure():
                return Refusal(400, reason, code="tool_error")
            case RateLimited():
                after = b"%d" % max(1, int(failure.seconds + 0.999))
                return Refusal(429, reason, headers=[(b"retry-after", after)])
            case ProtocolError():
                return Refusal(400, sentence(failure.details))
            case _ if is_known(failure):
                return Refusal(status_of(failure), reason)
            case _:
                return Refusal(500, error_for(failure, None, method="rest").message)


def _require_object(body: bytes) -> None:
    """Strict JSON, an object: the same rules as for messages."""
    trouble = unfit(body)
    if trouble:
        raise Refusal(400, trouble)
    try:
        msgspec.json.decode(body, type=dict[str, Raw])
    except msgspec.ValidationError:
        raise Refusal(400, "the body must be a JSON object") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Refusal(400, not_json(body, error)) from None


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
