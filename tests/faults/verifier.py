"""Runs the writing child, and verifies the data directory after it was killed.

The invariants:

- durable: every acknowledged put and document is present and byte-identical;
- deleted: no item whose forgetting or erasure was acknowledged is present, and no byte of an erased
  text is left in any file;
- atomic: an operation that was not acknowledged is present as a whole or not at all;
- consistent: rows, full-text index and vectors contain the same items;
- available: the engine answers within a few seconds of opening;
- sessions: every acknowledged session can be resumed.
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


class ChildReport:
    """The operations that a writing child attempted and completed, parsed from its output."""

    def __init__(self) -> None:
        self.put: dict[str, str] = {}
        self.documents: dict[str, str] = {}
        self.deletion_attempted: set[str] = set()  # ids that the child tried to forget or erase
        self.deleted: set[str] = set()
        self.erased: set[str] = set()
        self.sessions: list[str] = []
        self.batches: list[list[str]] = []  # the texts of each put_many
        self.errors: list[str] = []
        self.is_finished = False

    def read(self, output: bytes) -> None:
        for line in output.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return  # the child was killed while it wrote this line
            self._record(orjson.loads(line))

    def _record(self, line: dict[str, Any]) -> None:
        match line:
            case {"ack": "put", "id": id, "text": text}:
                self.put[id] = text
            case {"ack": "document", "id": id, "text": text}:
                self.documents[id] = text
            case {"try": "put_many", "texts": texts}:
                self.batches.append(texts)
            case {"try": "forget" | "erase", "id": id}:
                self.deletion_attempted.add(id)
            case {"ack": "forget", "id": id}:
                self.deleted.add(id)
            case {"ack": "erase", "id": id}:
                self.deleted.add(id)
                self.erased.add(id)
            case {"ack": "session", "id": id}:
                self.sessions.append(id)
            case {"no": error}:
                self.errors.append(error)
            case {"done": True}:
                self.is_finished = True
            case _:
                pass

    @property
    def acknowledged_count(self) -> int:
        return len(self.put) + len(self.documents) + len(self.deleted) + len(self.sessions)


def child_command(directory: Path, seed: int, operations: int) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tests.faults.writing_child",
        str(directory),
        str(seed),
        str(operations),
    ]


def run_child(
    directory: Path,
    seed: int,
    *,
    operations: int = 10_000,
    wrapper: Sequence[str] = (),
    kill_after_lines: int | None = None,
    pause: float = 0.0,
    timeout: float = 60.0,
) -> ChildReport:
    """Run a writing child and return its report.

    With `kill_after_lines`, kill it `pause` seconds after it has written that many lines.
    """
    process = subprocess.Popen(
        [*wrapper, *child_command(directory, seed, operations)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    output = b""
    watchdog = threading.Timer(timeout, process.kill)
    watchdog.start()
    try:
        # Read everything through one buffered reader: `communicate` would lose its read-ahead.
        if kill_after_lines is not None:
            output = b"".join(islice(process.stdout, kill_after_lines))
            time.sleep(pause)
            process.kill()
        output += process.stdout.read()
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    report = ChildReport()
    report.read(output)
    return report


def all_bytes(directory: Path) -> bytes:
    return b"\n".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


async def verify(directory: Path, report: ChildReport, *, ready_seconds: float = 5.0) -> None:
    """Open the directory as the next process would, and check the invariants."""
    with small_graphs():
        await _verify(directory, report, ready_seconds)
    content = all_bytes(directory)
    for id in report.erased:
        assert report.put[id].encode() not in content, "deleted: bytes of an erased item are left"


async def _verify(directory: Path, report: ChildReport, ready_seconds: float) -> None:
    started = time.monotonic()
    async with open_engine(directory, ranking=real_ranking) as engine:
        if not (await engine.banks()):
            assert not report.put, "durable: the bank is missing"
            return
        page = await engine.recent("w", limit=5_000)
        assert time.monotonic() - started < ready_seconds, "available: not ready in time"
        live = {item.id: item.text for item in page.items}
        assert page.total == len(live)
        for id, text in report.put.items():
            if id not in report.deletion_attempted:
                assert live.get(id) == text, (
                    f"durable: acknowledged {id} is {live.get(id)!r}, not {text}"
                )
        for id, body in report.documents.items():
            assert (await engine.document("w", id)).body == body, "durable: a document differs"
        for id in report.deleted:
            assert id not in live, f"deleted: {id} is present"
        texts = set(live.values())
        for batch in report.batches:
            if (
                not {id for id, text in report.put.items() if text in batch}
                & report.deletion_attempted
            ):
                assert len(texts & set(batch)) in (0, len(batch)), "atomic: part of a put_many"
        checked = await engine.check("w")
        assert checked.problems == (), f"consistent: {checked.problems}"
        assert checked.items == checked.words == checked.vectors
        for id in report.sessions:
            assert await engine.sessions.resume(id) is not None, (
                "sessions: a session cannot be resumed"
            )
        for id in report.erased:
            try:
                await engine.get("w", id)
            except NotFound:
                continue
            raise AssertionError("deleted: an erased item is present")
        await engine.settle("w")
        found = await engine.search(Query(bank="w", text="mark", mode="semantic", limit=5_000))
        assert found.degraded == ()
        chunks = {hit.item.id for hit in found.hits if hit.item.kind == "chunk"}
        assert {hit.item.id for hit in found.hits} - chunks == set(live) - chunks, (
            "consistent: semantic search"
        )
