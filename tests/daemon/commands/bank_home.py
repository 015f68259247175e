"""A data directory with a filled bank, for tests of `recalld bank`."""

import json
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio

from store.model import NewDocument, NewMemory
from store.sqlite.engine import open_engine
from tests.support.plain_ranking import PlainRanking
from tests.support.processes import PATIENCE, child, recalld

Ran = subprocess.CompletedProcess[str]

SECRET = "xylophone-quarantine-4711"


def seeded(home: Path) -> list[str]:
    """Create a bank `work` with three memories and a document; returns the ids of the memories."""
    (home / "config.toml").write_text("[embedding]\nhashed = true\n")

    async def fill() -> list[str]:
        async with open_engine(home / "data", ranking=PlainRanking) as engine:
            texts = (f"the code word is {SECRET}", "Ana prefers tabs", "Bo deploys on Fridays")
            put = [await engine.put("work", NewMemory(text=text)) for text in texts]
            await engine.upsert_document(
                "work", NewDocument(source="wiki", source_id="1", title="Notes", body="A long tale")
            )
            return [each.id for each in put]

    return anyio.run(fill)


def serve(home: Path, stack: ExitStack, *flags: str) -> None:
    started = stack.enter_context(child(home, "serve", *(flags or ["--no-http"])))
    deadline = time.monotonic() + PATIENCE
    while recalld(home, "health").returncode == 2:
        assert started.process.poll() is None, started.errors()
        assert time.monotonic() < deadline


class BankHome:
    """A data directory with a filled bank, and ways to run `recalld bank` on it."""

    def __init__(self, home: Path, cwd: Path, ids: list[str]) -> None:
        self.home = home
        self.cwd = cwd
        self.ids = ids

    def run(self, *arguments: str) -> Ran:
        return recalld(self.home, "bank", *arguments, cwd=self.cwd, stdin=subprocess.DEVNULL)

    def ok(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.ok(*arguments, "--json"))

    def refused(self, *arguments: str) -> tuple[int, str]:
        """Run a command that fails; returns its exit code and the one line on stderr."""
        done = self.run(*arguments)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("recalld: ")
        return done.returncode, done.stderr

    def items(self, bank: str) -> int | None:
        found = {each["bank"]: each["items"] for each in self.json("list")["banks"]}
        return found.get(bank)

    def holds(self, text: str) -> bool:
        """Return whether any file below the data directory contains this text."""
        files = [path for path in (self.home / "data").rglob("*") if path.is_file()]
        assert files
        return any(text.encode() in path.read_bytes() for path in files)


@contextmanager
def placed(root: Path, *, is_served: bool) -> Generator[BankHome]:
    home, cwd = root / "home", root / "desk"
    home.mkdir()
    cwd.mkdir()
    ids = seeded(home)
    with ExitStack() as stack:
        if is_served:
            serve(home, stack)
        yield BankHome(home, cwd, ids)


def bank_database(bank_home: BankHome) -> Path:
    (path,) = (bank_home.home / "data" / "banks").glob("*/bank.db")
    return path
