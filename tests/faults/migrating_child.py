"""A process that opens a data directory and its bank, which runs their migrations."""

import sys
from pathlib import Path

import anyio

from store.sqlite.engine import open_engine
from tests.support.plain_ranking import PlainRanking


async def main(directory: Path) -> None:
    async with open_engine(directory, ranking=PlainRanking) as engine:
        await engine.recent("fixture")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
