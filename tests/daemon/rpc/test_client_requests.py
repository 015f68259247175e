"""Requests to a client: answered, refused, timed out, or cut off."""

import anyio
import msgspec
import pytest

from daemon.rpc.client_requests import ClientRequests
from daemon.tools.errors import ToolFailure
from protocol import jsonrpc
from protocol.jsonrpc import Response

pytestmark = pytest.mark.anyio


class Client:
    """A client that gives prepared answers from inside `send`."""

    def __init__(self, requests: ClientRequests, *answers: str) -> None:
        self._requests = requests
        self._answers = list(answers)
        self.ids: list[object] = []

    def take(self, frame: bytes) -> None:
        asked = msgspec.json.decode(frame)
        self.ids.append(asked["id"])
        if not self._answers:
            return
        id = msgspec.json.encode(asked["id"]).decode()
        answer = jsonrpc.decode(f'{{"jsonrpc":"2.0","id":{id},{self._answers.pop(0)}}}'.encode())
        assert isinstance(answer, Response)
        self._requests.answered(answer)
        self._requests.answered(answer)  # a second answer is ignored


@pytest.mark.parametrize(("label", "ids"), [("", [1, 2]), ("ab", ["ab-1", "ab-2"])])
async def test_each_request_has_its_own_id_and_gets_its_own_answer(
    label: str, ids: list[object]
) -> None:
    requests = ClientRequests(label)
    client = Client(requests, '"result":{"n":1}', '"result":{"n":2}')
    assert await requests.ask(client.take, "roots/list", b"{}") == {"n": 1}
    assert await requests.ask(client.take, "roots/list", b"{}") == {"n": 2}
    assert client.ids == ids


async def test_an_error_of_the_client_becomes_a_tool_failure_that_names_the_method() -> None:
    requests = ClientRequests()
    client = Client(requests, '"error":{"code":-1,"message":"no"}')
    with pytest.raises(ToolFailure, match="refused sampling/createMessage"):
        await requests.ask(client.take, "sampling/createMessage", b"{}")


async def test_a_request_fails_after_its_timeout() -> None:
    requests = ClientRequests(seconds=0.01)
    client = Client(requests)
    with pytest.raises(ToolFailure, match=r"did not answer roots/list in 0\.01 s"):
        await requests.ask(client.take, "roots/list", b"{}")


async def test_open_requests_fail_when_the_client_disconnects() -> None:
    requests = ClientRequests()
    client = Client(requests)
    refused = anyio.Event()

    async def wait() -> None:
        with pytest.raises(ToolFailure, match="refused"):
            await requests.ask(client.take, "roots/list", b"{}")
        refused.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            requests.close()
            await refused.wait()
