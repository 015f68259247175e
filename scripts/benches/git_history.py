"""Syncs a git repository with a long history, before and after pushes and a force-push.

    scripts/bench.py git_history                    10,000 commits
    scripts/bench.py git_history --commits 1000

After every step each document must have the text, date and author of the last commit that changed
it; the script ends with an error if one has not. `git fast-import` writes the history.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct

from daemon.config.sources import check_definition
from daemon.sources.connectors.factories import Connectors
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from daemon.sources.sync.state import Outcome
from store.clock import wall_clock
from store.engine import Engine
from store.sqlite.engine import open_engine

BANK: Final = "bench"
PAGES: Final = 400
FIRST: Final = 1_600_000_000  # the time of the first commit
STEP: Final = 600  # seconds between two commits
REF: Final = "refs/heads/main"


class Change(Struct, frozen=True):
    """The last commit of a file, as a document must show it."""

    body: str
    seconds: int
    author: str


class History:
    """A bare repository whose commits are written here, and the files that its branch has."""

    def __init__(self, directory: Path, kept: int, pages: int) -> None:
        """`kept` is the number of commits that a later force-push keeps."""
        self.directory = directory
        self.files: dict[str, Change] = {}
        self.commits = 0  # of the branch
        self._kept = kept
        self._pages = pages
        self._files_kept: dict[str, Change] = {}
        self._count = 0  # of all commits ever made
        self._run("init", "--quiet", "--bare", "--initial-branch=main", str(directory))

    def add(self, count: int, mark: str) -> None:
        """Add commits: most change a file, every tenth deletes or renames one."""
        stream = [self._commit(mark, is_first=at == 0) for at in range(count)]
        self._run(
            "-C", str(self.directory), "fast-import", "--quiet", "--force",
            given="".join(stream).encode(),
        )  # fmt: skip

    def rewrite(self, count: int, mark: str) -> None:
        """Replace everything after the first commits: a force-push."""
        behind = self.commits - self._kept
        self._run("-C", str(self.directory), "update-ref", REF, f"{REF}~{behind}")
        self.commits, self.files = self._kept, dict(self._files_kept)
        self.add(count, mark)

    def _commit(self, mark: str, *, is_first: bool) -> str:
        number, self._count = self._count, self._count + 1
        path = f"docs/{number % self._pages % 7}/page{number % self._pages}.md"
        seconds, author = FIRST + number * STEP, f"author{number % 5}"
        lines = [
            f"commit {REF}",
            f"author {author} <a@example.com> {seconds} +0000",
            f"committer {author} <a@example.com> {seconds} +0000",
            _data(f"{mark} {number}"),
        ]
        if is_first and self.commits:
            lines.append(f"from {REF}^0")
        if number % 20 == 19 and path in self.files:
            del self.files[path]
            lines.append(f"D {path}")
        elif number % 20 == 9 and path in self.files:
            moved = f"{path[:-3]}-{number}.md"
            lines.append(f"R {path} {moved}")
            self.files[moved] = Change(self.files.pop(path).body, seconds, author)
        else:
            body = f"# Page {number}\n\nThis is {mark} text number {number}.\n"
            lines += [f"M 100644 inline {path}", _data(body)]
            self.files[path] = Change(body, seconds, author)
        self.commits += 1
        if self.commits == self._kept:
            self._files_kept = dict(self.files)
        return "\n".join(lines) + "\n\n"

    @staticmethod
    def _run(*arguments: str, given: bytes = b"") -> None:
        subprocess.run(["git", *arguments], input=given, check=True)


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


async def verify(directory: Path, commits: int, report: Callable[[str], None]) -> None:
    """Sync a repository with so many commits at every step; raises if a document is wrong."""
    history = History(
        directory / "origin.git", kept=commits * 7 // 10, pages=min(PAGES, commits // 10)
    )
    async with open_engine(directory / "data") as engine:
        given = {"kind": "git", "url": f"file://{history.directory}", "branch": "main"}
        sources = Sources(
            engine,
            Connectors(directory / "cache"),
            from_file={"docs": check_definition(given)},
            config=directory / "none.toml",
            default_bank=BANK,
            now=wall_clock,
        )

        async def step(name: str, *, allow_deletions: bool = False) -> Outcome:
            began = time.monotonic()
            options = RunOptions(allow_deletions=allow_deletions)
            outcome = await sources.sync("docs", options, with_vectors=False)
            seconds = time.monotonic() - began
            await _compare(engine, history, name)
            report(
                f"{name}: {seconds:.2f} s, {history.commits} commits, {len(history.files)} files,"
                f" {outcome.added} added, {outcome.changed} changed, {outcome.moved} moved,"
                f" {outcome.deleted} deleted"
            )
            return outcome

        history.add(commits, "first")
        await step("first sync")
        if (await step("second sync")).has_changed:
            raise AssertionError("a second sync changed something")
        history.add(max(1, commits // 100), "pushed")
        await step("after a push")
        history.rewrite(commits // 10, "rewritten")
        outcome = await sources.sync("docs", RunOptions(), with_vectors=False)
        report(f"force-push: {outcome.withheld} deletions withheld")
        await step("after a force-push", allow_deletions=True)
        checked = await engine.check(BANK)
        if checked.problems:
            raise AssertionError(f"the bank is damaged: {checked.problems}")


async def _compare(engine: Engine, history: History, step: str) -> None:
    headers = [
        header
        for offset in range(0, 10_000, 1000)
        for header in await engine.documents(BANK, limit=1000, offset=offset)
    ]
    documents = [await engine.document(BANK, header.id) for header in headers]
    stored = {
        each.source_id: Change(each.body, each.updated_at // 1000, each.author or "")
        for each in documents
    }
    if len(stored) != len(documents):
        raise AssertionError(f"{step}: a document is stored twice")
    wrong = [path for path in stored.keys() | history.files.keys()
             if stored.get(path) != history.files.get(path)]  # fmt: skip
    if wrong:
        path = min(wrong)
        raise AssertionError(
            f"{step}: {len(wrong)} documents are wrong, such as {path}:"
            f" {stored.get(path)} instead of {history.files.get(path)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench.py git_history", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--commits", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as directory:
        anyio.run(verify, Path(directory), options.commits, print)


if __name__ == "__main__":
    main()
