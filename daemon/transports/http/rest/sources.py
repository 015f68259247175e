"""Sources over REST, for the owner.

GET and POST /sources    GET and DELETE /sources/{name}    POST and DELETE /sources/{name}/sync

A sync runs in the background, because it may take hours. `GET /sources/{name}` shows its progress
and its outcome; `DELETE /sources/{name}/sync` cancels it.
"""

from typing import Any, Final

import msgspec
from anyio.abc import TaskGroup
from msgspec import Struct

from daemon.exit_codes import LOCKED, UNAVAILABLE, USAGE, Exit
from daemon.sources import administration as verbs
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from daemon.tools.authority import Principal
from daemon.transports.http.edge.access_log import AccessRecord
from daemon.transports.http.edge.messages import Receive, Refusal, Scope, Send, headers_of, reply
from daemon.transports.http.rest.calls import RestCalls
from daemon.transports.http.router import Route
from protocol.lifecycle import explain

PREFIX: Final = "/sources/"
_SYNC: Final = "/sync"
_STATUS: Final = {LOCKED: 409, UNAVAILABLE: 503}


class _NewSource(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    definition: dict[str, Any]


class _SyncBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    full: bool = False
    allow_deletions: bool = False


class SourceRoutes:
    """The endpoints under /sources."""

    def __init__(self, calls: RestCalls, sources: Sources | None, tasks: TaskGroup) -> None:
        self._calls = calls
        self._sources = sources
        self._tasks = tasks

    def routes(self) -> dict[str, Route]:
        return {"/sources": Route("/sources", self._all, ("GET", "POST"))}

    def fallback(self) -> dict[str, Route]:
        return {PREFIX: Route("/sources/{name}", self._one, ("GET", "POST", "DELETE"))}

    async def _all(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        sources = self._for_owner(principal)
        if scope["method"] == "GET":
            await self._answer(verbs.List(), sources, send)
            return
        body = await self._calls.read_arguments(headers_of(scope), receive, access)
        new = _decoded(body, _NewSource)
        await self._answer(verbs.Add(name=new.name, definition=new.definition), sources, send)

    async def _one(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        sources, method = self._for_owner(principal), scope["method"]
        name = scope["path"].removeprefix(PREFIX)
        is_sync = name.endswith(_SYNC)
        name = name.removesuffix(_SYNC)
        if method == ("GET" if is_sync else "POST"):
            allowed = b"POST, DELETE, OPTIONS" if is_sync else b"GET, HEAD, DELETE, OPTIONS"
            raise Refusal(
                405, f"{method} is not allowed on this path", headers=[(b"allow", allowed)]
            )
        if name not in sources.definitions():
            raise Refusal(404, f"there is no source named {name[:64]}")
        if method == "POST":
            body = await self._calls.read_arguments(headers_of(scope), receive, access)
            await self._start(name, _decoded(body or b"{}", _SyncBody), sources, send)
        elif method == "DELETE":
            verb = verbs.Cancel(name=name) if is_sync else verbs.Remove(name=name)
            await self._answer(verb, sources, send)
        else:
            await self._answer(verbs.Show(name=name), sources, send)

    def _for_owner(self, principal: Principal) -> Sources:
        if not principal.is_owner:
            raise Refusal(403, "sources are for the owner")
        if self._sources is None:
            raise Refusal(404, "nothing is served at this path")
        return self._sources

    async def _answer(self, verb: verbs.AnyVerb, sources: Sources, send: Send) -> None:
        try:
            done = await verbs.perform(verb, sources, lambda _progress: None)
        except Exit as exit:
            raise _refusal(exit) from None
        await reply(send, 200, msgspec.json.encode(done))

    async def _start(self, name: str, body: _SyncBody, sources: Sources, send: Send) -> None:
        options = RunOptions(full=body.full, allow_deletions=body.allow_deletions)
        try:
            verbs.start_sync(sources, self._tasks, name, options)
        except Exit as exit:
            raise _refusal(exit) from None
        await reply(send, 200, msgspec.json.encode({"name": name, "started": True}))


def _decoded(body: bytes, type: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=type)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise Refusal(400, explain(error, type)) from None


def _refusal(exit: Exit) -> Refusal:
    status = 409 if exit.code == USAGE and "exists already" in exit.message else 400
    return Refusal(_STATUS.get(exit.code, status), exit.message)
