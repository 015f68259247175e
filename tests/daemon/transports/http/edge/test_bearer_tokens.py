"""Bearer tokens: the file, the commands that change it, and the effect on a running daemon."""

import os
import stat
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest

from daemon.exit_codes import CANNOT_CREATE, CONFIG, Exit
from daemon.transports.http.edge.bearer_tokens import Tokens
from daemon.transports.http.edge.messages import Pace
from daemon.transports.http.edge.token_file import (
    TokenEntry,
    add_entry,
    digest_of,
    parse,
    read_entries,
    remove_entry,
)
from tests.support.web import BOTH, Web, call, modern, request, running_web, token_file

pytestmark = pytest.mark.anyio

SECRETS: Final = {name: name.ljust(40, "x") for name in ("laptop", "phone")}
BOTH_TOKENS: Final = f"""\
# Who may come in.

# Alice's machine
[[token]]
name = "laptop"
secret = "{SECRETS["laptop"]}"

# Only looks
[[token]]
name = "phone"
sha256 = "{digest_of(SECRETS["phone"]).hex()}"
write = false  # never
"""


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {SECRETS[name]}"}


def entry(name: str) -> TokenEntry:
    return TokenEntry(name=name, sha256=digest_of(name * 40).hex())


# --- the file --------------------------------------------------------------------------------


def test_a_token_can_be_stored_as_digest_or_as_secret(tmp_path: Path) -> None:
    tokens = Tokens(Path(token_file(tmp_path, BOTH_TOKENS)))
    for name in SECRETS:
        found = tokens.principal(f"Bearer {SECRETS[name]}")
        assert found is not None
        assert (found.name, found.can_write) == (name, name == "laptop")
    assert tokens.principal(f"Bearer {digest_of(SECRETS['phone']).hex()}") is None


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ("", "sha256 or a secret"),
        (f'secret = "{"s" * 40}"\nsha256 = "{"a" * 64}"', "one of them"),
        (f'sha256 = "{"A" * 64}"', "64 lower-case hex digits"),
        ('sha256 = "abc"', "64 lower-case hex digits"),
    ],
)
def test_a_token_needs_exactly_one_of_digest_and_secret(kept: str, words: str) -> None:
    with pytest.raises(Exit, match=words):
        parse(f'[[token]]\nname = "a"\n{kept}\n'.encode())


def test_adding_and_revoking_preserves_comments(tmp_path: Path) -> None:
    path = Path(token_file(tmp_path, BOTH_TOKENS))
    assert add_entry(path, entry("third"))
    assert not add_entry(path, entry("third")), "the name is taken"
    assert path.read_text().startswith(BOTH_TOKENS)
    assert [found.name for found in read_entries(path)] == ["laptop", "phone", "third"]
    assert remove_entry(path, "laptop")
    assert not remove_entry(path, "laptop")
    text = path.read_text()
    assert "Alice" not in text
    assert "# Who may come in." in text
    assert "# Only looks\n[[token]]" in text
    assert "write = false  # never" in text
    for name in ("phone", "third"):
        assert remove_entry(path, name)
    assert read_entries(path) == []
    assert "# Who may come in." in path.read_text()
    assert add_entry(path, entry("again"))
    assert [found.name for found in read_entries(path)] == ["again"]
    assert "# Who may come in." in path.read_text()


@pytest.mark.parametrize("name", ['quote"back\\slash', "日本 😀", "[[token]]", "a = # b", "\x7fx"])
def test_every_valid_name_can_be_added_and_revoked(tmp_path: Path, name: str) -> None:
    path = tmp_path / "tokens.toml"
    odd = TokenEntry(name=name, sha256="a" * 64, banks=[name, "b"], write=False, created="x")
    if not name.isprintable():
        with pytest.raises(Exit, match="cannot be the name"):
            add_entry(path, odd)
        return
    add_entry(path, entry("before"))
    add_entry(path, odd)
    add_entry(path, entry("after"))
    assert read_entries(path)[1] == odd
    assert remove_entry(path, name)
    assert [found.name for found in read_entries(path)] == ["before", "after"]


def test_a_file_with_inline_tables_is_rewritten(tmp_path: Path) -> None:
    inline = (
        f'token = [{{name = "a", secret = "{"s" * 40}"}}, {{name = "b", sha256 = "{"0" * 64}"}}]'
    )
    path = Path(token_file(tmp_path, inline))
    add_entry(path, entry("c"))
    remove_entry(path, "b")
    assert [(found.name, found.secret) for found in read_entries(path)] == [
        ("a", "s" * 40),
        ("c", ""),
    ]


def test_the_file_is_private_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    add_entry(path, entry("a"))
    first = path.stat()
    add_entry(path, entry("b"))
    assert path.stat().st_ino != first.st_ino
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["tokens.toml"]


