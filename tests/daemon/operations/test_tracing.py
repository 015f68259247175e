"""A call continues the trace of its caller, and costs nothing without a tracer provider."""

from contextlib import AbstractContextManager
from typing import Any

import anyio
import pytest
from opentelemetry import propagate, trace

from daemon.operations.tracing import OpenTelemetry, activate, trace_id
from daemon.rpc.gate import CallLimits, Gate, Method, Pending
from daemon.tools.authority import OWNER
from protocol.connection import Call
from protocol.lifecycle import Meta
from protocol.revisions import MODERN
from tests.support.spans import Spans

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


LIMITS = CallLimits(per_connection=1, total=1, seconds=1.0)
METHOD = Method(lambda _call, _caller: b"{}")


class Nobody:
    principal = OWNER
    window = None
    session_id = None
    principal = OWNER


@pytest.mark.anyio
@pytest.mark.parametrize("is_slow", [False, True])
async def test_a_span_lasts_as_long_as_the_call(is_slow: bool) -> None:
    spans = Spans()
    seen: list[int] = []

    async def slowly() -> bytes:
        await anyio.lowlevel.checkpoint()
        seen.append(len(spans.events))
        return b"{}"

    def handle(_call: Call, _caller: Any) -> Any:
        seen.append(len(spans.events))
        return slowly() if is_slow else b"{}"

    gate = Gate(LIMITS, clock=lambda: 0.0, tracer=spans)
    call = Call(b"1", b"1", "x", b"{}", MODERN, Meta(traceparent=TRACE))
    pending = gate.begin(Method(handle), call, Nobody(), 1)
    assert isinstance(pending, Pending)
    with pending:
        assert await pending.outcome == b"{}"
    assert spans.events == [("begin", "x", TRACE), ("end", "x", TRACE)]
    assert set(seen) == {1}


@pytest.mark.parametrize("text", [None, "", "nonsense", TRACE.upper(), TRACE + "x"])
def test_a_malformed_traceparent_is_ignored(text: str | None) -> None:
    assert trace_id(text) == ""
    assert trace_id(TRACE) == "4bf92f3577b34da6a3ce929d0e0e4736"


class FakeApi:
    """As much of `opentelemetry.trace` and `opentelemetry.propagate` as recalld uses."""

    class ProxyTracerProvider: ...

    class NoOpTracerProvider: ...

    class NoOpTracer: ...

    def __init__(self) -> None:
        self.provider: object = self.ProxyTracerProvider()
        self.events: list[Any] = []

    def get_tracer_provider(self) -> object:
        self.events.append("looked")
        return self.provider

    def get_tracer(self, name: str) -> "FakeApi":
        self.events.append(name)
        return self

    def start_as_current_span(self, name: str, context: Any) -> AbstractContextManager[Any]:
        self.events.append((name, context))
        return Spans().span(name, None)

    def extract(self, carrier: dict[str, str]) -> Any:
        return ("context", carrier["traceparent"])


def test_opentelemetry_continues_the_trace_of_the_caller() -> None:
    api = FakeApi()
    api.provider = object()
    telemetry = OpenTelemetry(api, api)
    assert telemetry.is_active()
    with telemetry.span("tools/call", TRACE), telemetry.span("ping", "nonsense"):
        pass
    assert api.events == [
        "looked",
        "recalld",
        ("tools/call", ("context", TRACE)),
        ("ping", None),
    ]


@pytest.mark.anyio
async def test_nothing_is_created_while_the_provider_is_a_no_op() -> None:
    for provider in (FakeApi.ProxyTracerProvider(), FakeApi.NoOpTracerProvider()):
        api = FakeApi()
        api.provider = provider
        gate = Gate(LIMITS, clock=lambda: 0.0)
        call = Call(b"1", b"1", "x", b"{}", MODERN, Meta(traceparent=TRACE))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(activate, OpenTelemetry(api, api), gate.trace)
            await anyio.lowlevel.checkpoint()
            for _ in range(100):
                assert gate.begin(METHOD, call, Nobody(), 1) == b"{}", "answered without a task"
            tasks.cancel_scope.cancel()
        assert api.events == ["looked"]


@pytest.mark.anyio
async def test_a_provider_that_is_configured_later_is_used() -> None:
    api = FakeApi()
    gate = Gate(LIMITS, clock=lambda: 0.0)
    call = Call(b"1", b"1", "x", b"{}", MODERN, Meta(traceparent=TRACE))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(activate, OpenTelemetry(api, api), gate.trace, 0.001)
        await anyio.lowlevel.checkpoint()
        assert gate.begin(METHOD, call, Nobody(), 1) == b"{}"
        api.provider = object()
    pending = gate.begin(METHOD, call, Nobody(), 1)
    assert isinstance(pending, Pending)
    with pending:
        assert await pending.outcome == b"{}"
    assert api.events[-1] == ("x", ("context", TRACE))


def test_the_real_api_without_an_sdk_is_inactive() -> None:
    assert not OpenTelemetry(trace, propagate).is_active()
