#!/usr/bin/env python3
"""Writes a small bank of the current schema to tests/store/sqlite/fixtures, once for each release.

    scripts/fixture_schema.py

Later versions must be able to open it: `tests/store/sqlite/test_fixtures.py` migrates every fixture
and compares it with the data that `furnish` wrote. A fixture never changes after its release.
"""

import gzip
import shutil
import sys
import tempfile
from pathlib import Path

import anyio

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from store.sqlite.engine import open_engine  # noqa: E402  (needs the path above)
from store.sqlite.migrate import migrations  # noqa: E402  (needs the path above)
from tests.store.sqlite.test_fixtures import FIXTURES, furnish  # noqa: E402  (as above)
from tests.support.plain_ranking import PlainRanking  # noqa: E402  (as above)


async def main() -> None:
    place = Path(tempfile.mkdtemp())
    async with open_engine(place, ranking=PlainRanking, now=lambda: 1_700_000_000_000) as engine:
        await furnish(engine)
        source = engine._registry.directory(await engine.bank("fixture"))
    target = FIXTURES / f"bank{len(migrations('bank'))}-catalogue{len(migrations('catalogue'))}"
    target.mkdir(exist_ok=True)
    for file in (source / "bank.db", place / "catalogue.db"):
        packed = target / f"{file.name}.gz"
        packed.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size} bytes")
    shutil.rmtree(place)


if __name__ == "__main__":
    anyio.run(main)
