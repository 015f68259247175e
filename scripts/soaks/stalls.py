"""Stall test: how long does `ping` take while the daemon does heavy work?

    scripts/stalls.py                        100,000 memories, about ten minutes
    scripts/stalls.py --memories 3000        a short form (tests/faults/test_stalls.py uses it)

Fills a bank, starts a daemon on it, and sends a `ping` over the Unix socket every few milliseconds
during: idle, model load, index build, snapshot, searches, backup, erase, and the ingest of a 16 MiB
document. Prints p50, p99 and maximum for each phase and the ratio of the p99 to the idle phase.
Exit code 1 if a p99 is over 20 ms or a maximum over 100 ms; on a busy machine compare the ratios.

The vectors of the bank are synthetic, with the identity of the installed model, because embedding
100,000 texts takes an hour. With fewer than 100,000 memories the daemon builds a graph from
`--graph-from` vectors on, so that the short form goes through all phases too.
"""

import argparse
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
from msgspec import Struct

from scripts.kit import stdio_client
from scripts.kit.recalld import Home, fresh_home
from store.embedding.selection import choose_embedder
from store.model import NewMemory
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine
from store.vectors.indexing import BankIndex
from store.vectors.model_thread import ModelThread

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BANK: Final = "large"
EVERY_SECONDS: Final = 0.004
DOCUMENT_BYTES: Final = 16 * 1024 * 1024 - 1024
P99_SECONDS: Final = 0.020
MAXIMUM_SECONDS: Final = 0.100
PATIENCE_SECONDS: Final = 1_800.0
WORDS: Final = (
    "river", "harbour", "invoice", "meeting", "kernel", "orchard", "violin", "budget", "glacier",
    "lantern", "release", "schema", "compiler", "vineyard", "ticket", "sandstone", "ledger",
    "monsoon", "cathedral", "protocol",
)  # fmt: skip

# Runs `recalld` with graphs from fewer vectors on than usual.
LAUNCHER: Final = """#!{python}
from store.vectors.cache import VectorCache
VectorCache.__init__.__kwdefaults__["exact_limit"] = {graph_from}
from daemon.__main__ import main
main()
"""


class Phase(Struct, frozen=True, kw_only=True):
    """The latencies of `ping` during one phase, in seconds."""

    name: str
    seconds: float
    pings: int
    p50: float
    p99: float
    maximum: float

    @property
    def is_stalled(self) -> bool:
        return self.p99 > P99_SECONDS or self.maximum > MAXIMUM_SECONDS


