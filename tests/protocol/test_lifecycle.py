"""Eras, versions and what may be asked when."""

from typing import Any

import msgspec
import pytest

from protocol.connection import Call, Connection, Refused
from protocol.errors import Fault, ProtocolError, error_object
from protocol.jsonrpc import Request, decode
from protocol.lifecycle import Lifecycle, Offered, explain
from protocol.revisions import (
    ALL,
    LATEST_LEGACY,
    LEGACY,
    MODERN,
    R2024_11_05,
    R2025_03_26,
    SUPPORTED,
    negotiate,
)
from tests.support.wire import modern, request

OFFERED = Offered(
    legacy=frozenset({"initialize", "ping", "tools/list", "tools/call"}),
    modern=frozenset({"server/discover", "tools/list", "tools/call"}),
    unopened=frozenset({"ping"}),
)
PV = "io.modelcontextprotocol/protocolVersion"
CC = "io.modelcontextprotocol/clientCapabilities"


def admit(lifecycle: Lifecycle, line: bytes) -> Any:
    message = decode(line[:-1])
    assert isinstance(message, Request)
    return lifecycle.admit(message)


def fault(lifecycle: Lifecycle, line: bytes) -> tuple[Fault, str]:
    with pytest.raises(ProtocolError) as refused:
        admit(lifecycle, line)
    return refused.value.fault, refused.value.details


def opening(version: Any = "2025-11-25", **more: Any) -> bytes:
    return request(0, "initialize", protocolVersion=version, **more)


@pytest.mark.parametrize("version", list(LEGACY))
def test_each_legacy_version_is_echoed(version: str) -> None:
    lifecycle = Lifecycle(OFFERED)
    assert admit(lifecycle, opening(version)).revision.date == version


@pytest.mark.parametrize("version", ["2026-07-28", "1.0.0", "", "draft", "2099-01-01"])
def test_any_other_version_gets_our_newest_legacy_one(version: str) -> None:
    assert negotiate(version) is LATEST_LEGACY


@pytest.mark.parametrize("version", [None, 5, [], {}])
def test_a_version_that_is_no_text_is_refused_and_can_be_tried_again(version: Any) -> None:
    lifecycle = Lifecycle(OFFERED)
    refused, details = fault(lifecycle, opening(version))
    assert refused is Fault.INVALID_PARAMS
    assert "protocolVersion" in details
    assert admit(lifecycle, opening()).revision is LATEST_LEGACY


def test_a_second_initialize_is_refused_and_changes_nothing() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening("2025-03-26"))
    assert fault(lifecycle, opening("2025-11-25"))[0] is Fault.INVALID_REQUEST
    assert lifecycle.revision is R2025_03_26


def test_before_the_handshake_only_what_needs_none_is_answered() -> None:
    lifecycle = Lifecycle(OFFERED)
    assert admit(lifecycle, request(1, "ping")).revision is None
    assert fault(lifecycle, request(1, "no/such"))[0] is Fault.METHOD_NOT_FOUND
    refused, details = fault(lifecycle, request(1, "tools/list"))
    assert refused is Fault.INVALID_PARAMS
    assert "initialize" in details
    assert PV in details
    assert fault(lifecycle, request(1, "server/discover"))[0] is Fault.INVALID_PARAMS


def test_after_the_handshake_modern_methods_do_not_exist_without_meta() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening())
    assert fault(lifecycle, request(1, "server/discover"))[0] is Fault.METHOD_NOT_FOUND
    assert fault(lifecycle, request(1, "Tools/List"))[0] is Fault.METHOD_NOT_FOUND


def test_the_era_is_decided_by_each_message() -> None:
    lifecycle = Lifecycle(OFFERED)
    assert admit(lifecycle, modern(1, "tools/list")).revision is MODERN
    assert fault(lifecycle, request(2, "tools/list"))[0] is Fault.INVALID_PARAMS
    admit(lifecycle, opening("2024-11-05"))
    assert admit(lifecycle, request(3, "tools/list")).revision is R2024_11_05
    assert admit(lifecycle, modern(4, "tools/list")).revision is MODERN
    assert fault(lifecycle, modern(5, "ping"))[0] is Fault.METHOD_NOT_FOUND


def test_an_escaped_spelling_of_meta_is_still_meta() -> None:
    line = modern(1, "tools/list").replace(b'"_meta"', b'"\\u005fmeta"')
    assert admit(Lifecycle(OFFERED), line).revision is MODERN
    line = modern(1, "tools/list").replace(
        b"io.modelcontextprotocol/", b"io.modelcontextprotocol\\/"
    )
    assert admit(Lifecycle(OFFERED), line).revision is MODERN


def test_initialize_is_legacy_when_it_names_a_version_and_unknown_when_only_meta_does() -> None:
    lifecycle = Lifecycle(OFFERED)
    assert fault(lifecycle, modern(1, "initialize"))[0] is Fault.METHOD_NOT_FOUND
    both = modern(1, "initialize", protocolVersion="2025-06-18")
    assert admit(lifecycle, both).revision.date == "2025-06-18"


