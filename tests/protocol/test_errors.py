"""Error codes per era, and error objects."""

from protocol.errors import Fault, ProtocolError, error_object
from protocol.revisions import LATEST_LEGACY, MODERN


def test_every_fault_has_a_code_in_both_eras() -> None:
    for one in Fault:
        assert one.code(LATEST_LEGACY) == one.code(None) == one.legacy_code
        assert one.code(MODERN) == one.modern_code
        assert one.source
        # MCP 2026-07-28 excludes -32002 and reserves -32020 to -32099.
        assert one.modern_code != -32002
    reserved = {f.modern_code for f in Fault if -32099 <= f.modern_code <= -32020}
    assert reserved == {-32020, -32021, -32022}


def test_an_error_object_carries_details_and_kind() -> None:
    error = error_object(Fault.DATABASE_ERROR, "disk full", LATEST_LEGACY, retry=True)
    assert (error.code, error.message) == (-32002, "Database error: disk full")
    assert error.data == {"retry": True, "details": "disk full", "kind": "database_error"}
    assert error_object(Fault.DATABASE_ERROR, "disk full", MODERN).code == -32603
    assert str(ProtocolError(Fault.PARSE_ERROR)) == "Parse error"
