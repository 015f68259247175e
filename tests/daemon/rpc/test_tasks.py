"""Calls that go on as tasks (SEP-2663)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import Struct

from daemon.rpc.peer import Peer
from daemon.rpc.tasks import keeper as tasks
from daemon.rpc.tasks.keeper import TTL_MS, TaskKeeper
from daemon.tools.authority import OWNER, Principal
from daemon.tools.context import Context
from daemon.tools.registry import Registry
from daemon.tools.specification import ToolSpec
from daemon.tools.surface import Surface
from protocol.errors import ProtocolError
from tests.support.wire import MemoryWire, call, initialize, join, modern, running_services

pytestmark = pytest.mark.anyio

TASKS = "io.modelcontextprotocol/tasks"
ABLE: dict[str, Any] = {
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "extensions": {TASKS: {}}}
}


class Client:
    """A modern client that declares the tasks extension and waits for each answer."""

    def __init__(self, peer: Peer, wire: MemoryWire) -> None:
        self._peer = peer
        self._wire = wire
        self._id = 0

    async def ask(self, method: str, **params: Any) -> Any:
        self._id += 1
        seen = len(self._wire.frames())
        self._peer.feed(modern(self._id, method, ABLE, **params))
        while True:
            seen += 1
            frame = (await self._wire.wait_for(seen))[seen - 1]
            if frame.get("id") == self._id:
                return frame.get("result", frame.get("error"))

    async def call(self, tool: str, **arguments: Any) -> Any:
        return await self.ask("tools/call", name=tool, arguments=arguments)

    async def until(self, id: str, *statuses: str) -> Any:
        return await self.once(id, lambda task: task["status"] in statuses)

    async def once(self, id: str, holds: Callable[[Any], bool]) -> Any:
        """Ask for a task until the condition holds, as a client polls."""
        with anyio.fail_after(5):
            while True:
                task = await self.ask("tasks/get", taskId=id)
                if holds(task):
                    return task
                await anyio.sleep(0.01)


async def test_a_long_call_is_answered_with_a_task_that_ends_with_the_result(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        client = Client(*join(services))
        created = await client.call("slow_compute", seconds=0.05, label="x")
        assert created["resultType"] == "task"
        assert not created.keys() & {"result", "error", "inputRequests"}
        done = await client.until(created["taskId"], "completed")
        assert done["resultType"] == "complete"
        assert done["result"]["content"][0]["text"] == "computed x"


async def test_a_client_without_the_extension_gets_the_result(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(
            modern(1, "tools/call", name="slow_compute", arguments={"seconds": 0})
            + modern(2, "tasks/get", taskId="x")
            + modern(3, "tools/call", name="failing_job", arguments={})
        )
        answers = {frame["id"]: frame for frame in await wire.wait_for(3)}
        assert answers[1]["result"]["resultType"] == "complete"
        for id in (2, 3):
            assert answers[id]["error"]["code"] == -32021
            required = answers[id]["error"]["data"]["requiredCapabilities"]
            assert required == {"extensions": {TASKS: {}}}


async def test_a_legacy_client_gets_the_result(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        peer.feed(initialize(extensions={TASKS: {}}) + call(1, "slow_compute", seconds=0))
        frames = await wire.wait_for(2)
        assert "extensions" not in frames[0]["result"]["capabilities"]
        assert frames[1]["result"]["content"][0]["type"] == "text"


async def test_a_call_that_ends_in_time_is_no_task(tmp_path: Path) -> None:
    class Seconds(Struct, frozen=True, kw_only=True):
        seconds: float

    async def wait(arguments: Seconds, context: Context) -> str:
        await anyio.sleep(arguments.seconds)
        return "done"

    spec = ToolSpec(name="wait", description="", arguments=Seconds, run=wait, task_after=0.2)
    surface = Surface(name="one", tools=Registry([spec]))
    async with running_services(tmp_path, surface=surface) as services:
        client = Client(*join(services))
        assert (await client.call("wait", seconds=0))["resultType"] == "complete"
        created = await client.call("wait", seconds=0.4)
        assert created["resultType"] == "task"
        await client.until(created["taskId"], "completed")


async def test_a_tool_error_completes_a_task_and_a_protocol_error_fails_it(
    tmp_path: Path,
) -> None:
    async with running_services(tmp_path) as services:
        client = Client(*join(services))
        failing = await client.call("failing_job")
        done = await client.until(failing["taskId"], "completed", "failed")
        assert done["status"] == "completed"
        assert done["result"]["isError"] is True
        breaking = await client.call("protocol_error_job")
        done = await client.until(breaking["taskId"], "completed", "failed")
        assert done["status"] == "failed"
        assert done["error"]["code"] == -32603
        assert "result" not in done


async def test_a_task_asks_and_goes_on_when_every_question_is_answered(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        client = Client(*join(services))
        id = (await client.call("multi_input"))["taskId"]
        asked = await client.once(id, lambda task: len(task.get("inputRequests", ())) == 2)
        first, second = asked["inputRequests"]
        assert asked["inputRequests"][first]["method"] == "elicitation/create"
        reply: dict[str, Any] = {"action": "accept", "content": {}}
        ignored = {"no-such-question": reply, first: reply}
        acknowledged = await client.ask("tasks/update", taskId=id, inputResponses=ignored)
        assert acknowledged.keys() == {"resultType", "_meta"}
        left = await client.ask("tasks/get", taskId=id)
        assert list(left["inputRequests"]) == [second]
        await client.ask("tasks/update", taskId=id, inputResponses={second: reply})
        await client.until(id, "completed")


async def test_a_cancelled_task_stops_and_may_be_cancelled_again(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        client = Client(*join(services))
        id = (await client.call("slow_compute", seconds=60))["taskId"]
        assert services.calls_as_tasks.is_busy
        for _ in range(2):
            ended = await client.ask("tasks/cancel", taskId=id)
            assert ended.keys() == {"resultType", "_meta"}
        assert (await client.until(id, "cancelled"))["status"] == "cancelled"
        assert not services.calls_as_tasks.is_busy


async def test_a_cancelled_request_ends_the_work_that_is_no_task_yet(tmp_path: Path) -> None:
    ended = anyio.Event()

    async def wait(_arguments: Any, context: Context) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    spec = ToolSpec(name="wait", description="", run=wait, task_after=60)
    surface = Surface(name="one", tools=Registry([spec]))
    async with running_services(tmp_path, surface=surface) as services:
        peer, _ = join(services)
        peer.feed(modern(1, "tools/call", ABLE, name="wait", arguments={}))
        await anyio.wait_all_tasks_blocked()
        cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}\n'
        peer.feed(cancel)
        with anyio.fail_after(5):
            await ended.wait()


async def test_a_listener_is_told_every_state_of_its_task(tmp_path: Path) -> None:
    async with running_services(tmp_path) as services:
        peer, wire = join(services)
        client = Client(peer, wire)
        id = (await client.call("confirm_delete", filename="x"))["taskId"]
        key = next(iter((await client.until(id, "input_required"))["inputRequests"]))
        other, heard = join(services)
        wants = {"taskIds": [id, "unknown"]}
        other.feed(modern("l", "subscriptions/listen", ABLE, notifications=wants))
        acknowledged = (await heard.wait_for(1))[0]
        assert acknowledged["params"]["notifications"] == {"taskIds": [id]}
        answers = {key: {"action": "accept", "content": {"ok": True}}}
        await client.ask("tasks/update", taskId=id, inputResponses=answers)
        frames = await heard.wait_for(3)
        assert [frame["method"] for frame in frames[1:]] == ["notifications/tasks"] * 2
        assert [frame["params"]["status"] for frame in frames[1:]] == ["working", "completed"]
        assert "deleted" in frames[2]["params"]["result"]["content"][0]["text"]
        other.feed(modern("m", "subscriptions/listen", notifications=wants))
        assert (await heard.wait_for(4))[3]["error"]["code"] == -32021


async def test_the_progress_of_a_task_is_its_status_message(tmp_path: Path) -> None:
    async def work(_arguments: Any, context: Context) -> str:
        await anyio.sleep(0.02)
        await context.progress(3, total=7)
        await context.log("error", "not sent")
        await anyio.sleep_forever()
        return ""

    spec = ToolSpec(name="work", description="", run=work, task_after=0)
    surface = Surface(name="one", tools=Registry([spec]), logging=True)
    async with running_services(tmp_path, surface=surface) as services:
        peer, wire = join(services)
        client = Client(peer, wire)
        id = (await client.call("work"))["taskId"]
        await client.once(id, lambda task: task.get("statusMessage") == "3 of 7")
        assert not [frame for frame in wire.frames() if "method" in frame]


async def test_a_task_is_unknown_to_other_principals_and_after_its_time() -> None:
    now = [0]
    async with anyio.create_task_group() as group:
        keeper = TaskKeeper(group, lambda: now[0], lambda _: None)
        task = keeper.create(OWNER)
        assert task is not None

        async def work() -> bytes:
            await anyio.sleep(0.01)
            return b"{}"

        assert await keeper.run(task, work(), 0) is None
        assert keeper.find(task.id, OWNER) is task
        with pytest.raises(ProtocolError, match="no task has this id"):
            keeper.find(task.id, Principal(name="another"))
        assert keeper.known([task.id], Principal(name="another")) == []
        await task.settled.wait()
        now[0] = TTL_MS
        assert keeper.find(task.id, OWNER) is task
        now[0] = TTL_MS + 1
        with pytest.raises(ProtocolError, match="no task has this id"):
            keeper.find(task.id, OWNER)


async def test_a_call_beyond_the_limit_of_tasks_is_answered_when_it_is_done() -> None:
    async def wait() -> bytes:
        await anyio.sleep_forever()
        return b""

    async with anyio.create_task_group() as group:
        keeper = TaskKeeper(group, lambda: 0, lambda _: None)
        for _ in range(tasks.MAX_TASKS):
            task = keeper.create(OWNER)
            assert task is not None
            await keeper.run(task, wait(), 0)
        assert keeper.create(OWNER) is None
        group.cancel_scope.cancel()
