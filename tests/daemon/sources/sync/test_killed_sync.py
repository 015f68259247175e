"""A sync that is killed in any phase leaves a consistent bank, and the next one finishes it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.sources.sync import run
from daemon.sources.sync.run import RunOptions
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.daemon.sources.sync.syncing_child import sources_over
from tests.support.embedder import FakeEmbedder

pytestmark = pytest.mark.faults

FILES = run.BATCH_FILES * 2 + 10  # three batches


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (1_700_000_000 + len(text), 1_700_000_000 + len(text)))


def change(root: Path) -> set[str]:
    """Change, rename, delete and add files; returns the paths that should be stored."""
    for number in range(30, 40):
        write(root, f"{number}.md", f"changed text {number}")
    (root / "50.md").rename(root / "moved.md")
    for number in range(60, 68):
        (root / f"{number}.md").unlink()
    write(root, "new.md", "a new file")
    return {file.name for file in root.iterdir()}


def killed(directory: Path, step: int, moment: str) -> bool:
    """Whether the child was killed; False if its run ended before the step."""
    command = [sys.executable, "-m", "tests.daemon.sources.sync.syncing_child", str(directory)]
    done = subprocess.run([*command, str(step), moment], check=False, timeout=60)
    assert done.returncode in (0, -9)
    return done.returncode == -9


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_killed_sync_loses_duplicates_and_leaves_nothing(
    tmp_path: Path, moment: str
) -> None:
    root = tmp_path / "root"
    for number in range(FILES):
        write(root, f"{number}.md", f"text {number}")
    # The first sync is killed at every step: ledger, count, three batches, vectors.
    steps = 0
    for step in range(1, 12):
        steps = step
        if not killed(tmp_path, step, moment):
            break
    assert steps > 3
    await check_complete(tmp_path, {f"{number}.md" for number in range(FILES)})
    wanted = change(root)
    for step in range(3, 6):
        if not killed(tmp_path, step, moment):
            break
    await check_complete(tmp_path, wanted)


async def check_complete(directory: Path, wanted: set[str]) -> None:
    async with open_engine(
        directory / "data", ranking=lambda group: HybridRanking(group, FakeEmbedder())
    ) as engine:
        assert (await engine.check("default")).problems == ()
        sources = sources_over(directory, engine)
        await sources.load()
        await sources.sync("docs", RunOptions())
        headers = await engine.documents("default", limit=5000)
        assert sorted(header.source_id for header in headers) == sorted(wanted)
        for header in headers:
            document = await engine.document("default", header.id)
            assert document.body == (directory / "root" / header.source_id).read_text()
        again = await sources.sync("docs", RunOptions())
        assert (again.has_changed, again.unchanged) == (False, len(wanted))
        assert (await engine.check("default")).problems == ()
