"""Eras, versions, and the requests that each state allows."""

from typing import Any

import msgspec
import pytest

from protocol.connection import Call, Connection, Refused
from protocol.errors import Fault, ProtocolError
from protocol.jsonrpc import Request, decode
from protocol.lifecycle import Lifecycle, Offered, explain
from protocol.revisions import (
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
def test_an_unknown_version_gets_the_newest_legacy_revision(version: str) -> None:
    assert negotiate(version) is LATEST_LEGACY


@pytest.mark.parametrize("version", [None, 5, [], {}])
def test_a_version_that_is_not_a_string_is_rejected_and_can_be_retried(version: Any) -> None:
    lifecycle = Lifecycle(OFFERED)
    refused, details = fault(lifecycle, opening(version))
    assert refused is Fault.INVALID_PARAMS
    assert "protocolVersion" in details
    assert admit(lifecycle, opening()).revision is LATEST_LEGACY


def test_a_second_initialize_is_rejected_and_changes_nothing() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening("2025-03-26"))
    assert fault(lifecycle, opening("2025-11-25"))[0] is Fault.INVALID_REQUEST
    assert lifecycle.revision is R2025_03_26


def test_before_the_handshake_only_methods_that_need_none_are_answered() -> None:
    lifecycle = Lifecycle(OFFERED)
    assert admit(lifecycle, request(1, "ping")).revision is None
    assert fault(lifecycle, request(1, "no/such"))[0] is Fault.METHOD_NOT_FOUND
    refused, details = fault(lifecycle, request(1, "tools/list"))
    assert refused is Fault.INVALID_PARAMS
    assert "initialize" in details
    assert PV in details
    assert fault(lifecycle, request(1, "server/discover"))[0] is Fault.INVALID_PARAMS


def test_after_the_handshake_modern_methods_without_meta_are_unknown() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening())
    assert fault(lifecycle, request(1, "server/discover"))[0] is Fault.METHOD_NOT_FOUND
    assert fault(lifecycle, request(1, "Tools/List"))[0] is Fault.METHOD_NOT_FOUND


def test_the_era_is_decided_for_each_message() -> None:
    lifecycle = Lifecycle(OFFERED)
    assert admit(lifecycle, modern(1, "tools/list")).revision is MODERN
    assert fault(lifecycle, request(2, "tools/list"))[0] is Fault.INVALID_PARAMS
    admit(lifecycle, opening("2024-11-05"))
    assert admit(lifecycle, request(3, "tools/list")).revision is R2024_11_05
    assert admit(lifecycle, modern(4, "tools/list")).revision is MODERN
    assert fault(lifecycle, modern(5, "ping"))[0] is Fault.METHOD_NOT_FOUND


def test_an_escaped_spelling_of_meta_is_recognised() -> None:
    line = modern(1, "tools/list").replace(b'"_meta"', b'"\\u005fmeta"')
    assert admit(Lifecycle(OFFERED), line).revision is MODERN
    line = modern(1, "tools/list").replace(
        b"io.modelcontextprotocol/", b"io.modelcontextprotocol\\/"
    )
    assert admit(Lifecycle(OFFERED), line).revision is MODERN


def test_initialize_with_a_version_is_legacy_and_with_meta_only_unknown() -> None:
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
def test_modern_checks_name_the_problem(meta: dict[str, Any], expected: Fault, words: str) -> None:
    refused, details = fault(Lifecycle(OFFERED), request(1, "tools/list", _meta=meta))
    assert refused is expected
    assert words in details


@pytest.mark.parametrize("meta", [None, 5, "x", []])
def test_meta_must_be_an_object(meta: Any) -> None:
    lifecycle = Lifecycle(OFFERED)
    assert "_meta" in fault(lifecycle, request(1, "tools/list", _meta=meta))[1]


def test_the_error_for_an_unsupported_version_lists_the_supported_ones() -> None:
    connection = Connection(OFFERED)
    line = request(1, "tools/list", _meta={PV: "1999-01-01", CC: {}})
    (event,) = connection.receive(line)
    assert isinstance(event, Refused)
    error = msgspec.json.decode(event.frame)["error"]
    assert error["code"] == -32022
    assert error["data"]["supported"] == SUPPORTED
    assert error["data"]["requested"] == "1999-01-01"


def test_meta_carries_client_capabilities_and_log_level() -> None:
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


def test_the_handshake_keeps_the_client_capabilities() -> None:
    lifecycle = Lifecycle(OFFERED)
    admit(lifecycle, opening(capabilities={"sampling": {}, "unheard-of": 1}))
    assert lifecycle.handshake is not None
    assert lifecycle.handshake.capabilities.has("sampling")
    assert not lifecycle.handshake.capabilities.has("roots")
    assert not lifecycle.handshake.capabilities.has("no such field")


def test_a_pipelined_handshake_works_in_one_chunk() -> None:
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
def test_a_decoder_error_uses_json_type_names(given: Any, words: str) -> None:
    with pytest.raises(msgspec.ValidationError) as raised:
        msgspec.json.decode(msgspec.json.encode(given), type=_Shape)
    assert explain(raised.value) == words
