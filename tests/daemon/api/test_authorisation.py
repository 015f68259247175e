"""Every operation of `/api/v1` against a token: no bank that it may not use is revealed."""

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from daemon.api.operation import PREFIX, Operation
from tests.daemon.api.test_banks import READER, TOKENS, WRITER
from tests.support.memory import remembering_web
from tests.support.web import Web, token_file

pytestmark = pytest.mark.anyio

#: Values for required arguments that an example of a body does not show.
GIVEN: dict[str, dict[str, Any]] = {
    "delete_bank": {"confirm": "private"},
    "change_memories": {"action": "forget", "ids": ["mem_1"]},
}


async def ask(web: Web, operation: Operation, bank: str, secret: str) -> httpx.Response:
    members = {"bank": bank, "id": "mem_1", "name": "notes", "client": "cursor"}
    path = PREFIX + re.sub(r"\{(\w+)\}", lambda found: members[found[1]], operation.path)
    given = {**(operation.example or {}), **GIVEN.get(operation.spec.name, {})}
    return await web.client.request(
        operation.verb,
        path,
        json=given if operation.takes_body else None,
        params=None if operation.takes_body else given,
        headers={"authorization": f"Bearer {secret}"},
    )


async def test_a_bank_without_a_grant_answers_as_if_it_did_not_exist(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        await toolkit.engine.create_bank("private")
        operations = [each for each in web.services.api.listed if "bank" in each.members]
        for operation in operations:
            for secret in (READER, WRITER):
                there = await ask(web, operation, "private", secret)
                absent = await ask(web, operation, "nothing", secret)
                name = operation.spec.name
                assert there.status_code == absent.status_code == 403, (name, there.text)
                assert there.content == absent.content, name

    assert len(operations) > 35


async def test_operations_without_a_bank_are_for_the_owner_or_reveal_no_bank(
    tmp_path: Path,
) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        await toolkit.engine.create_bank("private")
        for operation in web.services.api.listed:
            if "bank" not in operation.members:
                answer = await ask(web, operation, "private", READER)
                assert answer.status_code in (200, 403), operation.spec.name
                assert "private" not in answer.text
                assert operation.for_owner or answer.status_code == 200


async def test_a_reader_changes_nothing(tmp_path: Path) -> None:
    tokens = token_file(tmp_path, TOKENS)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        await toolkit.engine.create_bank("work")
        for operation in web.services.api.listed:
            if operation.spec.read_only or "bank" not in operation.members:
                continue
            answer = await ask(web, operation, "work", READER)
            assert answer.status_code == 403, (operation.spec.name, answer.text)
        assert (await toolkit.engine.stats("work")).items == 0


async def test_a_token_of_two_banks_lists_both_whatever_the_default_bank_is(
    tmp_path: Path,
) -> None:
    two = TOKENS.replace('banks = ["work"]', 'banks = ["work", "plans"]')
    tokens = token_file(tmp_path, two)
    async with remembering_web(tmp_path, server__token_file=tokens) as (web, toolkit):
        for name in ("work", "plans", "private"):
            await toolkit.engine.create_bank(name)
        answer = await web.client.get(
            "/api/v1/banks", headers={"authorization": f"Bearer {READER}"}
        )

    names = [bank["name"] for bank in json.loads(answer.text)["banks"]]
    assert names == ["plans", "work"]
