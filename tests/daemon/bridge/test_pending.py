"""What a bridge remembers of the traffic it carries."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.bridge.pending import MAX_BATCH, MAX_DEPTH, MAX_WAITING, REPLAY_ID, PendingRequests
from protocol import connection, jsonrpc
from protocol.jsonrpc import Invalid, Request, decode
from tests.support.strategies import requests


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def opened(version: Any) -> PendingRequests:
    pending = PendingRequests()
    pending.sent(line(id=0, method="initialize", params={"protocolVersion": version}))
    pending.answered(answer("0"))
    return pending


def answer(raw_id: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":{raw_id},"result":{{}}}}'.encode()


@pytest.mark.parametrize("id", [0, -1, 2**70, "", "1", "é", 'quote"', "back\\slash", "nl\n"])
def test_a_request_waits_until_its_answer_passes(id: Any) -> None:
    pending = PendingRequests()
    pending.sent(line(id=id, method="ping"))
    assert len(pending.waiting) == 1
    pending.answered(answer(json.dumps("other")))
    assert len(pending.waiting) == 1
    pending.answered(answer(json.dumps(id, ensure_ascii=False)))
    assert not pending.waiting


def test_the_same_id_in_another_spelling_is_the_same_request() -> None:
    pending = PendingRequests()
    pending.sent(b'{"jsonrpc":"2.0","id":"\\u0061\\/","method":"ping"}')
    pending.answered(answer('"\\u0061\\/"'))
    assert not pending.waiting
    pending.sent(b'{"jsonrpc":"2.0","id":1.0,"method":"ping"}')
    assert list(pending.waiting) == ["1"]
    pending.answered(answer("1.0"))
    assert not pending.waiting


def test_unsent_batches_are_known_by_their_ids_where_the_client_may_send_them() -> None:
    """Or they would be answered as lost and sent to the next daemon as well."""
    batch = b"[" + line(id=5, method="ping") + b"," + line(id="x", method="ping") + b"]"
    assert opened("2025-03-26").asked_by([batch]) == {"5", '"x"'}
    assert opened("2025-06-18").asked_by([batch]) == frozenset()
    assert opened("2025-06-18").asked_by([line(id=7, method="ping")]) == {"7"}


@pytest.mark.parametrize("raw", ["1.0", "1.00", "-0", "-0.0", "-3.0"])
def test_a_number_echoed_as_it_was_spelt_settles_its_request(raw: str) -> None:
    pending = PendingRequests()
    pending.sent(f'{{"jsonrpc":"2.0","id":{raw},"method":"ping"}}'.encode())
    assert len(pending.waiting) == 1
    pending.answered(answer(raw))
    assert not pending.waiting


@pytest.mark.parametrize(
    "odd",
    [
        b"{bad",
        b"\xff",
        b"[1,2]",
        b"5",
        line(id=None, method="m"),
        line(id=True, method="m"),
        line(id=[], method="m"),
        line(id=1, method=5),
        line(id=1, result={}),
        line(method="notifications/x", params=[1]),
        line(id=1, method="m") + b" trailing",
        b"[" * 100_000,
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}',
        b'{"jsonrpc":"2.0","id":"\\u0000","method":"m"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1e2,"method":"m"}',
        b'\x0b{"jsonrpc":"2.0","id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":' + b"[" * 70 + b"]" * 70 + b"}}",
    ],
)
def test_what_is_no_request_is_not_waited_for(odd: bytes) -> None:
    pending = PendingRequests()
    pending.sent(odd)
    assert not pending.waiting


@given(requests())
def test_what_the_daemon_answers_under_an_id_is_waited_for(line: bytes) -> None:
    pending = PendingRequests()
    pending.sent(line)
    read = decode(line)
    assert bool(pending.waiting) == isinstance(read, Request)


@given(st.binary(max_size=80), st.data())
def test_a_mutated_request_is_waited_for_just_when_the_daemon_can_tell_its_id(
    noise: bytes, data: st.DataObject
) -> None:
    whole = b'{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":[1.5,"\\u0041",{}]}}'
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 3))
    mutated = (whole[:at] + noise[:4] + whole[at + cut :]).replace(b"\n", b"")
    pending = PendingRequests()
    pending.sent(mutated)
    read = decode(mutated)
    if pending.waiting:
        assert isinstance(read, (Request, Invalid))
        assert read.id


def test_depth_alone_does_not_hide_a_request() -> None:
    pending = PendingRequests()
    pending.sent(line(id=1, method="m", params={"x": [[]] * 100}))
    assert pending.waiting


def test_a_batch_waits_for_each_of_its_requests() -> None:
    pending = opened("2025-03-26")
    pending.sent(b"[" + line(id=1, method="a") + b"," + line(id="b", method="c") + b"]")
    assert list(pending.waiting) == ["1", '"b"']
    pending.answered(b"[" + answer("1") + b"," + answer('"b"') + b',{"jsonrpc":"2.0"}]')
    assert not pending.waiting


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", 5])
def test_where_there_are_no_batches_an_array_is_refused_whole(version: Any) -> None:
    array = b"[" + line(id=1, method="a") + b"]"
    for pending in (PendingRequests(), opened(version)):
        pending.sent(array)
        assert not pending.waiting
    pending = opened("2025-03-26")
    pending.sent(b"[" + b",".join([line(id=n, method="a") for n in range(1025)]) + b"]")
    assert not pending.waiting


def test_limits_are_the_daemons() -> None:
    assert MAX_DEPTH == jsonrpc.MAX_DEPTH
    assert MAX_BATCH == connection.MAX_BATCH


def test_a_cancelled_request_is_not_waited_for_unless_it_is_the_handshake() -> None:
    pending = PendingRequests()
    pending.sent(line(id=0, method="initialize", params={}))
    pending.sent(line(id=1, method="tools/call", params={"name": "slow"}))
    for id in (0, 1, 7, None):
        pending.sent(line(method="notifications/cancelled", params={"requestId": id}))
    assert list(pending.waiting) == ["0"]


def test_the_handshake_is_made_again_under_an_id_of_ours() -> None:
    pending = PendingRequests()
    assert pending.replay() is None
    pending.sent(line(id=0, method="initialize", params={"protocolVersion": 5}))
    assert pending.replay() is None
    pending.answered(b'{"jsonrpc":"2.0","id":0,"error":{}}')
    assert pending.replay() is None
    pending.sent(line(id=0, method="initialize", params={"protocolVersion": "2025-03-26"}))
    pending.answered(answer("0"))
    pending.sent(line(id=1, method="initialize", params={"protocolVersion": "2025-11-25"}))
    pending.answered(b'{"jsonrpc":"2.0","id":1,"error":{}}')
    pending.sent(line(method="notifications/initialized"))
    replay = json.loads(pending.replay() or b"")
    assert replay["id"] == REPLAY_ID
    assert replay["params"] == {"protocolVersion": "2025-03-26"}
    assert pending.initialized is not None


@pytest.mark.parametrize(
    ("method", "params", "is_safe"),
    [
        ("tools/list", {}, True),
        ("ping", {}, True),
        ("tools/call", {"name": "search"}, True),
        ("tools/call", {"name": "store"}, False),
        ("tools/call", {"name": 5}, False),
        ("tools/call", None, False),
    ],
)
def test_a_lost_request_is_told_whether_to_ask_again(
    method: str, params: Any, is_safe: bool
) -> None:
    pending = PendingRequests()
    pending.retry_safe = frozenset({"search"})
    pending.sent(line(id="é", method=method, params=params))
    (waiting,) = pending.waiting.values()
    error = json.loads(pending.lose(waiting, "it ended"))
    assert error["id"] == "é"
    assert error["error"]["data"]["kind"] == "daemon_lost"
    assert error["error"]["data"]["retrySafe"] is is_safe
    assert not pending.waiting


def test_memory_is_bounded_however_many_requests_are_never_answered() -> None:
    pending = PendingRequests()
    for id in range(MAX_WAITING + 10):
        pending.sent(line(id=id, method="m"))
    assert len(pending.waiting) == MAX_WAITING


def test_what_was_agreed_for_the_connection_is_remembered_and_what_was_refused_is_not() -> None:
    pending = opened("2025-11-25")
    pending.sent(line(method="notifications/initialized"))
    wishes = [
        ("resources/subscribe", {"uri": "memory://a/recent"}, "result"),
        ("resources/subscribe", {"uri": "memory://b/recent"}, "result"),
        ("resources/subscribe", {"uri": "memory://none"}, "error"),
        ("resources/unsubscribe", {"uri": "memory://a/recent"}, "result"),
        ("resources/unsubscribe", {"uri": "memory://b/recent"}, "error"),
        ("logging/setLevel", {"level": "warning"}, "result"),
        ("logging/setLevel", {"level": "loud"}, "error"),
    ]
    for id, (method, params, outcome) in enumerate(wishes, 1):
        pending.sent(line(id=id, method=method, params=params))
        pending.answered(f'{{"jsonrpc":"2.0","id":{id},"{outcome}":{{}}}}'.encode())
    pending.sent(line(id=99, method="resources/subscribe", params={"uri": "memory://lost"}))
    pending.lose(pending.waiting["99"], "it ended")
    assert list(pending.uris) == ["memory://b/recent"]
    assert pending.level == "warning"
    (note,) = pending.missed_updates().splitlines()
    assert json.loads(note)["params"] == {"uri": "memory://b/recent"}


def test_subscriptions_in_a_batch_are_remembered_too() -> None:
    pending = opened("2025-03-26")
    asked = [line(id=n, method="resources/subscribe", params={"uri": f"u{n}"}) for n in (1, 2)]
    pending.sent(b"[" + b",".join(asked) + b"]")
    pending.answered(b"[" + answer("1") + b',{"jsonrpc":"2.0","id":2,"error":{}}]')
    assert list(pending.uris) == ["u1"]
    assert pending.missed_updates() == b"", "a client that has not said initialized is told nothing"
