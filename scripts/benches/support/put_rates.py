"""Durable puts per second, compared with bare SQLite commits, also on a simulated slow disk.

python -m scripts.benches.support.put_rates DIRECTORY      print the rates as JSON
"""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from scripts.benches.support.corpus import texts
from scripts.benches.support.figures import percentiles
from scripts.kit.peer_packages import ROOT
from store.model import NewMemory
from store.search.hybrid import HybridRanking
from store.sqlite import database
from store.sqlite.engine import EmbeddedEngine, open_engine

BANK = "bench"


async def put_rates(directory: Path, some: Sequence[str]) -> dict[str, Any]:
    """Durable puts without embedding: one caller, 64 callers, and bare SQLite for comparison."""
    bare = bare_commits(directory.with_name("bare"), some[:300])
    async with open_engine(directory, ranking=HybridRanking) as engine:
        await engine.put(BANK, NewMemory(text="warm"))
        seconds: list[float] = []
        for text in some[:300]:
            began = time.perf_counter()
            await engine.put(BANK, NewMemory(text=text))
            seconds.append(time.perf_counter() - began)
        together = await concurrent_puts(engine, [f"{text} again" for text in some])
        grouped, database.GROUP_LIMIT = database.GROUP_LIMIT, 1  # type: ignore[misc]  # Final elsewhere
        try:
            apart = await concurrent_puts(engine, [f"{text} once more" for text in some[:500]])
        finally:
            database.GROUP_LIMIT = grouped  # type: ignore[misc]
    return {
        "put_one_caller": percentiles(seconds),
        "put_64_callers_per_second": together,
        "put_64_callers_a_commit_each_per_second": apart,
        "bare_commit": percentiles(bare),
        "bare_commits_per_second": round(len(bare) / sum(bare), 1),
    }


SLOW_MS = 3
SLOW_SYNC = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
int fdatasync(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    usleep(%d);
    return real(fd);
}
"""


def puts_on_a_slower_disk(work: Path) -> dict[str, Any]:
    """The same rates when each sync takes `SLOW_MS` longer, as on most disks."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {"skipped": "no C compiler"}
    work.mkdir()
    source, shim = work / "slow.c", work / "slow.so"
    source.write_text(SLOW_SYNC % (SLOW_MS * 1000), "utf-8")
    built = [compiler, "-shared", "-fPIC", "-o", str(shim), str(source), "-ldl"]
    subprocess.run(built, check=True)
    done = subprocess.run(
        [sys.executable, "-m", "scripts.benches.support.put_rates", str(work / "puts")],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


async def concurrent_puts(engine: EmbeddedEngine, some: Sequence[str], callers: int = 64) -> float:
    """Puts per second with this many concurrent callers."""
    began = time.perf_counter()

    async def caller(number: int) -> None:
        for text in some[number::callers]:
            await engine.put(BANK, NewMemory(text=text))

    async with anyio.create_task_group() as group:
        for number in range(callers):
            group.start_soon(caller, number)
    return round(len(some) / (time.perf_counter() - began), 1)


def bare_commits(path: Path, some: Sequence[str]) -> list[float]:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT)")
    seconds: list[float] = []
    for text in some:
        began = time.perf_counter()
        connection.execute("INSERT INTO items (text) VALUES (?)", (text,))
        seconds.append(time.perf_counter() - began)
    connection.close()
    return seconds


if __name__ == "__main__":
    print(json.dumps(anyio.run(put_rates, Path(sys.argv[1]), texts(2_000))))
