"""The event stream parser: accepted input, recorded problems, and timeouts."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from conformance.client.sse import Event, Parser
from conformance.client.streamable_http import HttpEndpoint

STREAM = (
    b": hello\n\n"
    b'id: a.1\nevent: message\ndata: {"x":\ndata: 1}\n\n'
    b"retry: 300\n\n"
    b'data:{"y":"\xc3\xa9"}\r\n\r\n'
    b"id: a.2\rdata:\r\r"
)
EVENTS = [
    Event('{"x":\n1}', "a.1", "message"),
    Event(None, retry="300"),
    Event('{"y":"é"}'),
    Event("", "a.2"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_do_not_depend_on_chunk_boundaries(size: int) -> None:
    parser = Parser()

    found = [
        event
        for start in range(0, len(STREAM), size)
        for event in parser.feed(STREAM[start : start + size])
    ]
    found += parser.feed(b"\n")  # a CR at the end of a chunk can be the first half of a CR LF
    parser.end()

    assert found == EVENTS
    assert parser.comments == 1
    assert parser.wrong == []


@pytest.mark.parametrize(
    ("stream", "complaint"),
    [
        (b'data: {\n "x": 1}\n\n', "no JSON"),  # the second line is an unknown field
        (b"data: \xff\n\n", "not UTF-8"),
        (b'data: {"x": 1}\n', "blank line"),
        (b"data: {broken\n\n", "no JSON"),
    ],
)
def test_problems_that_lenient_clients_ignore_are_recorded(stream: bytes, complaint: str) -> None:
    parser = Parser()

    parser.feed(stream)
    parser.end()

    assert any(complaint in wrong for wrong in parser.wrong), parser.wrong


def test_waiting_for_a_silent_server_ends_at_the_timeout() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepted: list[socket.socket] = []
        taker = threading.Thread(target=lambda: accepted.append(listener.accept()[0]))
        taker.start()
        where = HttpEndpoint(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp")
        began = time.monotonic()

        with where.stream("GET") as stream:
            assert stream.next(0.05) is None
            assert stream.gather(0.05) == []
            assert not stream.ended

        assert time.monotonic() - began < 5
        taker.join(5)
        accepted[0].close()
