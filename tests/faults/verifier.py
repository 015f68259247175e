"""What must be true of a data directory after whatever happened to the process that used it.

I1 every acknowledged put is there, byte-identical; I2 nothing acknowledged as forgotten or erased
is back; I3 what was not acknowledged is there whole or not at all; I4 rows, words and vectors are
one set; I6 the engine is ready again soon; I7 a session resumes.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from store.errors import NotFound
from store.model import Query
from store.sqlite.engine import open_engine
from tests.support.real_ranking import real_ranking, small_graphs

ROOT = Path(__file__).parents[2]


class Witness:
    """What a victim was heard to say."""

    def __init__(self) -> None:
        self.put: dict[str, str] = {}
        self.documents: dict[str, str] = {}
        self.touched: set[str] = set()  # somebody tried to forget or erase it
        self.gone: set[str] = set()
        self.erased: set[str] = set()
        self.sessions: list[str] = []
        self.whole: list[list[str]] = []  # texts that were put together
        self.refused: list[str] = []
        self.is_done = False

    def hear(self, output: bytes) -> None:
        for line in output.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return  # it died while it said this: nobody heard it
            self._note(orjson.loads(line))

    def _note(self, said: dict[str, Any]) -> None:
        match said:
            case {"ack": "put", "id": id, "text": text}:
                self.put[id] = text
            case {"ack": "document", "id": id, "text": text}:
                self.documents[id] = text
            case {"try": "put_many", "texts": texts}:
                self.whole.append(texts)
            case {"try": "forget" | "erase", "id": id}:
                self.touched.add(id)
            case {"ack": "forget", "id": id}:
                self.gone.add(id)
            case {"ack": "erase", "id": id}:
                self.gone.add(id)
                self.erased.add(id)
            case {"ack": "session", "id": id}:
                self.sessions.append(id)
            case {"no": error}:
                self.refused.append(error)
            case {"done": True}:
                self.is_done = True
            case _:
                pass

    @property
    def acknowledged(self) -> int:
        return len(self.put) + len(self.documents) + len(self.gone) + len(self.sessions)


def command(directory: Path, seed: int, operations: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.faults.writing_child",
        str(directory),
        str(seed),
        str(operations),
    ]


def run_victim(
    directory: Path,
    seed: int,
    *,
    operations: int = 10_000,
    wrapper: Sequence[str] = (),
    kill_after_lines: int | None = None,
    pause: float = 0.0,
    timeout: float = 60.0,
) -> Witness:
    """Run a victim, end it a moment after it has said so many lines, and return what it said."""
    process = subprocess.Popen(
        [*wrapper, *command(directory, seed, operations)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    heard = b""
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        # All through one buffered reader: `communicate` would pass over what it has read ahead.
        if kill_after_lines is not None:
            heard = b"".join(islice(process.stdout, kill_after_lines))
            time.sleep(pause)
            process.kill()
        heard += process.stdout.read()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    witness = Witness()
    witness.hear(heard)
    return witness


def all_bytes(directory: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


async def judge(directory: Path, witness: Witness, *, ready_seconds: float = 5.0) -> None:
    """Open the directory as the next process would, and hold it against the witness."""
    with small_graphs():
        await _judge(directory, witness, ready_seconds)
    content = all_bytes(directory)
    for id in witness.erased:
        assert witness.put[id].encode() not in content, "I2: bytes of an erased item are left"


async def _judge(directory: Path, witness: Witness, ready_seconds: float) -> None:
    started = time.monotonic()
    async with open_engine(directory, ranking=real_ranking) as engine:
        if not engine.banks():
            assert not witness.put, "I1: the bank is gone"
            return
        page = await engine.recent("w", limit=5_000)
        assert time.monotonic() - started < ready_seconds, "I6: not ready in time"
        live = {item.id: item.text for item in page.items}
        assert page.total == len(live)
        for id, text in witness.put.items():
            if id not in witness.touched:
                assert live.get(id) == text, (
                    f"I1: acknowledged {id} is {live.get(id)!r}, not {text}"
                )
        for id, body in witness.documents.items():
            assert (await engine.document("w", id)).body == body, "I1: a document"
        for id in witness.gone:
            assert id not in live, f"I2: {id} is back"
        texts = set(live.values())
        for together in witness.whole:
            if not {id for id, text in witness.put.items() if text in together} & witness.touched:
                assert len(texts & set(together)) in (0, len(together)), "I3: half a put_many"
        checked = await engine.check("w")
        assert checked.problems == (), f"I4: {checked.problems}"
        assert checked.items == checked.words == checked.vectors
        for id in witness.sessions:
            assert await engine.sessions.resume(id) is not None, "I7: a session is lost"
        for id in witness.erased:
            try:
                await engine.get("w", id)
            except NotFound:
                continue
            raise AssertionError("I2: an erased item is back")
        await engine.settle("w")
        found = await engine.search(Query(bank="w", text="mark", mode="semantic", limit=5_000))
        assert found.degraded == ()
        chunks = {hit.item.id for hit in found.hits if hit.item.kind == "chunk"}
        assert {hit.item.id for hit in found.hits} - chunks == set(live) - chunks, "I4: by meaning"
