"""A process that opens a data directory and erases every memory that contains "marker"."""

import os
import sys
from pathlib import Path

import anyio

from store.model import Filters
from store.sqlite.engine import open_engine
from tests.support.real_ranking import real_ranking, small_graphs


async def main(directory: Path) -> None:
    with small_graphs():
        async with open_engine(directory, ranking=real_ranking) as engine:
            page = await engine.recent("w", filters=Filters(contains="marker"), limit=1000)
            await engine.erase("w", [item.id for item in page.items])
            os.write(1, b"erased\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
