"""Decoding of JSON-RPC messages: valid ones, invalid ones and their errors."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import jsonrpc
from protocol.errors import Fault, error_object
from protocol.jsonrpc import Invalid, Notification, Request, Response, decode, identity, unfit
from protocol.revisions import R2025_03_26, R2025_11_25
from tests.support.strategies import request_ids, requests

PARSE, INVALID, PARAMS = -32700, -32600, -32602


def frame(**members: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", **members})


@given(requests())
def test_valid_messages_round_trip(line: bytes) -> None:
    meant = json.loads(line)
    read = decode(line)
    assert isinstance(read, Request)
    assert json.loads(read.id) == meant["id"]
    assert type(json.loads(read.id)) is type(meant["id"])
    assert read.method == meant["method"]
    assert json.loads(read.params) == meant["params"]


@given(st.binary(max_size=200))
def test_decoding_any_bytes_returns_a_value_and_never_raises(line: bytes) -> None:
    decode(line)
    jsonrpc.decode_batch(line)


@pytest.mark.parametrize(
    "line",
    [
        b"{bad",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} x',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
        b'"unterminated',
        b"[" * 1_000,
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":01}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":+1}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":.5}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":1,}}',
        b"{'jsonrpc':'2.0'}",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"} // comment',
        b'{"jsonrpc":"2.0","id":1,"method":"pi\x01ng"}',
        b'{"jsonrpc":"2.0","id":1,"method":"pi\x00ng"}',
        b'{"jsonrpc":"2.0","id":1,"method":"p\\q"}',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xc3"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xed\xa0\x80"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"\xc0\xaf"}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"a":"\\ud800"} {',
    ],
)
def test_invalid_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    read = decode(line)
    assert isinstance(read, Invalid)
    assert (read.error.code, read.id) == (PARSE, b"")


@pytest.mark.parametrize(
    ("line", "code", "raw_id"),
    [
        (b"1", INVALID, b""),
        (b"true", INVALID, b""),
        (b"null", INVALID, b""),
        (b'"text"', INVALID, b""),
        (b"1e999", INVALID, b""),
        (b"{}", INVALID, b""),
        (b'{"id":1,"method":"ping"}', INVALID, b"1"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', INVALID, b"1"),
        (b'{"jsonrpc":2,"id":"a","method":"ping"}', INVALID, b'"a"'),
        (frame(id=1), INVALID, b"1"),
        (frame(id=1, method=5), INVALID, b"1"),
        (frame(id=1, method=None), INVALID, b"1"),
        (frame(id=None, method="ping"), INVALID, b""),
        (frame(id=1.5, method="ping"), INVALID, b""),
        (frame(id=True, method="ping"), INVALID, b""),
        (frame(id=[], method="ping"), INVALID, b""),
        (frame(id={}, method="ping"), INVALID, b""),
        (frame(id={}, method=5), INVALID, b""),
        (frame(id={}, method="ping", params=[]), INVALID, b""),
        (frame(id=1, method="ping", result={}), INVALID, b"1"),
        (frame(id={}, method="ping", result={}), INVALID, b""),
        (frame(id=1, result={}, error={}), INVALID, b"1"),
        (frame(id={}, result={}), INVALID, b""),
        (frame(result={}), INVALID, b""),
        (frame(id=None, result={}), INVALID, b""),
        (frame(id=1, method="ping", params=[]), PARAMS, b"1"),
        (frame(id=1, method="ping", params="x"), PARAMS, b"1"),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"\\ud800"}}', PARAMS, b"7"),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"\\u0000"}}', PARAMS, b"7"),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"}', INVALID, b""),
        (b'{"jsonrpc":"2.0","id":"\\u0000","method":"m"}', INVALID, b""),
        (b'["\\u0000"]', INVALID, b""),
    ],
)
def test_json_that_is_not_a_message_is_rejected_with_its_id_if_it_has_one(
    line: bytes, code: int, raw_id: bytes
) -> None:
    read = decode(line)
    assert isinstance(read, Invalid)
    assert (read.error.code, read.id) == (code, raw_id)
    assert read.error.message


def test_a_notification_with_rejected_text_is_not_answered() -> None:
    line = b'{"jsonrpc":"2.0","method":"notifications/x","params":{"t":"\\u0000"}}'
    assert decode(line) == Notification("notifications/x", b"{}")


@pytest.mark.parametrize(
    ("params", "place"),
    [
        (rb'{"arguments":{"content":"a\u0000"}}', "params.arguments.content: "),
        (rb'{"arguments":{"tags":["a","\u0000"]}}', "params.arguments.tags[1]: "),
        (rb'{"arguments":{"a\u0000":1}}', "params.arguments: "),
        (rb'{"content":"\ud800"}', "params.content: "),
        (b'{"' + b"k" * 500 + rb'":"\u0000"}', "params." + "k" * 193 + ": "),
    ],
)
def test_the_error_names_the_path_of_rejected_text(params: bytes, place: str) -> None:
    read = decode(b'{"jsonrpc":"2.0","id":7,"method":"m","params":' + params + b"}")
    assert isinstance(read, Invalid)
    assert f": {place}" in read.error.message
    assert unfit(rb'{"query":"a\u0000b"}') == "query: U+0000 is not accepted in text"


def test_an_escaped_backslash_before_u0000_is_not_a_nul() -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"t":"C:\\\\u0000"}}'
    assert isinstance(decode(line), Request)


def test_invalid_json_with_a_nul_escape_is_a_parse_error() -> None:
    read = decode(b'{"a":"\\u0000"')
    assert isinstance(read, Invalid)
    assert read.error.code == PARSE


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (frame(method="m"), Notification("m", b"{}")),
        (frame(method="m", params=[1]), Notification("m", b"{}")),
        (frame(id=1, method="m", params=None), Request(b"1", b"1", "m", b"{}")),
        (frame(id=1, method="m", extra=[1]), Request(b"1", b"1", "m", b"{}")),
        (frame(id=1, result={"method": "x"}), Response(b"1", b'{"method":"x"}', b"")),
        (frame(id="a", error={}), Response(b'"a"', b"", b"{}")),
        (frame(id=None, error={}), Response(b"", b"", b"{}")),
        (frame(error={}), Response(b"", b"", b"{}")),
        (b'{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}', Request(b"1", b"1", "b", b"{}")),
    ],
)
def test_unusual_but_valid_messages_are_accepted(line: bytes, message: object) -> None:
    assert decode(line) == message


@pytest.mark.parametrize(
    ("raw", "same_as"),
    [
        (b"1.0", b"1"),
        (b"-0", b"0"),
        (b"-7", b"-7"),
        (b'"\\u0061"', b'"a"'),
        (b'"a\\/b"', b'"a/b"'),
        (b"1" + b"0" * 40, b"1" + b"0" * 40),
    ],
)
def test_all_spellings_of_an_id_have_the_same_identity(raw: bytes, same_as: bytes) -> None:
    assert identity(raw) == identity(same_as) != b""


@given(request_ids, request_ids)
def test_different_ids_have_different_identities(one: int | str, other: int | str) -> None:
    same = identity(json.dumps(one).encode()) == identity(json.dumps(other).encode())
    assert same == (one == other and type(one) is type(other))


def test_nesting_is_limited_and_brackets_in_strings_do_not_count() -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":%s1%s}}'
    fits = jsonrpc.MAX_DEPTH - 2
    assert isinstance(decode(deep % (b"[" * fits, b"]" * fits)), Request)
    read = decode(deep % (b"[" * (fits + 1), b"]" * (fits + 1)))
    assert isinstance(read, Invalid)
    assert "deeper" in read.error.message
    assert isinstance(decode(frame(id=1, method="m", params={"x": '[{"' * 1000})), Request)


@pytest.mark.parametrize("bulk", [b"[" + b"1," * 100_001 + b"1]", b"[" + b"[]," * 100_001 + b"1]"])
def test_a_message_with_too_many_values_is_rejected_with_its_id(bulk: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":9,"method":"m","params":{"x":' + bulk + b"}}"
    read = decode(line)
    assert isinstance(read, Invalid)
    assert read.id == b"9"
    assert "at most" in read.error.message
    assert isinstance(decode(line[:-2]), Invalid)


def test_commas_in_strings_do_not_count_as_values() -> None:
    assert isinstance(decode(frame(id=1, method="m", params={"t": "," * 150_000})), Request)


def test_a_batch_is_decoded_into_its_messages() -> None:
    batch = b"[" + frame(id=1, method="a") + b"," + frame(method="b") + b",7]"
    assert jsonrpc.is_array(b" \t[")
    read = jsonrpc.decode_batch(batch)
    assert isinstance(read, list)
    assert [type(message) for message in read] == [Request, Notification, Invalid]


@pytest.mark.parametrize(
    ("line", "code"), [(b"[]", INVALID), (b"[1", PARSE), (b"[1,]", PARSE), (b"[\xff]", PARSE)]
)
def test_an_invalid_batch_is_rejected(line: bytes, code: int) -> None:
    read = jsonrpc.decode_batch(line)
    assert isinstance(read, Invalid)
    assert read.error.code == code


def test_an_unreadable_id_is_null_before_2025_11_25_and_absent_since() -> None:
    error = error_object(Fault.PARSE_ERROR)
    assert json.loads(jsonrpc.failure(b"", error, None))["id"] is None
    assert json.loads(jsonrpc.failure(b"", error, R2025_03_26))["id"] is None
    assert "id" not in json.loads(jsonrpc.failure(b"", error, R2025_11_25))
    assert json.loads(jsonrpc.failure(b'"a"', error, R2025_11_25))["id"] == "a"


def test_encoded_frames_can_be_decoded() -> None:
    assert decode(jsonrpc.success(b"1", b"{}")[:-1]) == Response(b"1", b"{}", b"")
    assert decode(jsonrpc.notification("n", b"{}")[:-1]) == Notification("n", b"{}")
    assert decode(jsonrpc.request(b"1", "m", b"{}")[:-1]) == Request(b"1", b"1", "m", b"{}")
