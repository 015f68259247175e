"""REST, as Context Harness defines it: tools by name, JSON in, JSON out.

    POST /tools/search   POST /tools/get   GET /tools/sources   GET /tools/list
    POST /tools/{name}   any registered tool: `{"result": …}`

This module has only routes, shapes and status codes. A REST call goes through the same gate as an
MCP call, with the same limits, authorisation, schemas and error table; no JSON-RPC message is
built. The three tools that Context Harness gives a route of their own answer bare, all others
inside `result`.
"""

from typing import Final

import msgspec

from daemon.api.registry import ApiOperations
from daemon.config import Settings
from daemon.tools.authority import Principal
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import (
    Receive,
    Refusal,
    Scope,
    Send,
    headers_of,
    reply,
)
from daemon.transports.http.rest.calls import RestCalls
from daemon.transports.http.rest.openapi import document
from daemon.transports.http.router import Route

PREFIX: Final = "/tools/"
#: Tools whose answer is the whole body; the one with GET takes no arguments.
BARE: Final = {"search": "POST", "get": "POST", "sources": "GET"}

_encoder: Final = msgspec.json.Encoder()


class Rest:
    """The endpoints under /tools, and the document that describes them."""

    def __init__(
        self,
        settings: Settings,
        *,
        calls: RestCalls,
        surface: Surface,
        api: ApiOperations | None = None,
        has_sources: bool = False,
    ) -> None:
        self._has_sources = has_sources
        self._frame_bytes = settings.frame_bytes
        self._has_mcp = settings.mcp
        self._calls = calls
        self._api = api.listed if api is not None else []
        self._surface = surface
        names = {spec.name for spec in surface.tools.specs()}
        #: Only Context Harness's own tools; another dialect's tool of that name is ordinary.
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

    async def _describe(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: AccessRecord
    ) -> None:
        await reply(send, 200, self.document())

    def document(self) -> bytes:
        """The OpenAPI document of this daemon."""
        return document(
            self._surface,
            self._bare,
            self._api,
            has_mcp=self._has_mcp,
            has_sources=self._has_sources,
        )

    async def _list(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: AccessRecord
    ) -> None:
        """Every registered tool."""
        tools = [
            {
                "name": spec.name,
                "description": spec.description,
                "builtin": spec.is_built_in,
                "parameters": spec.describe().input_schema,
            }
            for spec in self._surface.tools.specs()
        ]
        await reply(send, 200, _encoder.encode({"tools": tools}))

    async def _call(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        name = scope["path"].removeprefix(PREFIX)
        if "/" in name:
            raise Refusal(404, "nothing is served at this path")
        tool = self._surface.tools.find(name)
        if tool is None:
            raise Refusal(404, f"no tool registered with name: {name[:128]}")
        access.tool = tool.spec.name
        arguments = b"{}"
        if scope["method"] == "POST":
            arguments = await self._calls.read_arguments(headers_of(scope), receive, access)
        body = await self._calls.run(tool, arguments, headers_of(scope), principal, access)
        if name not in self._bare and tool.spec.is_built_in:
            body = b'{"result":' + body + b"}"
        await reply(send, 200, body)
