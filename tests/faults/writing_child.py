"""A process that writes to a data directory until it is killed, and reports each operation.

Each line on stdout is a JSON object: `{"try": …}` before an operation, `{"ack": …}` after it
succeeded, `{"no": …}` after it failed. `verifier.ChildReport` parses these lines.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any

import anyio
import orjson

from store.errors import StoreError
from store.model import NewDocument, NewMemory, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.real_ranking import real_ranking, small_graphs

CALLERS = 4


def report(**line: Any) -> None:
    os.write(1, orjson.dumps(line) + b"\n")


async def work(engine: EmbeddedEngine, seed: int, operations: int) -> None:
    rng = random.Random(seed)
    ids: list[str] = []
    for n in range(operations):
        mark = f"mark{seed}x{n}x{rng.randrange(10**6)}q"
        chance = rng.random()
        try:
            if chance < 0.55 or not ids:
                report(**{"try": "put", "text": mark})
                put = await engine.put("w", NewMemory(text=mark, session=f"s{seed}"))
                ids.append(put.id)
                report(ack="put", id=put.id, text=mark)
            elif chance < 0.70:
                marks = [f"{mark}{letter}" for letter in "abc"]
                report(**{"try": "put_many", "texts": marks})
                puts = await engine.put_many("w", [NewMemory(text=text) for text in marks])
                for put, text in zip(puts, marks, strict=True):
                    ids.append(put.id)
                    report(ack="put", id=put.id, text=text)
            elif chance < 0.80:
                body = f"# {mark}\n\nbody of it"
                report(**{"try": "document", "text": mark})
                made = await engine.upsert_document(
                    "w", NewDocument(source="s", source_id=mark, body=body)
                )
                report(ack="document", id=made.id, text=body)
            elif chance < 0.93:
                id = ids.pop(rng.randrange(len(ids)))
                report(**{"try": "forget", "id": id})
                await engine.forget("w", [id])
                report(ack="forget", id=id)
            elif chance < 0.95:
                await engine.settle("w")  # so that some kills happen with a graph and a snapshot
                await engine.search(Query(bank="w", text=mark, mode="semantic"))
            elif chance < 0.97:
                session = await engine.sessions.mint(transport="test")
                report(ack="session", id=session.id)
            else:
                id = ids.pop(rng.randrange(len(ids)))
                report(**{"try": "erase", "id": id})
                await engine.erase("w", [id])
                report(ack="erase", id=id)
        except StoreError as error:
            report(no=type(error).__name__)


async def main(directory: Path, seed: int, operations: int) -> None:
    with small_graphs():
        async with open_engine(directory, ranking=real_ranking) as engine:
            report(ready=True)
            async with anyio.create_task_group() as callers:
                for caller in range(CALLERS):
                    callers.start_soon(work, engine, seed * CALLERS + caller, operations)
    report(done=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
