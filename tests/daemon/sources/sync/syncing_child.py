"""Runs a sync and kills its own process at the n-th step of the engine, before or after it.

python -m tests.daemon.sources.sync.syncing_child DIRECTORY STEP before|after [allow]
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any, cast

import anyio

from daemon.config.sources import check_definition
from daemon.sources.connectors.factories import Connectors
from daemon.sources.sync.keeper import Sources
from daemon.sources.sync.run import RunOptions
from store.clock import wall_clock
from store.engine import Engine
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from tests.support.embedder import FakeEmbedder

STEPS = ("source_files", "count_synced", "sync_documents", "settle")


class KillingEngine:
    """An engine whose n-th call of a step of a sync ends the process."""

    def __init__(self, engine: Engine, step: int, moment: str) -> None:
        self._engine = engine
        self._left = step
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._engine, name)
        if name not in STEPS:
            return found

        async def call(*arguments: Any, **named: Any) -> Any:
            self._left -= 1
            if self._left == 0 and self._moment == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return await found(*arguments, **named)
            finally:
                if self._left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        return call


def sources_over(directory: Path, engine: Any) -> Sources:
    given = {"kind": "filesystem", "root": str(directory / "root")}
    return Sources(
        engine,
        Connectors(directory / "cache"),
        from_file={"docs": check_definition(given)},
        config=directory / "none.toml",
        default_bank="default",
        now=wall_clock,
    )


async def main(directory: Path, step: int, moment: str) -> None:
    async with open_engine(
        directory / "data", ranking=lambda group: HybridRanking(group, FakeEmbedder())
    ) as engine:
        sources = sources_over(directory, KillingEngine(cast("Engine", engine), step, moment))
        await sources.load()
        await sources.sync("docs", RunOptions())


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
