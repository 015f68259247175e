"""A call carries on the trace its caller began."""

from contextlib import AbstractContextManager
from typing import Any

import anyio
import pytest

from daemon.operations.tracing import OpenTelemetry, trace_id
from daemon.rpc.dispatcher import Dispatcher, Method
from protocol.connection import Call
from protocol.lifecycle import Meta
from protocol.revisions import MODERN
from tests.support.spans import Spans

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Nobody:
    window = None
    session_id = None


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

    dispatcher = Dispatcher(
        {"x": Method(handle)}, limit=0, clock=lambda: 0.0, verbose=False, tracer=spans
    )
    call = Call(b"1", b"1", "x", b"{}", MODERN, Meta(traceparent=TRACE))
    caller: Any = Nobody()
    outcome: Any = dispatcher.begin(call, caller)
    assert await outcome == b"{}"
    assert spans.events == [("begin", "x", TRACE), ("end", "x", TRACE)]
    assert set(seen) == {1}


@pytest.mark.parametrize("text", [None, "", "nonsense", TRACE.upper(), TRACE + "x"])
def test_what_is_no_trace_is_not_carried_on(text: str | None) -> None:
    assert trace_id(text) == ""
    assert trace_id(TRACE) == "4bf92f3577b34da6a3ce929d0e0e4736"


def test_opentelemetry_gets_the_callers_context_and_nothing_made_up() -> None:
    asked: list[Any] = []

    class Api:
        def get_tracer(self, name: str) -> "Api":
            asked.append(name)
            return self

        def start_as_current_span(self, name: str, context: Any) -> AbstractContextManager[Any]:
            asked.append((name, context))
            return Spans().span(name, None)

        def extract(self, carrier: dict[str, str]) -> Any:
            return ("context", carrier["traceparent"])

    telemetry = OpenTelemetry(Api(), Api())
    with telemetry.span("tools/call", TRACE), telemetry.span("ping", "nonsense"):
        pass
    assert asked == ["recalld", ("tools/call", ("context", TRACE)), ("ping", None)]
