"""The pages for people: the web UI at `/` and the description of the API at `/docs`.

    GET /             the web UI for a browser; a JSON-RPC client gets the MCP endpoint, as before
    GET /web/{name}   its scripts and styles
    GET /docs         the OpenAPI document as a page

The files contain no memories, so they are served without a token; the page asks for the token and
sends it with each request for data.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import anyio.to_thread

from daemon.tools.authority import Principal
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import (
    CLOSE,
    Receive,
    Refusal,
    Scope,
    Send,
    headers_of,
    reply,
)
from daemon.transports.http.rest import docs_page
from daemon.transports.http.router import ANONYMOUS, Endpoint, Route, unauthorized
from daemon.web import assets

PREFIX: Final = "/web/"

#: Gives the OpenAPI document.
Describe = Callable[[], bytes]


class Pages:
    """The endpoints of the pages. `beside` answers requests to `/` that want no page."""

    def __init__(self, describe: Describe, beside: Route | None = None) -> None:
        self._describe = describe
        self._beside = beside
        self._files: dict[str, tuple[bytes, assets.Headers]] | None = None

    def routes(self) -> dict[str, Route]:
        verbs = ("GET", *(self._beside.verbs if self._beside is not None else ()))
        return {
            "/": Route("/", self._front, tuple(dict.fromkeys(verbs)), is_open=True),
            "/docs": Route("/docs", self._docs, ("GET",), is_open=True),
        }

    def fallback(self) -> dict[str, Route]:
        return {PREFIX: Route("/web/{name}", self._file, ("GET",), is_open=True)}

    async def _front(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        """The page for a browser, which lists text/html in Accept; else the other endpoint."""
        beside = self._beside
        if beside is None or (scope["method"] == "GET" and _wants_page(scope)):
            await self._send(assets.PAGE, send)
            return
        if principal is ANONYMOUS:
            raise unauthorized()
        if access.verb == "HEAD":
            raise Refusal(
                405,
                "HEAD is not allowed here without Accept: text/html",
                headers=[(b"allow", ", ".join([*beside.verbs, "OPTIONS"]).encode()), CLOSE],
            )
        endpoint: Endpoint = beside.endpoint
        access.route = beside.name
        await endpoint(scope, receive, send, principal, access)

    async def _file(
        self,
        scope: Scope,
        _receive: Receive,
        send: Send,
        _who: Principal,
        _access: AccessRecord,
    ) -> None:
        await self._send(scope["path"].removeprefix(PREFIX), send)

    async def _docs(
        self, _scope: Scope, _receive: Receive, send: Send, who: Principal, _access: AccessRecord
    ) -> None:
        render = partial(docs_page.render, self._describe(), is_public=who is ANONYMOUS)
        page = await anyio.to_thread.run_sync(render)
        kind = (b"content-type", assets.TYPES[".html"])
        await reply(send, 200, page, [kind, *assets.page_headers(docs_page.POLICY)])

    async def _send(self, name: str, send: Send) -> None:
        if self._files is None:
            self._files = await anyio.to_thread.run_sync(assets.load)
        found = self._files.get(name)
        if found is None:
            raise Refusal(404, "nothing is served at this path")
        body, headers = found
        await reply(send, 200, body, headers)


def _wants_page(scope: Scope) -> bool:
    accepted = ",".join(headers_of(scope).get("accept", ())).lower()
    return any(part.split(";")[0].strip() == "text/html" for part in accepted.split(","))
