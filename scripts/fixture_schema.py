#!/usr/bin/env python3
"""Write a small bank of the present schema to tests/store/sqlite/fixtures, once for each release.

    scripts/fixture_schema.py

Later versions must open it: `tests/store/sqlite/test_fixtures.py` migrates every fixture and
holds it against what `furnish` put in. A fixture is never written again after its release.
"""

import gzip
import shutil
import sys
import tempfile
from pathlib import Path

import anyio

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from store.sqlite.engine import open_engine  # noqa: E402  (the path comes first)
from store.sqlite.migrate import migrations  # noqa: E402  (after the path above)
from tests.store.sqlite.test_fixtures import FIXTURES, furnish  # noqa: E402  (as above)
from tests.support.plain_ranking import PlainRanking  # noqa: E402  (as above)


async def main() -> None:
    place = Path(tempfile.mkdtemp())
    async with open_engine(place, ranking=PlainRanking, now=lambda: 1_700_000_000_000) as engine:
        await furnish(engine)
        source = engine._banks.directory(engine.bank("fixture"))
    target = FIXTURES / f"bank{len(migrations('bank'))}-catalogue{len(migrations('catalogue'))}"
    target.mkdir(exist_ok=True)
    for file in (source / "bank.db", place / "catalogue.db"):
        packed = target / f"{file.name}.gz"
        packed.write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        print(f"{packed.relative_to(ROOT)}: {packed.stat().st_size} bytes")
    shutil.rmtree(place)


if __name__ == "__main__":
    anyio.run(main)
