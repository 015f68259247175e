"""`initialize` and `server/discover`: how a client learns about the server."""

from typing import Final

import msgspec
from msgspec import UNSET

from daemon.rpc.caller import Caller
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import STEADY, revision_of
from protocol import mcp
from protocol.connection import Call
from protocol.revisions import SUPPORTED
from protocol.shape import Shaper

_encoder: Final = msgspec.json.Encoder()


class HandshakeMethods:
    def __init__(self, shaper: Shaper) -> None:
        self._shaper = shaper

    def table(self) -> dict[str, Method]:
        return {
            "initialize": Method(self._initialize, is_rate_limited=False),
            "server/discover": Method(self._discover, is_rate_limited=False),
        }

    def _initialize(self, call: Call, caller: Caller) -> bytes:
        revision = revision_of(call)
        return _encoder.encode(
            mcp.InitializeResult(
                protocol_version=revision.date,
                capabilities=caller.surface.capabilities(revision),
                server_info=self._shaper.server_info(revision),
                instructions=caller.surface.instructions or UNSET,
            )
        )

    def _discover(self, call: Call, caller: Caller) -> bytes:
        revision = revision_of(call)
        result = mcp.DiscoverResult(
            supported_versions=SUPPORTED,
            capabilities=caller.surface.capabilities(revision),
            instructions=caller.surface.instructions or UNSET,
        )
        return self._shaper.result(result, revision, STEADY)
