"""One connection: batches, ids in flight, cancellation, end of input."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.connection import MAX_BATCH, Call, Cancelled, Connection, Event, Refused
from protocol.errors import Fault, error_object
from protocol.jsonrpc import Notification, Response
from protocol.lifecycle import Offered
from tests.support.strategies import chopped
from tests.support.wire import initialize, modern, request

METHODS = frozenset({"initialize", "ping", "slow"})
OFFERED = Offered(legacy=METHODS, modern=frozenset({"slow"}), unopened=frozenset({"ping"}))


def opened(revision: str = "2025-03-26") -> Connection:
    connection = Connection(OFFERED)
    for event in connection.receive(initialize(revision)):
        if isinstance(event, Call):
            connection.reply(event, b"{}")
    return connection


def run(connection: Connection, data: bytes, slow: list[Call] | None = None) -> list[Any]:
    """Answer every call except `slow` at once; returns the frames that are sent."""
    out: list[Any] = []
    for event in connection.receive(data):
        frame = _answer(connection, event, slow)
        if frame:
            out.append(msgspec.json.decode(frame))
    return out


def _answer(connection: Connection, event: Event, slow: list[Call] | None) -> bytes:
    match event:
        case Call(method="slow"):
            assert slow is not None
            slow.append(event)
            return b""
        case Call():
            return connection.reply(event, b"{}")
        case Refused():
            return event.frame
        case Cancelled():
            return connection.drop(event.call)
        case Notification() | Response():
            return b""


def batch(*elements: bytes) -> bytes:
    return b"[" + b",".join(element.strip() for element in elements) + b"]\n"


def test_a_batch_is_answered_in_one_array() -> None:
    (answers,) = run(opened(), batch(request(1, "ping"), request("1", "ping")))
    assert [answer["id"] for answer in answers] == [1, "1"]


def test_notifications_in_a_batch_are_not_answered() -> None:
    notice = b'{"jsonrpc":"2.0","method":"n"}'
    assert run(opened(), batch(notice, notice)) == []
    (answers,) = run(opened(), batch(notice, request(1, "ping")))
    assert len(answers) == 1


def test_an_empty_batch_is_one_error_and_a_bad_element_affects_only_itself() -> None:
    (error,) = run(opened(), b"[]\n")
    assert error["error"]["code"] == -32600
    (answers,) = run(opened(), b"[1,2]\n")
    assert [answer["error"]["code"] for answer in answers] == [-32600, -32600]
    (answers,) = run(opened(), batch(b"7", request(1, "ping"), request(2, "none")))
    assert sorted(answer.get("id") or 0 for answer in answers) == [0, 1, 2]


def test_a_batch_waits_for_its_slowest_element() -> None:
    connection, slow = opened(), list[Call]()
    assert run(connection, batch(request(1, "slow"), request(2, "ping")), slow) == []
    answers = msgspec.json.decode(connection.reply(slow[0], b"{}"))
    assert {answer["id"] for answer in answers} == {1, 2}


def test_a_cancelled_element_has_no_answer_and_a_fully_cancelled_batch_no_array() -> None:
    connection, slow = opened(), list[Call]()
    run(connection, batch(request(1, "slow"), request(2, "slow")), slow)
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'
    assert run(connection, cancel % 1, slow) == []
    answers = msgspec.json.decode(connection.reply(slow[1], b"{}"))
    assert [answer["id"] for answer in answers] == [2]
    connection, slow = opened(), list[Call]()
    run(connection, batch(request(1, "slow")), slow)
    assert run(connection, cancel % 1, slow) == []
    assert connection.reply(slow[0], b"{}") == b""


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_in_another_revision_is_one_error(revision: str) -> None:
    connection = opened(revision)
    (error,) = run(connection, batch(request(1, "ping"), request(2, "ping")))
    assert error["error"]["code"] == -32600
    assert run(connection, request(3, "ping"))[0]["id"] == 3


def test_batches_are_rejected_before_the_handshake_and_for_modern_requests() -> None:
    (error,) = run(Connection(OFFERED), batch(request(1, "ping")))
    assert error["error"]["code"] == -32600
    (answers,) = run(opened(), batch(modern(1, "slow"), request(2, "ping")), [])
    assert {a["id"]: "error" in a for a in answers} == {1: True, 2: False}


def test_initialize_inside_a_batch_is_refused() -> None:
    (answers,) = run(opened(), batch(request(1, "initialize", protocolVersion="2025-03-26")))
    assert answers[0]["error"]["code"] == -32600


def test_the_size_of_a_batch_is_limited() -> None:
    (error,) = run(opened(), batch(*[request(n, "ping") for n in range(MAX_BATCH + 1)]))
    assert "at most" in error["error"]["message"]


def test_a_duplicate_id_does_not_affect_the_call_in_flight() -> None:
    connection, slow = opened("2025-11-25"), list[Call]()
    run(connection, request(1, "slow"), slow)
    (refused,) = run(connection, request(1, "ping"), slow)
    assert "id" not in refused
    assert refused["error"]["data"]["duplicateId"] == 1
    assert msgspec.json.decode(connection.reply(slow[0], b"{}"))["id"] == 1
    assert run(connection, request(1, "ping"))[0]["id"] == 1


def test_the_ids_1_and_string_1_can_be_in_flight_together() -> None:
    connection, slow = opened(), list[Call]()
    assert run(connection, request(1, "slow") + request("1", "slow"), slow) == []
    assert len(connection.inflight) == 2


@pytest.mark.parametrize(
    "params",
    [
        "{}",
        '{"requestId":null}',
        '{"requestId":9}',
        '{"requestId":"1"}',
        '{"requestId":1.5}',
        "[]",
        "5",
    ],
)
def test_a_cancellation_of_an_unknown_call_is_ignored(params: str) -> None:
    connection, slow = opened(), list[Call]()
    run(connection, request(1, "slow"), slow)
    line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{params}}}\n'
    assert list(connection.receive(line.encode())) in (
        [],
        [Notification("notifications/cancelled", b"{}")],
    )
    assert connection.reply(slow[0], b"{}")


def test_after_a_cancellation_nothing_is_sent_for_that_id() -> None:
    connection, slow = opened(), list[Call]()
    run(connection, request(1, "slow"), slow)
    run(
        connection,
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n',
    )
    assert connection.reply(slow[0], b"{}") == b""
    assert connection.refuse(slow[0], error_object(Fault.INTERNAL_ERROR)) == b""
    assert connection.drop(slow[0]) == b""


def test_initialize_cannot_be_cancelled() -> None:
    connection = Connection(OFFERED)
    (event,) = connection.receive(request(0, "initialize", protocolVersion="2025-11-25"))
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}\n'
    assert list(connection.receive(cancel)) == []
    assert isinstance(event, Call)
    assert connection.reply(event, b"{}")


def test_an_oversized_frame_is_one_error_and_the_connection_continues() -> None:
    connection = Connection(OFFERED, frame_limit=100)
    (error, pong) = run(connection, b"x" * 500 + b"\n" + request(1, "ping"))
    assert error["error"]["message"].endswith("frame is 500 bytes, limit is 100")
    assert pong["id"] == 1


def test_an_oversized_request_is_rejected_with_its_id_unless_that_is_in_flight() -> None:
    connection = Connection(OFFERED, frame_limit=1000)
    long = request(7, "ping", pad="x" * 10_000)
    for cut in (1, 500, 9_000, len(long) - 3, len(long)):
        (error,) = [
            frame
            for chunk in (long[:cut], long[cut:])
            for frame in (run(connection, chunk) if chunk else [])
        ]
        assert error["id"] == 7
    (waiting,) = connection.receive(request(7, "ping"))
    assert isinstance(waiting, Call)
    (error,) = run(connection, long)
    assert error.get("id") is None
    assert connection.reply(waiting, b"{}")


def test_a_last_line_without_a_line_end_is_answered() -> None:
    connection = Connection(OFFERED)
    assert list(connection.receive(request(1, "ping")[:-1])) == []
    (event,) = connection.end()
    assert isinstance(event, Call)


def test_responses_and_unknown_notifications_are_events() -> None:
    connection = opened()
    assert list(connection.receive(b'{"jsonrpc":"2.0","id":5,"result":{}}\n')) == [
        Response(b"5", b"{}", b"")
    ]
    assert connection.lifecycle.initialized


def test_a_refused_call_is_answered_with_its_id() -> None:
    connection, slow = opened(), list[Call]()
    run(connection, request("x", "slow") + batch(request(2, "slow")), slow)
    frame = msgspec.json.decode(connection.refuse(slow[0], error_object(Fault.INTERNAL_ERROR)))
    assert (frame["id"], frame["error"]["code"]) == ("x", -32603)
    assert msgspec.json.decode(connection.refuse(slow[1], error_object(Fault.INTERNAL_ERROR)))[0]


@given(st.data())
def test_answers_do_not_depend_on_the_division_into_chunks(data: st.DataObject) -> None:
    stream = initialize("2025-03-26") + request(1, "ping") + b"{bad\n" + batch(request(2, "ping"))
    whole = run(Connection(OFFERED), stream)
    connection = Connection(OFFERED)
    pieces = data.draw(chopped(stream))
    assert [frame for piece in pieces for frame in run(connection, piece)] == whole
