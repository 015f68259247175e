"""Progress of one engine call, told from another thread's count."""

from typing import Any

import anyio
import anyio.to_thread
import pytest

from daemon.tools.progress import MANY, counted
from store.engine import Progress
from store.errors import StorageFull, StoreError
from tests.daemon.dialects.awareness.test_laws import OneCaller

pytestmark = pytest.mark.anyio


class Listening(OneCaller):
    """A context that records the progress it receives."""

    def __init__(self) -> None:
        super().__init__("default")
        self.told: list[tuple[float, float | None, str | None]] = []
        self.heard = anyio.Event()

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        self.told.append((progress, total, message))
        self.heard.set()


async def test_the_whole_is_told_only_when_the_work_is_done() -> None:
    caller = Listening()

    async def work(progress: Progress) -> str:
        await anyio.to_thread.run_sync(progress, 7, 100)
        await caller.heard.wait()
        await anyio.to_thread.run_sync(progress, 100, 100)
        await anyio.wait_all_tasks_blocked()
        assert [done for done, _, _ in caller.told] == [7], "written is not committed"
        return "kept"

    with anyio.fail_after(5):
        assert await counted(caller, "notes", work) == "kept"
    assert caller.told == [(7, 100, "7 of 100 notes"), (100, 100, "100 of 100 notes")]


@pytest.mark.parametrize("total", [0, 1, MANY - 1])
async def test_little_is_not_talked_about(total: int) -> None:
    caller = Listening()

    async def work(progress: Progress) -> None:
        for done in range(total):
            progress(done + 1, total)

    await counted(caller, "notes", work)
    assert caller.told == []


async def test_a_failure_of_the_engine_comes_out_as_itself_and_tells_no_whole() -> None:
    caller = Listening()

    async def work(progress: Progress) -> Any:
        progress(3, 100)
        await caller.heard.wait()
        raise StorageFull("no space left on the disk")

    with anyio.fail_after(5), pytest.raises(StoreError, match="no space left"):
        await counted(caller, "notes", work)
    assert [done for done, _, _ in caller.told] == [3]
