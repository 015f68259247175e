"""`ping`, `health/check`, `logging/setLevel` and `subscriptions/listen`."""

from typing import Final

import msgspec
from msgspec import Raw

from daemon.operations.health import summary
from daemon.rpc.caller import Caller
from daemon.rpc.gate import Method
from daemon.rpc.methods.common import require_tasks
from daemon.rpc.reports import HealthReporter
from daemon.rpc.subscriptions import Listener, Subscriptions, honoured
from daemon.rpc.tasks.keeper import TaskKeeper
from protocol import mcp
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.lifecycle import decode_params
from protocol.revisions import SUBSCRIPTION_ID
from protocol.shape import Shaper

#: Open `subscriptions/listen` requests of one caller.
MAX_LISTENS: Final = 64

_set_level: Final = msgspec.json.Decoder(mcp.SetLevelParams)
_listen: Final = msgspec.json.Decoder(mcp.ListenParams)
_encoder: Final = msgspec.json.Encoder()


class UtilityMethods:
    def __init__(
        self,
        shaper: Shaper,
        subscriptions: Subscriptions,
        health: HealthReporter,
        tasks: TaskKeeper,
    ) -> None:
        self._shaper = shaper
        self._subscriptions = subscriptions
        self._health = health
        self._tasks = tasks

    def table(self) -> dict[str, Method]:
        return {
            "ping": Method(_ping, is_rate_limited=False),
            "health/check": Method(self._check_health, is_rate_limited=False),
            "logging/setLevel": Method(_set_log_level),
            "subscriptions/listen": Method(self._listen),
        }

    async def _check_health(self, call: Call, caller: Caller) -> bytes:
        health = await self._health.report(caller.surface)
        shown = health if caller.principal.is_owner else summary(health)
        return self._shaper.result(shown, call.revision)

    async def _listen(self, call: Call, caller: Caller) -> bytes:
        """Acknowledge, then hold the request open until it is cancelled or one side leaves."""
        params = decode_params(_listen, call.params)
        asked = params.notifications
        if asked.task_ids:
            require_tasks(call)
        known = self._tasks.known(asked.task_ids, caller.principal)
        wants = honoured(asked, caller.surface, caller.principal, known)
        if caller.listens >= MAX_LISTENS:
            raise ProtocolError(
                Fault.OVERLOADED, f"at most {MAX_LISTENS} subscriptions a connection"
            )

        def send(frame: bytes) -> None:
            caller.send_for(call, frame)

        listener = Listener(marker=call.id, wants=wants, send=send)
        caller.listens += 1
        self._subscriptions.listen(listener)
        try:
            listener.notify("notifications/subscriptions/acknowledged", {"notifications": wants})
            await caller.leaving.wait()
        finally:
            self._subscriptions.leave(listener)
            caller.listens -= 1
        caller.end_listening(call)
        closing = {SUBSCRIPTION_ID: Raw(call.id), **self._shaper.stamp}
        return b'{"resultType":"complete","_meta":' + _encoder.encode(closing) + b"}"


def _ping(_call: Call, _caller: Caller) -> bytes:
    return b"{}"


def _set_log_level(call: Call, caller: Caller) -> bytes:
    caller.log_level = decode_params(_set_level, call.params).level
    return b"{}"
