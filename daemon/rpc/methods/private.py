"""`recalld/*`: methods between recalld's own processes, on the unix socket only."""

import os
from typing import Final

import anyio.lowlevel
import msgspec
from msgspec import Struct

from daemon.exit_codes import CANNOT_CREATE, CONFIG, Exit
from daemon.memory.bank_administration import AnyVerb, Caretaker, refused
from daemon.rpc.caller import Caller
from daemon.rpc.context import CallContext
from daemon.rpc.gate import Method
from daemon.rpc.peer import AttachParams, Peer
from daemon.rpc.reports import StatusReporter
from daemon.rpc.shutdown import Shutdown
from daemon.rpc.subscriptions import Subscriptions
from daemon.sources import administration as source_verbs
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.reporting import reported
from daemon.tools.progress import counted
from daemon.version import VERSION
from protocol.connection import Call
from protocol.errors import Fault, ProtocolError
from protocol.lifecycle import decode_params
from store.errors import StoreError

#: The peers of the unix socket are processes of the owner.
PRIVATE: Final = frozenset(
    {"recalld/attach", "recalld/status", "recalld/stop", "recalld/bank", "recalld/source"}
)


class BankParams(Struct, frozen=True, kw_only=True):
    """A verb of `recalld bank` and the data directory its sender means."""

    data: str
    do: AnyVerb


class SourceParams(Struct, frozen=True, kw_only=True):
    """A verb of `recalld source` and the data directory its sender means."""

    data: str
    do: source_verbs.AnyVerb


_attach_params: Final = msgspec.json.Decoder(AttachParams)
_bank_params: Final = msgspec.json.Decoder(BankParams)
_source_params: Final = msgspec.json.Decoder(SourceParams)
_encoder: Final = msgspec.json.Encoder()


class PrivateMethods:
    """`caretaker` and `sources` are None if this process has no engine that they could change."""

    def __init__(
        self,
        *,
        status: StatusReporter,
        shutdown: Shutdown,
        subscriptions: Subscriptions,
        caretaker: Caretaker | None,
        sources: Sources | None,
        data: str,
    ) -> None:
        self._status = status
        self._shutdown = shutdown
        self._subscriptions = subscriptions
        self._caretaker = caretaker
        self._sources = sources
        self._data = data

    def table(self) -> dict[str, Method]:
        return {
            "recalld/attach": Method(_attach, is_rate_limited=False),
            "recalld/status": Method(self._report_status, is_rate_limited=False),
            "recalld/stop": Method(self._stop, is_rate_limited=False),
            "recalld/bank": Method(self._change_bank, is_rate_limited=False),
            "recalld/source": Method(self._change_source, is_rate_limited=False),
        }

    async def _report_status(self, _call: Call, _caller: Caller) -> bytes:
        return _encoder.encode(await self._status.report())

    async def _stop(self, _call: Call, _caller: Caller) -> bytes:
        self._shutdown.stop()
        await anyio.lowlevel.checkpoint()
        return _encoder.encode({"stopping": True, "pid": os.getpid()})

    async def _change_bank(self, call: Call, caller: Caller) -> bytes:
        params = decode_params(_bank_params, call.params)
        caretaker, verb = self._caretaker, params.do
        if caretaker is None:
            raise ProtocolError(Fault.METHOD_NOT_FOUND, call.method)
        _require_same_directory(params.data, self._data)
        context = CallContext(call, caller, self._subscriptions)
        try:
            done = await counted(
                context, "done", lambda progress: caretaker.perform(verb, progress)
            )
        except StoreError as failure:
            exit = refused(failure, verb)
            raise ProtocolError(Fault.DATABASE_ERROR, exit.message, exit=exit.code) from failure
        for name in verb.banks if verb.is_change else ():
            self._subscriptions.bank_changed(name)
        return _encoder.encode(done)

    async def _change_source(self, call: Call, caller: Caller) -> bytes:
        params = decode_params(_source_params, call.params)
        sources, verb = self._sources, params.do
        if sources is None:
            raise ProtocolError(Fault.METHOD_NOT_FOUND, call.method)
        _require_same_directory(params.data, self._data)
        context = CallContext(call, caller, self._subscriptions)
        try:
            async with reported(context) as following:
                done = await source_verbs.perform(verb, sources, following)
        except Exit as exit:
            raise ProtocolError(Fault.INVALID_PARAMS, exit.message, exit=exit.code) from None
        except StoreError as failure:
            raise ProtocolError(Fault.DATABASE_ERROR, str(failure), exit=CANNOT_CREATE) from failure
        return _encoder.encode(done)


async def _attach(call: Call, peer: Peer) -> bytes:
    peer.attach(decode_params(_attach_params, call.params))
    return _encoder.encode(
        {
            "version": VERSION,
            "pid": os.getpid(),
            "session": await peer.session(),
            "retrySafe": peer.surface.tools.retry_safe(),
        }
    )


def _require_same_directory(meant: str, ours: str) -> None:
    """A socket alone does not identify a data directory; a verb may destroy data, so compare."""
    if os.path.realpath(meant) != os.path.realpath(ours):
        details = f"the daemon at that socket serves {ours}, not {meant}; name another socket"
        raise ProtocolError(Fault.INVALID_PARAMS, details, exit=CONFIG)
