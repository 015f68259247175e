"""Operating it: metrics that a real client library reads, one log line a request, slow crowds."""

import json
import statistics
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from daemon.tools.authority import OWNER
from daemon.transports.http.mcp.sessions import HELD
from tests.support.clock import FakeClock
from tests.support.spans import Spans
from tests.support.web import Web, call, modern, running_web
from tests.support.wire import join

pytestmark = pytest.mark.anyio

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    async with running_web(tmp_path) as running:
        yield running


async def test_metrics_are_read_by_the_real_library_and_bounded(web: Web) -> None:
    await web.modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    await web.modern("tools/call", {"name": "crash", "arguments": {}})
    session = await web.open()
    await web.post(call("echo", {"text": "x"}), session)
    for n in range(30):
        await web.modern(f"made/up{n}")
        await web.modern("tools/call", {"name": f"made_up_{n}", "arguments": {}})
        await web.client.get(f"/made/up/{n}")
        await web.client.post(f"/tools/made_up_{n}", json={})
    answer = await web.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    calls = {
        (s.labels["method"], s.labels["tool"], s.labels["outcome"]): s.value
        for s in families["recalld_calls"].samples
        if s.name == "recalld_calls_total"
    }
    assert calls["tools/call", "echo", "ok"] == 2
    assert calls["tools/call", "crash", "error"] == 1
    assert calls["tools/call", "", "error"] == 30
    assert "made" not in answer.text
    assert len(answer.text) < 60_000
    buckets = families["recalld_call_seconds"]
    counts = [
        s.value
        for s in buckets.samples
        if s.name.endswith("_bucket") and s.labels["tool"] == "echo"
    ]
    assert counts == sorted(counts)
    assert counts[-1] == 2
    for name in (
        "recalld_calls_in_flight",
        "recalld_http_sessions",
        "recalld_sessions",
        "recalld_limiter_limit",
        "recalld_resident_bytes",
        "recalld_http_requests",
    ):
        assert families[name].samples


async def test_a_request_is_one_line_with_its_trace_and_without_its_contents(
    tmp_path: Path,
) -> None:
    async with running_web(tmp_path) as web, AsyncExitStack() as stack:
        lines = stack.enter_context(capture_logs())
        await web.modern(
            "tools/call",
            {"name": "echo", "arguments": {"text": "a private matter"}},
            meta={"traceparent": TRACE},
        )
        session = await web.open()
        await web.post(call("echo", {"text": "a private matter"}), session)
        await web.client.post(
            "/tools/echo", json={"text": "a private matter"}, headers={"traceparent": TRACE}
        )
        await web.client.get("/secret-path-of-mine", headers={"traceparent": "nonsense"})
        handle = session["mcp-session-id"]
    done = [line for line in lines if line["event"] == "http.done"]
    assert [line["route"] for line in done] == ["/mcp"] * 4 + ["/tools/{name}", "?"]
    assert done[0]["trace_id"] == done[4]["trace_id"] == TRACE.split("-")[1]
    assert "trace_id" not in done[5]
    assert {**done[0], "ms": 0, "bytes_in": 0, "bytes_out": 0} == {
        "verb": "POST",
        "route": "/mcp",
        "status": 200,
        "ms": 0,
        "bytes_in": 0,
        "bytes_out": 0,
        "principal": "owner",
        "era": "modern",
        "method": "tools/call",
        "tool": "echo",
        "trace_id": TRACE.split("-")[1],
        "event": "http.done",
        "log_level": "info",
    }
    for secret in ("private", handle, "secret-path"):
        assert secret not in json.dumps(lines)


async def test_a_legacy_call_carries_its_trace_into_the_log(web: Web) -> None:
    session = await web.open()
    message = call("echo", {"text": "x"})
    with capture_logs() as lines:
        for trace in (TRACE, "nonsense", 7):
            message["params"]["_meta"] = {"traceparent": trace}
            assert (await web.post(message, session)).status_code == 200
        message = call("no such tool")
        message["params"]["_meta"] = {"traceparent": TRACE}
        await web.post(message, session)
    done = [line.get("trace_id") for line in lines if line["event"] == "http.done"]
    assert done == [TRACE.split("-")[1], None, None, TRACE.split("-")[1]]
    (refused,) = [line for line in lines if line["event"] == "call.refused"]
    assert refused["trace_id"] == TRACE.split("-")[1]


