"""Documents over REST, for clients of Context Harness.

POST /documents    DELETE /documents/{id}
"""

from typing import Final

import msgspec

from daemon.tools.authority import Principal
from daemon.tools.bound_tool import BoundTool
from daemon.tools.surface import Surface
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import Receive, Refusal, Scope, Send, headers_of, reply
from daemon.transports.http.rest.calls import RestCalls
from daemon.transports.http.router import Route

PREFIX: Final = "/documents/"
ADD: Final = "add_document"
REMOVE: Final = "remove_document"


class DocumentRoutes:
    """The endpoints under /documents; they call the tools of the harness dialect."""

    def __init__(self, calls: RestCalls, surface: Surface) -> None:
        self._calls = calls
        self._surface = surface

    def routes(self) -> dict[str, Route]:
        return {"/documents": Route("/documents", self._add, ("POST",))}

    def fallback(self) -> dict[str, Route]:
        return {PREFIX: Route("/documents/{id}", self._remove, ("DELETE",))}

    async def _add(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        tool = self._tool(ADD, access)
        arguments = await self._calls.read_arguments(headers_of(scope), receive, access)
        await reply(
            send, 200, await self._calls.run(tool, arguments, headers_of(scope), principal, access)
        )

    async def _remove(
        self,
        scope: Scope,
        _receive: Receive,
        send: Send,
        principal: Principal,
        access: AccessRecord,
    ) -> None:
        tool = self._tool(REMOVE, access)
        arguments = msgspec.json.encode({"id": scope["path"].removeprefix(PREFIX)})
        await reply(
            send, 200, await self._calls.run(tool, arguments, headers_of(scope), principal, access)
        )

    def _tool(self, name: str, access: AccessRecord) -> BoundTool:
        access.tool = name
        tool = self._surface.tools.find(name)
        if tool is None:
            raise Refusal(404, "the dialect harness is not served")
        return tool