def test_concurrent_commands_lose_no_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    names = [f"token-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda name: add_entry(path, entry(name)), names))
    assert {found.name for found in read_entries(path)} == set(names)


def test_entries_that_cannot_be_read_are_not_written(tmp_path: Path) -> None:
    path = Path(token_file(tmp_path, BOTH_TOKENS))
    link = tmp_path / "link.toml"
    link.symlink_to(path)
    dangling = tmp_path / "dangling.toml"
    dangling.symlink_to(tmp_path / "nothing")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    loose = tmp_path / "loose.toml"
    loose.write_text(BOTH_TOKENS)
    loose.chmod(0o640)
    broken = tmp_path / "broken.toml"
    broken.write_text("token = 7")
    broken.chmod(0o600)
    for bad in (link, dangling, pipe, loose, broken, tmp_path):
        before = bad.read_bytes() if bad.is_file() else b""
        with pytest.raises(Exit, match="token file") as raised:
            add_entry(bad, entry("x"))
        assert raised.value.code == CONFIG
        with pytest.raises(Exit, match="token file"):
            remove_entry(bad, "laptop")
        assert (bad.read_bytes() if bad.is_file() else b"") == before
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(Exit) as raised:
        add_entry(tmp_path / "no" / "where.toml", entry("x"))
    assert raised.value.code == CANNOT_CREATE


# --- a running daemon ------------------------------------------------------------------------


@pytest.fixture
async def web(tmp_path: Path) -> AsyncGenerator[Web]:
    pace = Pace(tokens=0.01)
    file = token_file(tmp_path, BOTH_TOKENS)
    async with running_web(tmp_path, pace=pace, server__token_file=file) as running:
        yield running


async def listed(web: Web, headers: dict[str, str]) -> int:
    return (await web.client.get("/tools/list", headers=headers)).status_code


async def test_a_change_to_the_file_applies_to_the_next_request(web: Web, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    new = TokenEntry(name="new", sha256=digest_of("n" * 40).hex())
    assert await listed(web, {"authorization": f"Bearer {'n' * 40}"}) == 401
    add_entry(path, new)
    assert await listed(web, {"authorization": f"Bearer {'n' * 40}"}) == 200
    remove_entry(path, "laptop")
    assert await listed(web, bearer("laptop")) == 401
    assert await listed(web, bearer("phone")) == 200
    for name in ("phone", "new"):
        remove_entry(path, name)
    assert await listed(web, bearer("phone")) == 401
    assert await listed(web, {}) == 401, "no token left is not the same as none needed"


async def test_deleting_the_file_ends_the_streams_of_every_token(web: Web, tmp_path: Path) -> None:
    session = await web.open(headers=bearer("laptop"))
    given = {**session, "accept": "text/event-stream"}
    with anyio.fail_after(10):
        async with web.client.stream("GET", "/mcp", headers=given) as stream:
            assert stream.status_code == 200
            (tmp_path / "tokens.toml").unlink()
            async for _ in stream.aiter_bytes():
                pass


@pytest.mark.parametrize("how", ["mode", "gone", "torn"])
async def test_every_token_is_rejected_while_the_file_is_invalid(
    web: Web, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "tokens.toml"
    session = await web.open(headers=bearer("laptop"))
    if how == "mode":
        path.chmod(0o644)
    elif how == "gone":
        path.unlink()
    else:
        path.write_text(BOTH_TOKENS[:150])
    assert await listed(web, bearer("laptop")) == 401
    assert await listed(web, {}) == 401
    health = await web.services.health.report(web.services.surfaces())
    assert health.status == "degraded"
    assert "nobody gets in over HTTP" in str(health.degraded)
    path.unlink(missing_ok=True)
    token_file(tmp_path, BOTH_TOKENS)
    assert await listed(web, bearer("laptop")) == 200
    assert (await web.post(request("ping"), session)).status_code == 200
    assert (await web.services.health.report(web.services.surfaces())).status == "healthy"


async def test_sessions_and_visitors_have_the_current_rights_of_their_token(
    web: Web, tmp_path: Path
) -> None:
    path = tmp_path / "tokens.toml"
    session = await web.open(headers=bearer("laptop"))
    told = call("echo", {"text": "x"})
    assert (await web.post(told, session)).json()["result"]["content"][0]["text"] == "x"
    assert (await web.client.get("/metrics", headers=bearer("laptop"))).status_code == 200
    path.write_text(
        BOTH_TOKENS.replace(f'"{SECRETS["laptop"]}"\n', f'"{SECRETS["laptop"]}"\nwrite = false\n')
    )
    assert (await web.client.get("/metrics", headers=bearer("laptop"))).status_code == 403
    refused = await web.post(call("crash", {}), session)
    assert "this token may read, not write" in refused.text


async def test_a_revoked_token_loses_its_streams_and_its_calls(web: Web, tmp_path: Path) -> None:
    session = await web.open(headers=bearer("laptop"))
    slow = {"name": "slow", "arguments": {"seconds": 60}}
    listening, headers = modern(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    ends: list[str] = []

    async def follow(about: str, response: httpx.Response) -> None:
        async for _ in response.aiter_bytes():
            pass
        ends.append(f"{about} {response.status_code}")

    async def stream(about: str, verb: str, given: dict[str, str], body: object = None) -> None:
        async with web.client.stream(
            verb,
            "/mcp",
            headers={"accept": BOTH, **given},
            **({} if body is None else {"json": body}),  # type: ignore[arg-type]  # of many types
        ) as response:
            await follow(about, response)

    def is_busy() -> bool:
        return web.services.gate.in_flight == 3

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(stream, "standing", "GET", session)
            group.start_soon(stream, "legacy", "POST", session, request("tools/call", slow, 7))
            group.start_soon(stream, "listen", "POST", {**bearer("laptop"), **headers}, listening)
            body, also = modern("tools/call", slow)
            group.start_soon(stream, "modern", "POST", {**bearer("laptop"), **also}, body)
            await web.services.gate.until(is_busy)
            other = await web.open(headers=bearer("phone"))
            remove_entry(tmp_path / "tokens.toml", "laptop")
    assert sorted(end.split()[0] for end in ends) == ["legacy", "listen", "modern", "standing"]
    assert "modern 401" in ends, "nothing was said yet: the answer is the refusal"
    assert web.services.gate.in_flight == 0
    assert (await web.post(request("ping"), other)).status_code == 200
