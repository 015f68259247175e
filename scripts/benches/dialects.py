"""Dialects benchmark: latency of each tool over the socket, and the overhead over the engine.

One process holds the engine and serves the socket; a client in another process calls every tool.
Between two calls of a tool the same engine operations run directly, so that both see the same load.
Their difference is the overhead of the dialect and the transport. The CPU column is the CPU time of
the serving process, including about 0.1 ms to feed the client; it is the figure to use on a busy
machine.

    scripts/bench.py dialects              10,000 memories, 200 calls a tool; about two minutes
    scripts/bench.py dialects --quick      2,000 memories, 60 calls
    scripts/bench.py dialects --check      exit 1 if a limit is missed

Limits: p50 below 25 ms and p99 below 100 ms for every tool at 10,000 memories, and an overhead
below 1 ms at p50. Tools marked `structured` have 10 and 50 ms instead.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.abc

from daemon.config import Settings, load
from daemon.rpc.services import make_gate, make_services
from daemon.rpc.sessions import SessionKeeper
from daemon.surfaces import DialectSurfaces
from daemon.tools.toolkit import Toolkit
from daemon.transports import unix
from scripts.benches.support import awareness_calls
from store.clock import wall_clock
from store.engine import Engine
from store.errors import NotFound
from store.model import Filters, NewDocument, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine

BANK: Final = "bench"
SESSION: Final = "session_bench"
P50_MS, P99_MS, ADDED_MS = 25.0, 100.0, 1.0
STRUCTURED_P50_MS, STRUCTURED_P99_MS = 10.0, 50.0

#: A vocabulary with a natural distribution: a few frequent words, many rare ones.
_SYLLABLES: Final = [
    *("ba", "de", "fi", "go", "ku", "la", "me", "no", "pi", "ra"),
    *("su", "ti", "vo", "wa", "xe", "zu", "lor", "min", "tan", "ker"),
]
_WORDS: Final = [
    "".join(random.Random(rank).choices(_SYLLABLES, k=2 + rank % 3)) + str(rank)[-1:] * (rank > 999)
    for rank in range(5_000)
]
_WEIGHTS: Final = [1 / (rank + 3) for rank in range(len(_WORDS))]


@dataclass(frozen=True)
class Case:
    """A tool call and the engine operations behind it."""

    name: str
    tool: str
    arguments: Callable[[int], dict[str, Any]]
    engine: Callable[[Engine, int], Awaitable[Any]]
    is_structured: bool = False


def sentence(number: int) -> str:
    """A sentence of about 25 words."""
    words = random.Random(number).choices(_WORDS, _WEIGHTS, k=25)
    return f"{' '.join(words).capitalize()}; change {number}."


def question(number: int) -> str:
    """A query: a few words of a stored sentence, in another order."""
    words = sentence(number % 1000).split()[:-2]
    return f"what about {' '.join(random.Random(number).sample(words, 4))}?"


async def _stats(engine: Engine, _number: int) -> None:
    await engine.sessions.get(SESSION)
    await engine.stats(BANK)
    await engine.recent(BANK, kinds=("memory",), limit=1)
    await engine.recent(BANK, kinds=("memory",), filters=Filters(session=SESSION), limit=1)


def _harness_search(mode: str, n: int) -> dict[str, Any]:
    return {"query": question(n), "mode": mode}


async def _rows(mode: Any, engine: Engine, number: int) -> None:
    found = await engine.search(Query(bank=BANK, text=question(number), mode=mode, limit=36))
    documents = {hit.item.document: None for hit in found.hits[:12] if hit.item.document}
    for document in documents:
        if document is not None:
            await engine.document(BANK, document)


async def _get(engine: Engine, number: int) -> None:
    try:
        await engine.document(BANK, f"memory-{number % 1000}")
    except NotFound:
        await engine.get(BANK, f"memory-{number % 1000}")


def put(number: int, key: str | None = None) -> NewMemory:
    return NewMemory(text=f"{key or 'plain'} put: {sentence(number)}", context="bench", key=key)


CASES: Final = (
    Case(
        "hindsight_put",
        "hindsight_put",
        lambda n: {"bank_id": BANK, "content": f"tool put: {sentence(n)}", "context": "bench"},
        lambda engine, n: engine.put(BANK, put(n)),
    ),
    Case(
        "hindsight_search",
        "hindsight_search",
        lambda n: {"bank_id": BANK, "query": question(n)},
        lambda engine, n: engine.search(Query(bank=BANK, text=question(n), limit=56)),
    ),
    Case(
        "store_memory",
        "mcp__claude-recall__store_memory",
        lambda n: {"content": f"stored: {sentence(n)}", "metadata": {"type": "code"}},
        lambda engine, n: engine.put(BANK, put(n, f"key-{n}")),
    ),
    Case(
        "recall search",
        "mcp__claude-recall__search",
        lambda n: {"query": question(n)},
        lambda engine, n: engine.search(
            Query(bank=BANK, text=question(n), limit=20, min_score=0.7)
        ),
    ),
    Case(
        "retrieve_memory recent",
        "mcp__claude-recall__retrieve_memory",
        lambda n: {},
        lambda engine, n: engine.recent(BANK, kinds=("memory", "event", "card"), limit=10),
    ),
    Case(
        "retrieve_memory id",
        "mcp__claude-recall__retrieve_memory",
        lambda n: {"id": f"memory-{n % 1000}"},
        lambda engine, n: engine.get(BANK, f"memory-{n % 1000}"),
    ),
    Case("get_stats", "mcp__claude-recall__get_stats", lambda n: {}, _stats),
    Case(
        "clear_context",
        "mcp__claude-recall__clear_context",
        lambda n: {"confirm": True},
        lambda engine, n: engine.forget_where(BANK, filters=Filters(session=f"nobody-{n}")),
    ),
    *(
        Case(
            f"harness search {mode}",
            "search",
            partial(_harness_search, mode),
            partial(_rows, mode),
        )
        for mode in ("keyword", "semantic", "hybrid")
    ),
    Case("get", "get", lambda n: {"id": f"memory-{n % 1000}"}, _get),
    Case("sources", "sources", lambda n: {}, lambda engine, n: engine.stats(BANK)),
    *(Case(*row) for row in awareness_calls.rows(BANK, sentence, question)),
)

#: The client: reads calls from stdin, sends each over the socket, prints nanoseconds and success.
CLIENT: Final = """
import json, socket, sys, time
link = socket.socket(socket.AF_UNIX); link.connect(sys.argv[1])
stream = link.makefile("rwb")
def ask(method, params, number):
    body = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    line = json.dumps(body).encode() + b"\\n"
    began = time.perf_counter_ns()
    stream.write(line); stream.flush()
    answer = stream.readline()
    return time.perf_counter_ns() - began, json.loads(answer)
