"""What goes to the log, and how often."""

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


def test_one_line_of_a_flood_a_minute_says_how_many_it_stands_for() -> None:
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
    """As much of a context as a tool asks for."""

    principal = OWNER
    bank = "b"


@pytest.mark.anyio
async def test_a_write_that_the_disk_refused_is_logged_without_what_was_to_be_written() -> None:
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
