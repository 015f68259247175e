"""The gate: every transport passes its calls through one function, which enforces all limits."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from daemon.operations.activity import Activity
from daemon.operations.descriptors import Descriptors
from daemon.operations.metrics import Meter
from daemon.rpc.congestion import QUEUE_FROM
from daemon.rpc.failures import Failure
from daemon.rpc.gate import CallLimits, Gate, GateCaller, Method, Outcome, Pending
from daemon.rpc.limiter import SlidingWindow
from daemon.rpc.services import Services
from daemon.tools.authority import OWNER
from daemon.transports import unix
from daemon.transports.http.edge.messages import Pace
from daemon.transports.stdio import StdioWire
from protocol.connection import Call
from protocol.lifecycle import Meta
from protocol.revisions import MODERN
from tests.support.clock import FakeClock
from tests.support.web import call as tool_call
from tests.support.web import running_web
from tests.support.wire import call, initialize

pytestmark = pytest.mark.anyio

LIMITS = CallLimits(per_connection=2, total=3, seconds=0.05)


class RecordingGate(Gate):
    """Notes each call, then hands it to the gate it replaces."""

    def __init__(self, real: Gate) -> None:
        super().__init__(real._limits, clock=real._clock)
        self.seen: list[tuple[str, str]] = []

    def begin(
        self, method: Method, call: Call, caller: GateCaller, concurrent: int
    ) -> Outcome | Pending:
        outcome = super().begin(method, call, caller, concurrent)
        if call.tool:
            transport: str = getattr(caller, "transport", "?")
            self.seen.append((transport, call.method))
        return outcome


async def over_stdio(services: Services) -> tuple[int, int]:
    """The client's ends of an embedded stdio connection."""
    server_in, client_out = os.pipe()
    client_in, server_out = os.pipe()
    await StdioWire(services.for_peers).open(Descriptors(server_in, server_out))
    return client_in, client_out


async def test_every_transport_passes_its_calls_through_one_gate(tmp_path: Path) -> None:
    gates: list[RecordingGate] = []

    def replace(real: Gate) -> Gate:
        gates.append(RecordingGate(real))
        return gates[0]

    async with running_web(tmp_path, gate=replace, pace=Pace()) as web:
        (gate,) = gates
        assert web.services.gate is gate

        client_in, client_out = await over_stdio(web.services)
        os.write(client_out, initialize() + call(1, "echo", text="x"))
        received = b""
        while received.count(b"\n") < 2:
            received += await anyio.to_thread.run_sync(os.read, client_in, 65_536)
        os.close(client_out)
        os.close(client_in)
        assert gate.seen == [("stdio", "tools/call")]

        path = tmp_path / "s"
        listener = unix.bind(path, is_ours=False)
        server = await unix.listen(web.services.for_peers, listener)
        async with await anyio.connect_unix(str(path)) as stream:
            await stream.send(initialize() + call(1, "echo", text="x"))
            received = b""
            while received.count(b"\n") < 2:
                received += await stream.receive()
        server.close()
        assert gate.seen[1:] == [("unix", "tools/call")]

        session = await web.open()
        assert (await web.post(tool_call("echo", {"text": "x"}), session)).status_code == 200
        assert gate.seen[2:] == [("http", "tools/call")]

        params = {"name": "echo", "arguments": {"text": "x"}}
        assert (await web.modern("tools/call", params)).status_code == 200
        assert gate.seen[3:] == [("http", "tools/call")]

        assert (await web.client.post("/tools/echo", json={"text": "x"})).status_code == 200
        assert gate.seen[4:] == [("http", "rest")]


class Someone:
    principal = OWNER

    def __init__(self, window: SlidingWindow | None = None) -> None:
        self.window = window
        self.session_id: str | None = None


def a_call() -> Call:
    return Call(b"1", b"1", "x", b"{}", MODERN, Meta())


def returning(result: bytes | Callable[[], Awaitable[bytes]], **options: Any) -> Method:
    return Method(
        lambda _call, _caller: result if isinstance(result, bytes) else result(), **options
    )


async def forever() -> bytes:
    await anyio.sleep_forever()
    return b""


def failure_of(outcome: Outcome | Pending) -> Failure:
    assert isinstance(outcome, Failure)
    return outcome


def test_a_call_that_finishes_at_once_is_answered_without_a_task() -> None:
    gate = Gate(LIMITS, clock=FakeClock())
    assert gate.begin(returning(b"{}"), a_call(), Someone(), 1) == b"{}"
    assert gate.in_flight == 0