async def test_what_the_limiter_counts_is_true_after_others_left(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_web(tmp_path, clock=clock, limits__requests_per_minute=100) as web:

        async def counted() -> tuple[int, int]:
            families = text_string_to_metric_families((await web.client.get("/metrics")).text)
            said = {each.name: each.samples[0].value for each in families if each.samples}
            health = (await web.modern("health/check")).json()["result"]
            return (
                int(said["recalld_limiter_requests"]),
                health["rateLimiter"]["currentRequests"],
            )

        session = await web.open()
        for _ in range(2):
            clock.advance(61)
            peer, _wire = join(web.hub)
            peer.lost()
            assert await counted() == (0, 0)
            await web.post(call("echo", {"text": "x"}), session)
            await web.modern("tools/list")
            await web.client.post("/tools/echo", json={"text": "x"})
            assert await counted() == (3, 3)


async def test_made_up_clients_do_not_fill_the_limiter(tmp_path: Path) -> None:
    clock = FakeClock()
    async with running_web(tmp_path, clock=clock, limits__requests_per_minute=100) as web:
        sessions = web.server._sessions
        for number in range(HELD + 500):
            window = sessions.visitor(OWNER, f"client {number}").window
            assert window is not None
            assert window.admit() == 0.0
        assert web.hub.limiter.current() == HELD
        sessions.dismiss(frozenset({OWNER.name}))
        web.hub.prune()
        assert web.hub.limiter.current() == HELD, "who comes back finds its admissions"
        clock.advance(61)
        web.hub.prune()
        assert not web.hub.limiter._windows


async def test_with_a_tracer_every_way_in_answers_and_opens_a_span(tmp_path: Path) -> None:
    spans = Spans()
    async with running_web(tmp_path, tracer=spans) as web:
        with capture_logs() as lines:
            session = await web.open()
            legacy = await web.post(call("echo", {"text": "x"}), session)
            assert legacy.json()["result"]["content"][0]["text"] == "x"
            answer = await web.modern(
                "tools/call",
                {"name": "echo", "arguments": {"text": "x"}},
                meta={"traceparent": TRACE},
            )
            assert answer.status_code == 200
            rest = await web.client.post(
                "/tools/echo", json={"text": "x"}, headers={"traceparent": TRACE}
            )
            assert rest.json() == {"result": "x"}
    assert [event for event in spans.events if event[0] == "begin"] == [
        ("begin", "initialize", None),
        ("begin", "tools/call", None),
        ("begin", "tools/call", TRACE),
        ("begin", "rest", TRACE),
    ]
    assert len(spans.events) == 8
    done = [line.get("tool") for line in lines if line["event"] == "http.done"]
    assert done == [None, None, "echo", "echo", "echo"]


@pytest.mark.serial
async def test_five_hundred_slow_connections_do_not_slow_an_honest_client(web: Web) -> None:
    """Heads that never end, bodies that never come, readers that never read."""
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{web.port}\r\n".encode()
    body = head + b"Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    message, routing = modern("tools/call", {"name": "big", "arguments": {"bytes": 500_000}})
    content = json.dumps(message).encode()
    lines = "".join(f"{name}: {value}\r\n" for name, value in routing.items())
    deaf = head + lines.encode() + b"Content-Type: application/json\r\n"
    deaf += b"Content-Length: %d\r\n\r\n" % len(content) + content
    starts = (head, body, deaf, b"G")
    streams: list[Any] = []
    try:
        for number in range(500):
            stream = await anyio.connect_tcp("127.0.0.1", web.port)
            await stream.send(starts[number % 4])
            streams.append(stream)
        took: list[float] = []
        for _ in range(200):
            began = time.perf_counter()
            answer = await web.modern("tools/call", {"name": "echo", "arguments": {"text": "x"}})
            took.append(time.perf_counter() - began)
            assert answer.status_code == 200
        p99 = statistics.quantiles(took, n=100)[98]
        assert p99 < 0.2, f"p99 was {p99 * 1000:.0f} ms"
    finally:
        for stream in streams:
            await stream.aclose()
