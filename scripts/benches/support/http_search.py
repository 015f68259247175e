"""Overhead of REST search over the engine's search at 10,000 memories.

One process holds the engine and serves HTTP. The same queries go to both in turn, so that other
load on the machine affects both equally. Run by `scripts/bench.py http --search`.
"""

import json
import os
import random
import statistics
import tempfile
import time
from typing import Any, Final

import anyio
import anyio.to_thread

from daemon.config import load
from daemon.operations import logs
from daemon.rpc.services import make_gate, make_services
from daemon.rpc.sessions import SessionKeeper
from daemon.surfaces import DialectSurfaces
from daemon.tools.toolkit import Toolkit
from daemon.transports.http.server import Bound, HttpServer
from scripts.benches.http import connected, exchange
from store.clock import wall_clock
from store.model import NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine

MEMORIES: Final = 10_000
QUERIES: Final = 200
BATCH: Final = 500

_WORDS: Final = [
    "deploy",
    "rotate",
    "token",
    "cache",
    "index",
    "query",
    "memory",
    "editor",
    "branch",
    "release",
    "session",
    "window",
    "budget",
    "kitchen",
    "train",
    "harbour",
    "violin",
    "garden",
    "winter",
    "invoice",
    "contract",
    "license",
    "engine",
    "socket",
]


async def added() -> tuple[float, float]:
    """Median seconds of a keyword search in the engine, and of the same search over REST."""
    random.seed(7)
    # The log line of each request is part of the cost of HTTP, so log to nowhere.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    logs.configure("info")
    with tempfile.TemporaryDirectory(prefix="recalld-bench-") as home:
        environment = {
            "RECALLD_HOME": home,
            "RECALLD_RATE_LIMIT": "0",
            "RECALLD_BIND": "127.0.0.1:0",
        }
        settings = load({}, environment)
        data = settings.directories.data
        data.mkdir(parents=True, mode=0o700)
        async with open_engine(data, ranking=HybridRanking) as engine:
            await _fill(engine)
            async with anyio.create_task_group() as tasks:
                services = make_services(
                    settings,
                    tasks=tasks,
                    sessions=SessionKeeper(engine.sessions, idle_days=1, keep=10),
                    surfaces=DialectSurfaces(settings, Toolkit(engine=engine, now=wall_clock)),
                    clock=time.monotonic,
                    gate=make_gate(settings, time.monotonic),
                    engine=engine.health,
                )
                server = HttpServer(services, Bound(settings))
                await server.open()
                found = await _compare(engine, int(str(services.status.http).rpartition(":")[2]))
                server.refuse_new()
                await server.close()
                tasks.cancel_scope.cancel()
    return found


async def _fill(engine: Any) -> None:
    for start in range(0, MEMORIES, BATCH):
        texts = [
            f"{' '.join(random.choices(_WORDS, k=12))} number {start + n}" for n in range(BATCH)
        ]
        await engine.put_many("default", [NewMemory(text=text) for text in texts])


async def _compare(engine: Any, port: int) -> tuple[float, float]:
    direct: list[float] = []
    rest: list[float] = []
    with connected(port) as connection:
        for _ in range(QUERIES):
            text = " ".join(random.choices(_WORDS, k=3))
            began = time.perf_counter()
            await engine.search(Query(bank="default", text=text, mode="keyword", limit=48))
            direct.append(time.perf_counter() - began)
            body = json.dumps({"query": text, "mode": "keyword"}).encode()
            head = (
                f"POST /tools/search HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            began = time.perf_counter()
            answer = await anyio.to_thread.run_sync(exchange, connection, head.encode() + body)
            rest.append(time.perf_counter() - began)
            if b'"results":[{' not in answer:
                raise SystemExit(f"bench: nothing found: {answer[:300]!r}")
    return statistics.median(direct), statistics.median(rest)
