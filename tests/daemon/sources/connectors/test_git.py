"""A branch of a repository as a source: contents, dates, pushes and rewritten histories."""

import os
import subprocess
from pathlib import Path

import pytest

from daemon.exit_codes import Exit
from scripts.benches.git_history import verify
from tests.daemon.sources.kit import Bench

DAY = 86_400


class Origin:
    """A repository that tests commit to, each commit on a day of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.day = 0
        path.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        moment = f"{1_700_000_000 + self.day * DAY} +0000"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.path),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_DATE": moment,
            "GIT_AUTHOR_NAME": "Ana",
            "GIT_AUTHOR_EMAIL": "ana@example.org",
            "GIT_COMMITTER_NAME": "Ana",
            "GIT_COMMITTER_EMAIL": "ana@example.org",
        }
        command = ["git", "-C", str(self.path), *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        return done.stdout.strip()

    def commit(self, files: dict[str, str | None], *more: str) -> int:
        """Commit these files (None deletes one); returns the date in milliseconds."""
        self.day += 1
        for name, text in files.items():
            file = self.path / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"day {self.day}", *more)
        return (1_700_000_000 + self.day * DAY) * 1000


@pytest.fixture
async def origin(docs: Bench) -> Origin:
    return Origin(docs.directory / "origin")


async def test_every_document_has_the_date_and_author_of_its_own_last_commit(
    docs: Bench, origin: Origin
) -> None:
    first = origin.commit({"docs/a.md": "# A\n\ntext", "docs/b.md": "# B\n\ntext"})
    second = origin.commit({"docs/b.md": "# B\n\nother text", ".env": "SECRET=1"})
    docs.use(kind="git", url=str(origin.path))

    outcome = await docs.sync()

    assert (outcome.added, outcome.skipped) == (2, 1)
    found = await docs.documents()
    assert (found["docs/a.md"].updated_at, found["docs/a.md"].author) == (first, "Ana")
    assert found["docs/b.md"].updated_at == second


async def test_a_push_changes_only_the_documents_that_it_changes(
    docs: Bench, origin: Origin
) -> None:
    origin.commit({f"{number}.md": f"text {number}" for number in range(5)})
    docs.use(kind="git", url=str(origin.path))
    await docs.sync(vectors=True)
    before = await docs.documents()
    embedded = len(docs.embedder.texts)

    origin.git("mv", "3.md", "renamed.md")
    date = origin.commit({"1.md": "text one", "2.md": None})
    outcome = await docs.sync(vectors=True)

    assert (outcome.changed, outcome.moved, outcome.deleted, outcome.unchanged) == (1, 1, 1, 2)
    after = await docs.documents()
    assert after["renamed.md"].id == before["3.md"].id
    assert after["renamed.md"].updated_at == date
    assert after["0.md"] == before["0.md"]
    assert len(docs.embedder.texts) == embedded + 1


async def test_a_rewritten_branch_is_followed_with_its_new_dates(
    docs: Bench, origin: Origin
) -> None:
    origin.commit({"a.md": "text a", "b.md": "text b"})
    origin.commit({"a.md": "text a2"})
    docs.use(kind="git", url=str(origin.path))
    await docs.sync(vectors=True)
    before = await docs.documents()
    embedded = len(docs.embedder.texts)

    origin.git("checkout", "--quiet", "--orphan", "new")
    date = origin.commit({"c.md": "text c"})
    origin.git("branch", "--force", "main", "new")
    docs.use(kind="git", url=str(origin.path), branch="main")
    outcome = await docs.sync(vectors=True)

    after = await docs.documents()
    assert outcome.added == 1
    assert {path: found.updated_at for path, found in after.items()} == dict.fromkeys(
        ("a.md", "b.md", "c.md"), date
    )
    assert after["a.md"].id == before["a.md"].id
    assert len(docs.embedder.texts) == embedded + 1
    assert await docs.is_sound()


async def test_a_new_commit_with_the_same_content_causes_no_chunking(
    docs: Bench, origin: Origin
) -> None:
    origin.commit({"a.md": "text a"})
    docs.use(kind="git", url=str(origin.path))
    await docs.sync(vectors=True)
    before, embedded = (await docs.documents())["a.md"], len(docs.embedder.texts)

    date = origin.commit({}, "--amend", "--allow-empty")
    outcome = await docs.sync(vectors=True)

    assert (outcome.unchanged, outcome.has_changed) == (1, False)
    after = (await docs.documents())["a.md"]
    assert (after.updated_at, after.indexed_at) == (date, before.indexed_at)
    assert len(docs.embedder.texts) == embedded


async def test_a_folder_of_a_branch_can_be_chosen(docs: Bench, origin: Origin) -> None:
    origin.commit({"docs/a.md": "text a", "other/b.md": "text b"})
    origin.git("checkout", "--quiet", "-b", "draft")
    origin.commit({"docs/c.md": "text c", "docs/.recalldignore": "a.md\n"})
    docs.use(kind="git", url=str(origin.path), branch="draft", root="docs")
    await docs.sync()

    assert await docs.paths() == {"docs/c.md"}


@pytest.mark.parametrize("branch", ["missing", ""])
async def test_a_repository_that_cannot_be_fetched_keeps_its_documents(
    docs: Bench, origin: Origin, branch: str
) -> None:
    origin.commit({"a.md": "text a"})
    docs.use(kind="git", url=str(origin.path))
    await docs.sync()
    if branch:
        docs.use(kind="git", url=str(origin.path), branch=branch)
    else:
        origin.path.rename(origin.path.with_name("elsewhere"))

    with pytest.raises(Exit):
        await docs.sync()

    assert await docs.paths() == {"a.md"}
    (report,) = await docs.sources.reports("default")
    assert not report.is_healthy


async def test_hooks_of_the_repository_do_not_run(docs: Bench, origin: Origin) -> None:
    origin.commit({"a.md": "text a"})
    docs.use(kind="git", url=str(origin.path))
    await docs.sync()
    (clone,) = (docs.directory / "cache").iterdir()
    mark = docs.directory / "ran"
    for name in ("reference-transaction", "post-checkout", "post-merge"):
        hook = clone / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
        hook.chmod(0o755)
    origin.commit({"a.md": "text a2"})
    await docs.sync()

    assert not mark.exists()


async def test_texts_and_dates_are_right_after_pushes_and_a_force_push(tmp_path: Path) -> None:
    """The short form of `scripts/bench.py git_history`."""
    steps: list[str] = []
    await verify(tmp_path, 200, steps.append)
    assert len(steps) == 5