async def test_a_pending_call_counts_until_its_block_is_left() -> None:
    gate = Gate(LIMITS, clock=FakeClock())
    calls = [gate.begin(returning(forever), a_call(), Someone(), 1) for _ in range(3)]
    assert gate.in_flight == 3
    rejected = failure_of(gate.begin(returning(b"{}"), a_call(), Someone(), 1))
    assert rejected.status == 429
    assert "at most 3 calls at once in all" in rejected.reason
    for pending in calls:
        assert isinstance(pending, Pending)
        pending.cancel()
        with pending:
            await pending.outcome
        assert pending.was_cancelled
    assert gate.in_flight == 0


async def test_a_queue_of_slow_calls_refuses_new_ones_with_a_hint() -> None:
    clock = FakeClock()
    limits = CallLimits(per_connection=1000, total=1000, seconds=60.0, wait_seconds=2.0)
    gate = Gate(limits, clock=clock)
    done = anyio.Event()

    async def finished() -> bytes:
        await done.wait()
        return b"{}"

    async def deliver(pending: Outcome | Pending) -> None:
        assert isinstance(pending, Pending)
        with pending:
            assert await pending.outcome == b"{}"

    slow = [
        gate.begin(returning(finished, waits_for_engine=True), a_call(), Someone(), 1)
        for _ in range(QUEUE_FROM)
    ]
    async with anyio.create_task_group() as tasks:
        for pending in slow:
            tasks.start_soon(deliver, pending)
        await anyio.wait_all_tasks_blocked()
        clock.advance(10.0)
        done.set()
    assert gate.in_flight == 0
    # Calls take ten seconds now, but nobody waits: the next ones are admitted.
    again = [
        gate.begin(returning(finished, waits_for_engine=True), a_call(), Someone(), 1)
        for _ in range(QUEUE_FROM)
    ]
    refused = failure_of(
        gate.begin(returning(finished, waits_for_engine=True), a_call(), Someone(), 1)
    )
    assert refused.status == 429
    assert f"{QUEUE_FROM} calls are waiting" in refused.reason
    assert 2.0 < refused.retry_seconds <= 10.0
    # A ping is not refused, and neither is anything once the queue is short.
    assert gate.begin(returning(b"{}"), a_call(), Someone(), 1) == b"{}"
    for pending in again:
        await deliver(pending)
    assert gate.begin(returning(b"{}", waits_for_engine=True), a_call(), Someone(), 1) == b"{}"


def test_a_connection_has_a_limit_of_its_own() -> None:
    gate = Gate(LIMITS, clock=FakeClock())
    assert gate.begin(returning(b"{}"), a_call(), Someone(), 2) == b"{}"
    rejected = failure_of(gate.begin(returning(b"{}"), a_call(), Someone(), 3))
    assert "at most 2 calls at once on a connection" in rejected.reason


def test_only_rate_limited_methods_take_a_slot() -> None:
    clock = FakeClock()
    gate = Gate(LIMITS, clock=clock)
    someone = Someone(SlidingWindow(limit=1, seconds=60.0, clock=clock))
    free = returning(b"{}", is_rate_limited=False)
    for _ in range(5):
        assert gate.begin(free, a_call(), someone, 1) == b"{}"
    assert gate.begin(returning(b"{}"), a_call(), someone, 1) == b"{}"
    rejected = failure_of(gate.begin(returning(b"{}"), a_call(), someone, 1))
    assert (rejected.status, rejected.retry_seconds) == (429, 60.0)
    assert gate.begin(free, a_call(), someone, 1) == b"{}"


async def test_a_method_with_a_deadline_is_cancelled_when_it_passes() -> None:
    gate = Gate(LIMITS, clock=FakeClock())
    pending = gate.begin(returning(forever, has_deadline=True), a_call(), Someone(), 1)
    assert isinstance(pending, Pending)
    with anyio.fail_after(5), pending:
        late = failure_of(await pending.outcome)
        assert (late.status, late.reason) == (408, "the tool did not answer in 0.05 s")
    assert gate.in_flight == 0


def test_a_crash_is_recorded_and_answered_with_an_error_id() -> None:
    def crash(_call: Call, _caller: object) -> bytes:
        raise KeyError("a secret")

    gate, meter = Gate(LIMITS, clock=FakeClock()), Meter()
    gate.measure(meter, Activity(lambda: 0))
    crashed = failure_of(gate.begin(Method(crash), a_call(), Someone(), 1))
    assert crashed.status == 500
    assert crashed.reason.startswith("Internal error: error id ")
    assert "secret" not in crashed.reason
    assert 'recalld_calls_total{method="x",tool="",outcome="error"} 1' in list(meter.lines())