@pytest.mark.parametrize(
    ("meta", "expected", "words"),
    [
        ({PV: "2026-07-28"}, Fault.INVALID_PARAMS, "clientCapabilities"),
        ({PV: "2026-07-28", CC: None}, Fault.INVALID_PARAMS, "clientCapabilities"),
        ({PV: "2026-07-28", CC: []}, Fault.INVALID_PARAMS, "clientCapabilities"),
        ({PV: "2026-07-28", CC: {"sampling": 5}}, Fault.INVALID_PARAMS, "sampling"),
        ({PV: 5, CC: {}}, Fault.INVALID_PARAMS, "string"),
        ({PV: None, CC: {}}, Fault.INVALID_PARAMS, "string"),
        ({PV: "2025-11-25", CC: {}}, Fault.UNSUPPORTED_VERSION, "2025-11-25"),
        ({PV: "", CC: {}}, Fault.UNSUPPORTED_VERSION, ""),
        (
            {PV: "2026-07-28", CC: {}, "io.modelcontextprotocol/clientInfo": 1},
            Fault.INVALID_PARAMS,
            "clientInfo",
        ),
        (
            {PV: "2026-07-28", CC: {}, "io.modelcontextprotocol/logLevel": "loud"},
            Fault.INVALID_PARAMS,
            "one of debug",
        ),
        (
            {PV: "2026-07-28", CC: {}, "io.modelcontextprotocol/logLevel": 1},
            Fault.INVALID_PARAMS,
            "logLevel",
        ),
        ({PV: "2026-07-28", CC: {}, "progressToken": 1.5}, Fault.INVALID_PARAMS, "progressToken"),
        ({CC: {}}, Fault.INVALID_PARAMS, "initialize"),
        ({"progressToken": {}}, Fault.INVALID_PARAMS, "progressToken"),
    ],
)
def test_the_modern_ladder_names_what_is_wrong(
    meta: dict[str, Any], expected: Fault, words: str
) -> None:
    refused, details = fault(Lifecycle(OFFERED), request(1, "tools/list", _meta=meta))
    assert refused is expected
    assert words in details


@pytest.mark.parametrize("meta", [None, 5, "x", []])
def test_meta_is_an_object(meta: Any) -> None:
    lifecycle = Lifecycle(OFFERED)
    assert "_meta" in fault(lifecycle, request(1, "tools/list", _meta=meta))[1]


def test_an_unsupported_version_is_told_what_is_supported() -> None:
    connection = Connection(OFFERED)
    line = request(1, "tools/list", _meta={PV: "1999-01-01", CC: {}})
    (event,) = connection.receive(line)
    assert isinstance(event, Refused)
    error = msgspec.json.decode(event.frame)["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == SUPPORTED
    assert error["data"]["requested"] == "1999-01-01"


def test_a_request_says_who_asks_and_how() -> None:
    meta = {
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "2", "more": 1},
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": "t",
        "traceparent": "00-a-b-01",
        "vendor/unknown": [1],
    }
    found = admit(Lifecycle(OFFERED), modern(1, "tools/list", meta)).meta
    assert (found.client.name, found.log_level, found.progress_token) == ("c", "info", b'"t"')
    assert found.traceparent == "00-a-b-01"
    assert not found.capabilities.has("sampling")
    odd = admit(Lifecycle(OFFERED), modern(1, "tools/list", {"traceparent": 5})).meta
    assert odd.traceparent is None


def test_the_handshake_keeps_what_the_client_can_do() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening(capabilities={"sampling": {}, "unheard-of": 1}))
    assert lifecycle.handshake is not None
    assert lifecycle.handshake.capabilities.has("sampling")
    assert not lifecycle.handshake.capabilities.has("roots")
    assert not lifecycle.handshake.capabilities.has("no such field")


def test_a_pipelined_opening_works_in_one_chunk() -> None:
    connection = Connection(OFFERED)
    events = []
    for event in connection.receive(opening() + request(1, "tools/list")):
        assert isinstance(event, Call)
        events.append(event.method)
        connection.reply(event, b"{}")
    assert events == ["initialize", "tools/list"]


class _Shape(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    count: int = 0
    inner: dict[str, int] = {}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "text: required field is missing"),
        ({"text": 5}, "text: expected string, got integer"),
        ({"text": "a", "count": "x"}, "count: expected integer, got string"),
        ({"text": "a", "other": 1}, "other: unknown field"),
        ({"text": "a", "inner": {"k": "v"}}, "inner[...]: expected integer, got string"),
        ([], "expected object, got array"),
    ],
)
def test_a_decoders_complaint_is_told_in_the_words_of_the_wire(given: Any, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(msgspec.json.encode(given), type=_Shape)
    assert explain(raised.value) == words


def test_every_fault_has_a_number_in_both_eras() -> None:
    for one in Fault:
        assert one.code(LATEST_LEGACY) == one.code(None) == one.legacy_code
        assert one.code(MODERN) == one.modern_code
        assert one.source
        # 2026-07-28 excludes -32002 and reserves -32020 to -32099 for itself.
        assert one.modern_code != -32002
    reserved = {f.modern_code for f in Fault if -32099 <= f.modern_code <= -32020}
    assert reserved == {-32020, -32021, -32022}


def test_an_error_carries_the_seeds_details() -> None:
    error = error_object(Fault.DATABASE_ERROR, "disk full", LATEST_LEGACY, retry=True)
    assert (error.code, error.message) == (-32002, "Database error: disk full")
    assert error.data == {"retry": True, "details": "disk full", "kind": "database_error"}
    assert error_object(Fault.DATABASE_ERROR, "disk full", MODERN).code == -32603
    assert str(ProtocolError(Fault.PARSE_ERROR)) == "Parse error"


def test_revisions_are_listed_newest_first_and_once() -> None:
    assert sorted(SUPPORTED, reverse=True) == SUPPORTED
    assert len(ALL) == 5