class Synthetic:
    """An embedder with the identity of the installed model and clusters of random vectors."""

    def __init__(self) -> None:
        import numpy as np

        self.identity = choose_embedder().identity
        self.is_semantic = True
        self._random = np.random.default_rng(7)
        self._centres = self._random.normal(size=(2_000, self.identity.dims)).astype(np.float32)

    def embed(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        import numpy as np

        chosen = self._centres[self._random.integers(len(self._centres), size=len(texts))]
        vectors = chosen + 0.7 * self._random.normal(size=chosen.shape).astype(np.float32)
        rows: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return rows


async def fill(directory: Path, memories: int) -> str:
    """Create a bank with so many memories and their vectors; returns the id of one memory."""
    first = ""
    async with open_engine(directory, ranking=lambda group: HybridRanking(group)) as engine:
        for start in range(0, memories, 5_000):
            new = [
                NewMemory(text=f"{' '.join(WORDS[(n * k) % 20] for k in range(1, 9))} {n}")
                for n in range(start, min(start + 5_000, memories))
            ]
            puts = await engine.put_many(BANK, new)
            first = first or puts[0].id
        await engine.put("small", NewMemory(text="the only memory"))
        thread = ModelThread("fill")
        async with engine._registry.use(BANK) as opened:  # pyright: ignore[reportPrivateUsage]
            index = BankIndex(opened, Synthetic(), thread)
            await index.adopt_model()
            await index.embed_pending()
        thread.stop()
    return first


class Client:
    """One connection to the daemon that sends a request and waits for its response."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(path)
        self._socket.settimeout(PATIENCE_SECONDS)
        self._lines = self._socket.makefile("rb")
        self._number = 0
        self._exchange(stdio_client.initialize(0))
        self._socket.sendall(stdio_client.INITIALIZED)

    def ping(self) -> None:
        self._number += 1
        self._exchange(stdio_client.request(self._number, "ping"))

    def call(self, tool: str, **arguments: object) -> None:
        self._number += 1
        params = {"name": tool, "arguments": arguments}
        answer = self._exchange(stdio_client.request(self._number, "tools/call", params))
        if b'"isError":true' in answer or b'"error"' in answer[:100]:
            raise RuntimeError(answer[:500].decode(errors="replace"))

    def close(self) -> None:
        self._lines.close()
        self._socket.close()

    def _exchange(self, line: bytes) -> bytes:
        self._socket.sendall(line)
        while True:
            answer = self._lines.readline()
            if not answer:
                raise RuntimeError("the daemon closed the connection")
            if b'"method"' not in answer[:60]:  # not a notification
                return answer


class Pinger:
    """Sends pings on a thread and records their latencies, phase by phase."""

    def __init__(self, path: str) -> None:
        self._client = Client(path)
        self._samples: list[float] = []
        self._is_done = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def during(self, name: str, work: Callable[[], object]) -> Phase:
        self._samples = []
        began = time.perf_counter()
        work()
        samples, seconds = sorted(self._samples), time.perf_counter() - began
        if self._error is not None:
            raise self._error
        if not samples:
            samples = [seconds]  # not one ping was answered during the whole phase
        return Phase(
            name=name,
            seconds=seconds,
            pings=len(samples),
            p50=samples[len(samples) // 2],
            p99=samples[min(len(samples) - 1, len(samples) * 99 // 100)],
            maximum=samples[-1],
        )

    def close(self) -> None:
        self._is_done = True
        self._thread.join(10)
        self._client.close()

    def _run(self) -> None:
        try:
            while not self._is_done:
                began = time.perf_counter()
                self._client.ping()
                self._samples.append(time.perf_counter() - began)
                time.sleep(EVERY_SECONDS)
        except BaseException as error:  # noqa: BLE001  (raised again by `during`)
            self._error = error


def measure(
    memories: int,
    *,
    graph_from: int | None = None,
    document_bytes: int = DOCUMENT_BYTES,
    idle_seconds: float = 5.0,
    report: Callable[[Phase], None] = lambda phase: None,
) -> list[Phase]:
    """Run all phases on a fresh daemon; `report` is called after each."""
    phases: list[Phase] = []
    extra = {"RECALLD_FRAME_BYTES": str(64 * 1024 * 1024), "RECALLD_CALL_SECONDS": "3600"}
    with fresh_home(extra) as home:
        if graph_from is not None:
            home.command = str(launcher(home.path, graph_from))
        first = anyio.run(fill, home.path / "data", memories)
        path = str(home.serve(fixtures=False)["socket"])
        pinger, client = Pinger(path), Client(path)

        def phase(name: str, work: Callable[[], object]) -> None:
            phases.append(pinger.during(name, work))
            report(phases[-1])

        text = document(document_bytes)
        phase("idle", lambda: time.sleep(idle_seconds))
        phase("model load", lambda: search(client, "small", 1))

        def build() -> None:
            search(client, BANK, 1)
            until_logged(home, "index.built")

        phase("index build", build)
        phase("snapshot", lambda: until_logged(home, "snapshot.written"))
        phase("searches", lambda: search(client, BANK, 50))
        phase("backup", lambda: command(home, "bank", "backup", BANK))
        phase("erase", lambda: command(home, "bank", "erase", BANK, first, "--yes"))
        phase("ingest", lambda: ingest(client, text))
        client.close()
        pinger.close()
    return phases


def launcher(directory: Path, graph_from: int) -> Path:
    path = directory / "recalld"
    path.write_text(LAUNCHER.format(python=sys.executable, graph_from=graph_from))
    path.chmod(0o700)
    return path


def document(size: int) -> str:
    """A text of about `size` bytes, in paragraphs."""
    words = [
        f"{WORDS[n % 20]}{'' if n % 7 else n}{'.' if n % 11 == 0 else ''}" for n in range(3_000)
    ]
    page = " ".join(words) + "\n\n"
    return (page * (size // len(page) + 1))[:size]


def search(client: Client, bank: str, times: int) -> None:
    for n in range(times):
        client.call("hindsight_search", bank_id=bank, query=f"{WORDS[n % 20]} {WORDS[n % 7]} {n}")


def ingest(client: Client, text: str) -> None:
    client.call(
        "awareness_record", action="ingest", content=text, content_scope="knowledge",
        memory_id="documents",
    )  # fmt: skip


def command(home: Home, *arguments: str) -> None:
    done = home.run(*arguments, seconds=PATIENCE_SECONDS)
    if done.returncode:
        raise RuntimeError(f"recalld {' '.join(arguments)}: {done.stdout}{done.stderr}")


def until_logged(home: Home, event: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while f'"{event}"' not in home.log.read_text():
        if time.monotonic() > deadline:
            raise RuntimeError(f"the daemon never logged {event}")
        time.sleep(0.05)


def show(phase: Phase, idle: Phase) -> str:
    ratio = phase.p99 / idle.p99
    return (
        f"{phase.name:12} {phase.seconds:8.1f} s {phase.pings:7} pings"
        f"   p50 {phase.p50 * 1e3:7.2f} ms   p99 {phase.p99 * 1e3:7.2f} ms"
        f"   max {phase.maximum * 1e3:8.2f} ms   p99 is {ratio:6.1f} x idle"
        f"{'   STALLED' if phase.is_stalled else ''}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--memories", type=int, default=100_000)
    parser.add_argument(
        "--graph-from", type=int, help="default: half of --memories if fewer than 100,000"
    )
    parser.add_argument("--document-bytes", type=int, default=DOCUMENT_BYTES)
    options = parser.parse_args()
    graph_from = options.graph_from
    if graph_from is None and options.memories < 100_000:
        graph_from = options.memories // 2
    seen: list[Phase] = []

    def report(phase: Phase) -> None:
        seen.append(phase)
        print(show(phase, seen[0]), flush=True)

    phases = measure(
        options.memories,
        graph_from=graph_from,
        document_bytes=options.document_bytes,
        report=report,
    )
    return any(phase.is_stalled for phase in phases)


if __name__ == "__main__":
    sys.exit(main())
