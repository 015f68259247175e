"""A bearer token is rate-limited over all its sessions together."""

from pathlib import Path

import pytest

from tests.support.web import running_web, token_file

pytestmark = pytest.mark.anyio

SECRET = "s" * 40
TOKENS = f"""
[[token]]
name = "many"
secret = "{SECRET}"
"""


async def test_a_token_with_many_sessions_is_limited_like_one(tmp_path: Path) -> None:
    file = token_file(tmp_path, TOKENS)
    headers = {"authorization": f"Bearer {SECRET}"}
    async with running_web(
        tmp_path,
        server__token_file=file,
        limits__requests_per_minute=5,
        limits__principal_requests_per_minute=8,
    ) as web:
        codes: list[int | None] = []
        for _ in range(4):
            session = await web.open(headers=headers)
            for number in range(3):
                listing = {"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}}
                answer = (await web.post(listing, session)).json()
                codes.append(answer.get("error", {}).get("code"))
        assert codes == [None] * 8 + [-32001] * 4
