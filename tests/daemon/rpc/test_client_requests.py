"""Questions to a client: answered once, refused, given up, or left behind."""

import anyio
import msgspec
import pytest

from daemon.rpc.client_requests import Questions
from daemon.tools.errors import ToolFailure
from protocol import jsonrpc
from protocol.jsonrpc import Response

pytestmark = pytest.mark.anyio


class Client:
    """Answers what it is asked as it was told to, from inside `send`."""

    def __init__(self, questions: Questions, *answers: str) -> None:
        self._questions = questions
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
        self._questions.answered(answer)
        self._questions.answered(answer)  # a second one is nobody's


@pytest.mark.parametrize(("label", "ids"), [("", [1, 2]), ("ab", ["ab-1", "ab-2"])])
async def test_each_question_has_an_id_of_its_own_and_gets_its_own_answer(
    label: str, ids: list[object]
) -> None:
    questions = Questions(label)
    client = Client(questions, '"result":{"n":1}', '"result":{"n":2}')
    assert await questions.ask(client.take, "roots/list", b"{}") == {"n": 1}
    assert await questions.ask(client.take, "roots/list", b"{}") == {"n": 2}
    assert client.ids == ids


async def test_a_refusal_is_the_tools_failure_and_names_the_method() -> None:
    questions = Questions()
    client = Client(questions, '"error":{"code":-1,"message":"no"}')
    with pytest.raises(ToolFailure, match="refused sampling/createMessage"):
        await questions.ask(client.take, "sampling/createMessage", b"{}")


async def test_a_client_that_never_answers_is_not_waited_for_longer_than_the_bound() -> None:
    questions = Questions(seconds=0.01)
    client = Client(questions)
    with pytest.raises(ToolFailure, match=r"did not answer roots/list in 0\.01 s"):
        await questions.ask(client.take, "roots/list", b"{}")


async def test_when_the_client_leaves_whoever_waits_is_refused() -> None:
    questions = Questions()
    client = Client(questions)
    refused = anyio.Event()

    async def wait() -> None:
        with pytest.raises(ToolFailure, match="refused"):
            await questions.ask(client.take, "roots/list", b"{}")
        refused.set()

    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            questions.close()
            await refused.wait()
