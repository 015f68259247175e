"""`resources/list`, `resources/templates/list`, `resources/read` and legacy subscriptions."""

from typing import Final

import msgspec

from daemon.rpc.caller import Caller
from daemon.rpc.context import CallContext
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import FLEETING, STEADY, offered, require_first_page, revision_of
from daemon.rpc.subscriptions import MAX_SUBSCRIPTIONS, Subscriptions
from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.lifecycle import decode_params
from protocol.shape import Shaper, shape_listing

_uri: Final = msgspec.json.Decoder(mcp.UriParams)
_encoder: Final = msgspec.json.Encoder()


class ResourceMethods:
    def __init__(self, shaper: Shaper, subscriptions: Subscriptions) -> None:
        self._shaper = shaper
        self._subscriptions = subscriptions

    def table(self) -> dict[str, Method]:
        return {
            "resources/list": Method(self._list),
            "resources/templates/list": Method(self._list_templates),
            "resources/read": Method(self._read),
            "resources/subscribe": Method(self._subscribe),
            "resources/unsubscribe": Method(self._unsubscribe),
        }

    async def _list(self, call: Call, caller: Caller) -> bytes:
        require_first_page(call)
        revision = revision_of(call)
        context = CallContext(call, caller, self._subscriptions)
        found = await offered(caller.surface.resources).list(context)
        body = _encoder.encode({"resources": shape_listing(found, revision)})
        return self._shaper.result(body, revision, FLEETING)

    def _list_templates(self, call: Call, caller: Caller) -> bytes:
        require_first_page(call)
        revision = revision_of(call)
        found = offered(caller.surface.resources).templates()
        body = _encoder.encode({"resourceTemplates": shape_listing(found, revision)})
        return self._shaper.result(body, revision, STEADY)

    async def _read(self, call: Call, caller: Caller) -> bytes:
        found = await self._find(call, caller, decode_params(_uri, call.params).uri)
        return self._shaper.result(found, revision_of(call), FLEETING)

    async def _find(self, call: Call, caller: Caller, uri: str) -> mcp.ReadResourceResult:
        context = CallContext(call, caller, self._subscriptions)
        found = await offered(caller.surface.resources).read(uri, context)
        if found is None:
            raise ProtocolError(Fault.RESOURCE_NOT_FOUND, uri[:200], uri=uri)
        return found

    async def _subscribe(self, call: Call, caller: Caller) -> bytes:
        uri = decode_params(_uri, call.params).uri
        await self._find(call, caller, uri)
        followed = caller.follower.uris
        if len(followed) >= MAX_SUBSCRIPTIONS and uri not in followed:
            raise ProtocolError(Fault.OVERLOADED, f"at most {MAX_SUBSCRIPTIONS} subscriptions")
        followed.add(uri)
        return b"{}"

    def _unsubscribe(self, call: Call, caller: Caller) -> bytes:
        caller.follower.uris.discard(decode_params(_uri, call.params).uri)
        return b"{}"
