"""The default bank: `--bank NAME`, `--bank auto`, and the precedence of its settings."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import anyio
import pytest

from store.model import Item
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.contracts.client import Client, Home


@pytest.fixture
def home() -> Iterator[Home]:
    home = Home()
    yield home
    home.close()


class BridgeStarter:
    """Starts bridges of one home, each with its own flags and environment variables."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.made: list[Client] = []

    def __call__(self, *flags: str, env: Mapping[str, str] | None = None) -> Client:
        self.made.append(Client.from_process(self.home.child(*flags, env=env)))
        return self.made[-1]


@pytest.fixture
def start(home: Home) -> Iterator[BridgeStarter]:
    joined = BridgeStarter(home)
    yield joined
    for client in joined.made:
        client.close()


def contents(client: Client) -> list[str]:
    found = client.call("retrieve_memory", limit=100).json["memories"]
    return sorted(memory["content"] for memory in found)


def repository(place: Path) -> Path:
    place.mkdir(parents=True)
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "first"]):
        subprocess.run(["git", *arguments], cwd=place, check=True, capture_output=True)
    return place


@pytest.mark.parametrize("embedded", [(), ("--embedded",)], ids=["bridged", "embedded"])
def test_worktrees_share_a_bank_and_separate_repositories_do_not(
    home: Home, tmp_path: Path, embedded: tuple[str, ...]
) -> None:
    main = repository(tmp_path / "one" / "app")
    other = repository(tmp_path / "two" / "app")
    worktree = tmp_path / "feature"
    subprocess.run(
        ["git", "worktree", "add", "-q", str(worktree)], cwd=main, check=True, capture_output=True
    )

    def visit(place: Path, note: str) -> list[str]:
        client = Client.from_process(home.child("--bank", "auto", *embedded, cwd=place))
        client.call("store_memory", content=note)
        seen = contents(client)
        client.close()
        return seen

    assert visit(main, "from main") == ["from main"]
    assert visit(worktree, "from the worktree") == ["from main", "from the worktree"]
    assert visit(other, "from another app") == ["from another app"]
    (worktree / "deep").mkdir()
    assert len(visit(worktree / "deep", "from below")) == 3


def test_the_bridge_that_starts_the_daemon_does_not_set_the_bank_of_others(
    start: BridgeStarter,
) -> None:
    first = start(env={"RECALLD_BANK": "alpha", "RECALLD_DIALECTS": "recall"})
    first.call("store_memory", content="of alpha")
    second = start()

    assert contents(second) == []
    second.call("store_memory", content="of the default bank")
    assert contents(first) == ["of alpha"]
    assert set(first.tools()) < set(second.tools())
    hindsight = second.call("hindsight_search", bank_id="default", query="default bank").json
    assert [fact["text"] for fact in hindsight["results"]] == ["of the default bank"]


def test_the_flag_overrides_recalld_bank_which_overrides_awareness_memory_id(
    start: BridgeStarter,
) -> None:
    variables = {"RECALLD_BANK": "by-variable", "AWARENESS_MEMORY_ID": "by-seed"}
    cases: tuple[tuple[tuple[str, ...], dict[str, str], str], ...] = (
        (("--bank", "by-flag"), variables, "by-flag"),
        ((), variables, "by-variable"),
        ((), {"AWARENESS_MEMORY_ID": "by-seed"}, "by-seed"),
    )
    for flags, env, bank in cases:
        client = start(*flags, env=env)
        client.call("store_memory", content=f"note of {bank}")
        found = client.call("hindsight_search", bank_id=bank, query="note").json["results"]
        assert [fact["text"] for fact in found] == [f"note of {bank}"]


@pytest.mark.parametrize("name", ["line\nbreak", "x" * 300])
def test_an_invalid_bank_name_is_rejected_at_start(home: Home, name: str) -> None:
    for command in (("stdio", "--embedded"), ("stdio",), ("serve", "--no-http")):
        done = home.run(*command, "--bank", name)
        assert done.returncode != 0
        assert "bank" in done.stderr
        assert len(done.stderr.splitlines()) <= 3, done.stderr


def test_every_memory_records_its_provenance(home: Home, start: BridgeStarter) -> None:
    client = start("--bank", "origins")
    client.call("store_memory", content="by recall")
    client.call(
        "hindsight_put",
        bank_id="origins",
        content="by hindsight",
        context="tests",
        explanation="the test asked for it",
    )
    session = client.call("retrieve_memory").json["memories"][0]["sessionId"]
    home.run("stop")

    async def read() -> list[Item]:
        async with open_engine(home.path / "data", ranking=HybridRanking) as engine:
            return list((await engine.recent("origins")).items)

    items = {item.text: item for item in anyio.run(read)}

    assert len(items) == 2
    for text, dialect in (("by recall", "recall"), ("by hindsight", "hindsight")):
        item = items[text]
        assert item.provenance.dialect == item.source == dialect
        assert item.provenance.client == "contract/1.0"
        assert item.provenance.transport == "unix"
        assert item.session == session
        assert item.created_at > 1_700_000_000_000
    assert items["by hindsight"].provenance.explanation == "the test asked for it"


def test_the_daemon_stays_under_60_mib_until_the_first_semantic_search(
    home: Home, start: BridgeStarter
) -> None:
    client = start()
    client.call("store_memory", content="something small")
    client.call("search", query="small")

    def resident() -> int:
        health = client.request("health/check")["result"]
        return int(health["memory"]["rss"])

    before = resident()
    client.call("mcp__claude-recall__search", query="small")
    print(f"{before / 2**20:.1f} MB before, {resident() / 2**20:.1f} MB after semantic search")

    assert before < 60 * 2**20
    assert resident() > before


def test_choosing_the_project_bank_imports_no_heavy_package(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from daemon.bridge.project_bank import bank_of;"
        "bank_of(pathlib.Path.cwd());"
        "print(sorted(m for m in ('numpy', 'msgspec', 'anyio', 'asyncio', 'store', 'subprocess')"
        " if m in sys.modules))"
    )
    python = sys.executable
    done = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout == "[]\n"
