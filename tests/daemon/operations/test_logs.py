"""The log: its events and their frequency."""

from typing import Any

import pytest
import structlog
from msgspec import Raw, Struct

from daemon.operations.logs import REPEAT_SECONDS, RepeatFilter
from daemon.tools.authority import OWNER
from daemon.tools.bound_tool import BoundTool
from daemon.tools.specification import ToolSpec
from store.errors import StorageFull
from tests.support.clock import FakeClock


def test_a_repeating_event_is_logged_once_per_minute_with_the_number_suppressed() -> None:
    clock = FakeClock()
    repeat_filter = RepeatFilter(clock)

    def said(event: str, **fields: Any) -> Any:
        try:
            return repeat_filter(None, "warning", {"event": event, **fields})
        except structlog.DropEvent:
            return None

    assert said("write.refused", reason="StorageFull")["suppressed"] == 0
    assert [said("write.refused", reason="StorageFull") for _ in range(5)] == [None] * 5
    assert said("write.refused", reason="StorageReadOnly")["suppressed"] == 0
    assert said("call.refused") is not None
    assert said("call.refused") is not None
    clock.advance(REPEAT_SECONDS)
    assert said("write.refused", reason="StorageFull")["suppressed"] == 5


class Words(Struct):
    content: str


class Caller:
    """The part of a context that the tool uses."""

    principal = OWNER
    headers = None
    bank = "b"


@pytest.mark.anyio
async def test_a_failed_write_is_logged_without_its_content() -> None:
    async def run(_arguments: Words, _context: Any) -> str:
        raise StorageFull("no space left on the disk")

    tool = BoundTool(ToolSpec(name="put", description="", arguments=Words, run=run))
    caller: Any = Caller()
    with structlog.testing.capture_logs() as lines:
        given: Any = tool.call(Raw(b'{"content":"a secret"}'), caller)
        with pytest.raises(StorageFull):
            await given
    assert lines == [
        {"event": "write.refused", "log_level": "warning", "reason": "StorageFull", "tool": "put"}
    ]
