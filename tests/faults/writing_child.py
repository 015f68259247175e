"""A process that works on a data directory until somebody ends it, and says what was acknowledged.

Each line on stdout is a JSON object: `{"try": …}` before an operation, `{"ack": …}` after the
engine has answered, `{"no": …}` when it has refused. What follows a kill is the judge's business.
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


def say(**line: Any) -> None:
    os.write(1, orjson.dumps(line) + b"\n")


async def work(engine: EmbeddedEngine, seed: int, operations: int) -> None:
    dice = random.Random(seed)
    mine: list[str] = []
    for n in range(operations):
        mark = f"mark{seed}x{n}x{dice.randrange(10**6)}q"
        chance = dice.random()
        try:
            if chance < 0.55 or not mine:
                say(**{"try": "put", "text": mark})
                put = await engine.put("w", NewMemory(text=mark, session=f"s{seed}"))
                mine.append(put.id)
                say(ack="put", id=put.id, text=mark)
            elif chance < 0.70:
                marks = [f"{mark}{letter}" for letter in "abc"]
                say(**{"try": "put_many", "texts": marks})
                puts = await engine.put_many("w", [NewMemory(text=text) for text in marks])
                for put, text in zip(puts, marks, strict=True):
                    mine.append(put.id)
                    say(ack="put", id=put.id, text=text)
            elif chance < 0.80:
                body = f"# {mark}\n\nbody of it"
                say(**{"try": "document", "text": mark})
                made = await engine.upsert_document(
                    "w", NewDocument(source="s", source_id=mark, body=body)
                )
                say(ack="document", id=made.id, text=body)
            elif chance < 0.93:
                id = mine.pop(dice.randrange(len(mine)))
                say(**{"try": "forget", "id": id})
                await engine.forget("w", [id])
                say(ack="forget", id=id)
            elif chance < 0.95:
                await engine.settle("w")  # a graph, and a snapshot of it, to be killed with
                await engine.search(Query(bank="w", text=mark, mode="semantic"))
            elif chance < 0.97:
                session = await engine.sessions.mint(transport="test")
                say(ack="session", id=session.id)
            else:
                id = mine.pop(dice.randrange(len(mine)))
                say(**{"try": "erase", "id": id})
                await engine.erase("w", [id])
                say(ack="erase", id=id)
        except StoreError as error:
            say(no=type(error).__name__)


async def main(directory: Path, seed: int, operations: int) -> None:
    with small_graphs():
        async with open_engine(directory, ranking=real_ranking) as engine:
            say(ready=True)
            async with anyio.create_task_group() as callers:
                for caller in range(CALLERS):
                    callers.start_soon(work, engine, seed * CALLERS + caller, operations)
    say(done=True)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
