"""Agents over REST, as Context Harness defines them.

GET /agents/list    POST /agents/{name}/prompt
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw, Struct

from daemon.tools.authority import Principal
from daemon.tools.surface import Agent, Agents
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
from daemon.transports.http.router import Route
from protocol.lifecycle import explain

PREFIX: Final = "/agents/"
_SUFFIX: Final = "/prompt"

_encoder: Final = msgspec.json.Encoder()


class _Body(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    arguments: Raw = Raw(b"{}")


class AgentRoutes:
    """The endpoints under /agents. Without agents the list is empty."""

    def __init__(self, calls: RestCalls, agents: Agents | None) -> None:
        self._calls = calls
        self._agents = agents

    def routes(self) -> dict[str, Route]:
        return {"/agents/list": Route("/agents/list", self._list, ("GET",))}

    def fallback(self) -> dict[str, Route]:
        return {PREFIX: Route("/agents/{name}/prompt", self._prompt, ("POST",))}

    async def _list(
        self, _scope: Scope, _receive: Receive, send: Send, _who: Principal, _access: AccessRecord
    ) -> None:
        listed: Sequence[Agent] = self._agents.list() if self._agents is not None else ()
        await reply(send, 200, _encoder.encode({"agents": listed}))

    async def _prompt(
        self, scope: Scope, receive: Receive, send: Send, principal: Principal, access: AccessRecord
    ) -> None:
        name, suffix, rest = scope["path"].removeprefix(PREFIX).partition(_SUFFIX)
        tool = self._agents.find(name) if self._agents is not None else None
        if tool is None or not suffix or rest:
            raise Refusal(404, f"no agent registered with name: {name[:128]}")
        access.tool = name
        body = await self._calls.read_arguments(headers_of(scope), receive, access)
        try:
            arguments = bytes(msgspec.json.decode(body or b"{}", type=_Body).arguments)
        except (msgspec.MsgspecError, RecursionError, ValueError) as error:
            raise Refusal(400, explain(error, _Body)) from None
        try:
            answer = await self._calls.run(tool, arguments, headers_of(scope), principal, access)
        except Refusal as refusal:
            if refusal.code == "tool_error":
                raise _with_code(refusal, "agent_error") from None
            raise
        await reply(send, 200, b'{"result":' + answer + b"}")


def _with_code(refusal: Refusal, code: str) -> Refusal:
    return Refusal(refusal.status, refusal.message, code=code, headers=refusal.headers)