ask("recalld/attach", {"version": "0.0.1", "bank": sys.argv[2]}, 0)
ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"}}, 1)
for number, line in enumerate(sys.stdin, 2):
    took, answer = ask("tools/call", json.loads(line), number)
    good = answer.get("id") == number and "result" in answer and not answer["result"].get("isError")
    print(took, "ok" if good else json.dumps(answer)[:300], flush=True)
"""


async def fill(engine: Engine, count: int) -> None:
    """Fill the bank: nine tenths memories, one tenth document chunks."""
    began = time.perf_counter()
    memories = count * 9 // 10
    for start in range(0, memories, 500):
        some = range(start, min(start + 500, memories))
        await engine.put_many(
            BANK,
            [
                NewMemory(
                    id=f"memory-{n}",
                    text=sentence(n),
                    context="bench",
                    source="recall",
                    session=f"session_{n % 40}",
                )
                for n in some
            ],
        )
    chunks = 0
    while chunks < count - memories:
        body = "\n\n".join(
            " ".join(sentence(chunks * 50 + n) for n in range(12)) for n in range(10)
        )
        upserted = await engine.upsert_document(
            BANK, NewDocument(source="bench", source_id=f"document-{chunks}", body=body)
        )
        chunks += upserted.chunks
    await engine.put_notes(BANK, awareness_calls.notes(sentence))
    stored = time.perf_counter() - began
    await engine.search(Query(bank=BANK, text="wake up"))
    while (await engine.stats(BANK)).pending_vectors:  # noqa: ASYNC110 - the engine has no event for it
        await anyio.sleep(0.2)
    items = (await engine.stats(BANK)).items
    whole = time.perf_counter() - began
    print(f"{items} items stored in {stored:.1f} s, all vectors after {whole:.1f} s")


@dataclass(frozen=True)
class Figures:
    case: Case
    tool_ms: list[float]
    engine_ms: list[float]
    tool_cpu_ms: list[float]
    engine_cpu_ms: list[float]

    @property
    def added(self) -> float:
        return statistics.median(self.tool_ms) - statistics.median(self.engine_ms)

    def faults(self) -> list[str]:
        p50, p99 = statistics.median(self.tool_ms), percentile(self.tool_ms, 0.99)
        low, high = (
            (STRUCTURED_P50_MS, STRUCTURED_P99_MS) if self.case.is_structured else (P50_MS, P99_MS)
        )
        found = []
        if p50 >= low:
            found.append(f"{self.case.name}: p50 {p50:.2f} ms, bar {low:g}")
        if p99 >= high:
            found.append(f"{self.case.name}: p99 {p99:.2f} ms, bar {high:g}")
        if self.added >= ADDED_MS:
            found.append(f"{self.case.name}: adds {self.added:.2f} ms, bar {ADDED_MS:g}")
        return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


async def measure(
    case: Case, engine: Engine, client: anyio.abc.Process, calls: int, offset: int
) -> Figures:
    assert client.stdin is not None and client.stdout is not None
    lines = _lines(client.stdout)
    tool_ms: list[float] = []
    engine_ms: list[float] = []
    cpu: tuple[list[float], list[float]] = ([], [])
    for number in range(calls + 10):
        spent = [time.process_time_ns()]
        began = time.perf_counter_ns()
        await case.engine(engine, offset + number)
        direct = (time.perf_counter_ns() - began) / 1e6
        spent.append(time.process_time_ns())
        # Use another query than the engine just had, because it caches recent query vectors.
        call = {"name": case.tool, "arguments": case.arguments(offset + 500_000 + number)}
        await client.stdin.send(json.dumps(call).encode() + b"\n")
        took, _, verdict = (await anext(lines)).partition(" ")
        assert verdict == "ok", f"{case.name}: {verdict}"
        spent.append(time.process_time_ns())
        if number >= 10:  # the first calls warm up the caches
            tool_ms.append(int(took) / 1e6)
            engine_ms.append(direct)
            cpu[0].append((spent[2] - spent[1]) / 1e6)
            cpu[1].append((spent[1] - spent[0]) / 1e6)
    return Figures(case, tool_ms, engine_ms, *cpu)


async def _lines(stream: anyio.abc.ByteReceiveStream) -> Any:
    rest = b""
    while True:
        while b"\n" not in rest:
            rest += await stream.receive()
        line, _, rest = rest.partition(b"\n")
        yield line.decode()


async def run(settings: Settings, count: int, calls: int) -> list[Figures]:
    figures: list[Figures] = []
    ranking = partial(HybridRanking, eager=True)
    async with open_engine(settings.directories.data, ranking=ranking) as engine:
        await fill(engine, count)
        sessions = SessionKeeper(engine.sessions, idle_days=30, keep=1000)
        async with anyio.create_task_group() as tasks:
            toolkit = Toolkit(engine=engine, now=wall_clock, final_limit=12)
            services = make_services(
                settings,
                tasks=tasks,
                sessions=sessions,
                surfaces=DialectSurfaces(settings, toolkit),
                engine=engine.health,
                clock=time.monotonic,
                gate=make_gate(settings, time.monotonic),
            )
            listener = unix.bind(settings.socket, is_ours=True)
            server = await unix.listen(services.for_peers, listener)
            command = [sys.executable, "-c", CLIENT, str(settings.socket), BANK]
            async with await anyio.open_process(command, stderr=None) as client:
                heads = ("tool p50", "p99", "engine p50", "added", "ratio", "cpu", "engine cpu")
                print(f"{'milliseconds':24}" + "".join(f"{head:>12}" for head in heads))
                for place, case in enumerate(CASES):
                    found = await measure(case, engine, client, calls, place * 1_000_000)
                    figures.append(found)
                    p50 = statistics.median(found.tool_ms)
                    direct = statistics.median(found.engine_ms)
                    shown = (
                        p50,
                        percentile(found.tool_ms, 0.99),
                        direct,
                        found.added,
                        p50 / direct,
                        statistics.median(found.tool_cpu_ms),
                        statistics.median(found.engine_cpu_ms),
                    )
                    print(f"{case.name:24}" + "".join(f"{value:12.2f}" for value in shown))
                assert client.stdin is not None
                await client.stdin.aclose()
            server.close()
            services.shutdown.leaving.set()
            tasks.cancel_scope.cancel()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="2,000 memories, 60 calls per tool")
    parser.add_argument("--check", action="store_true", help="exit 1 if a limit is missed")
    parser.add_argument("--memories", type=int, default=0)
    parser.add_argument("--calls", type=int, default=0)
    given = parser.parse_args()
    count = given.memories or (2_000 if given.quick else 10_000)
    calls = given.calls or (60 if given.quick else 200)
    with tempfile.TemporaryDirectory(prefix="recalld-", dir="/tmp") as place:
        home = {"RECALLD_HOME": place, "RECALLD_RATE_LIMIT": "0"}
        settings = load({}, home)
        for directory in (Path(place) / "data", Path(place) / "run"):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        figures = anyio.run(run, settings, count, calls)
    faults = [fault for found in figures for fault in found.faults()]
    for fault in faults:
        print(f"missed: {fault}")
    if given.check and faults:
        sys.exit(1)


if __name__ == "__main__":
    main()
