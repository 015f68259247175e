"""`prompts/list`, `prompts/get` and `completion/complete`."""

from collections.abc import Awaitable
from typing import Any, Final

import msgspec

from daemon.rpc.caller import Caller
from daemon.rpc.context import CallContext
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import STEADY, offered, require_first_page, revision_of
from daemon.rpc.subscriptions import Subscriptions
from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.lifecycle import decode_params
from protocol.shape import Shaper, shape_listing

_get_prompt: Final = msgspec.json.Decoder(mcp.GetPromptParams)
_complete: Final = msgspec.json.Decoder(mcp.CompleteParams)
_encoder: Final = msgspec.json.Encoder()


class PromptMethods:
    def __init__(self, shaper: Shaper, subscriptions: Subscriptions) -> None:
        self._shaper = shaper
        self._subscriptions = subscriptions

    def table(self) -> dict[str, Method]:
        return {
            "prompts/list": Method(self._list),
            "prompts/get": Method(self._get),
            "completion/complete": Method(self._complete),
        }

    def _list(self, call: Call, caller: Caller) -> bytes:
        require_first_page(call)
        revision = revision_of(call)
        found = offered(caller.surface.prompts).list()
        body = _encoder.encode({"prompts": shape_listing(found, revision)})
        return self._shaper.result(body, revision, STEADY)

    def _get(self, call: Call, caller: Caller) -> bytes | Awaitable[bytes]:
        params = decode_params(_get_prompt, call.params)
        prompts = offered(caller.surface.prompts)
        known = {prompt.name: prompt for prompt in prompts.list()}
        prompt = known.get(params.name)
        if prompt is None:
            raise ProtocolError(Fault.INVALID_PARAMS, f"name: no prompt named {params.name!r}")
        for argument in prompt.arguments or []:
            if argument.required is True and argument.name not in params.arguments:
                raise ProtocolError(
                    Fault.INVALID_PARAMS, f"arguments.{argument.name}: required field is missing"
                )
        context = CallContext(
            call, caller, self._subscriptions, params.input_responses, params.request_state
        )
        result = prompts.get(params.name, params.arguments, context)
        if isinstance(result, Awaitable):
            return self._finish(result, call)
        return self._shape(result, call)

    async def _finish(self, pending: Awaitable[Any], call: Call) -> bytes:
        return self._shape(await pending, call)

    def _shape(self, result: Any, call: Call) -> bytes:
        if isinstance(result, mcp.GetPromptResult):
            return self._shaper.prompt_result(result, revision_of(call))
        return self._shaper.result(result, revision_of(call))

    async def _complete(self, call: Call, caller: Caller) -> bytes:
        params = decode_params(_complete, call.params)
        context = CallContext(call, caller, self._subscriptions)
        found = await offered(caller.surface.completions).complete(params, context)
        if found is None:
            raise ProtocolError(Fault.INVALID_PARAMS, "ref: nothing to complete by that name")
        return self._shaper.result(mcp.CompleteResult(completion=found), revision_of(call))
