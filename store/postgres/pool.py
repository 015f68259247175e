"""Connections to the server, each used by one thread at a time.

A function runs from its first statement to its last on one thread with one connection, so a caller
that is cancelled cannot leave half a transaction (see `store/sqlite/connection.py`). There are two
pools: writers may wait for the lock of a bank, and must not keep readers from running meanwhile.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import psycopg

from store.hop import Done, Hop, Outcome
from store.postgres.connection import Server, connect

T = TypeVar("T")


class Pool:
    """At most `size` connections, opened when they are needed."""

    def __init__(self, url: str, size: int, *, name: str, prepares: bool) -> None:
        self.size = size
        self._url = url
        self._prepares = prepares
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._idle: list[Server] = []
        self._open = 0
        self._waiting = 0
        self._is_closed = False

    # --- on the event loop ----------------------------------------------------------------

    @property
    def connections(self) -> int:
        """Open connections."""
        return self._open

    @property
    def waiting(self) -> int:
        """Functions that were posted and have not ended."""
        return self._waiting

    def post(self, function: Callable[["Pool"], Any], done: Done) -> None:
        """Run `function` on a thread, then call `done` with its outcome on the event loop."""
        self._waiting += 1

        def finish(result: Any, error: BaseException | None) -> None:
            self._waiting -= 1
            done(result, error)

        hop = Hop(asyncio.get_running_loop(), partial(function, self), finish)
        self._threads.submit(hop)

    async def run(self, function: Callable[["Pool"], T]) -> T:
        """Run `function` on a thread. A cancelled caller still waits until it has ended."""
        outcome = Outcome[T]()
        self.post(function, outcome.finish)
        return await outcome.wait()

    async def close(self) -> None:
        """Wait for the functions that were posted, and close the connections."""
        self._is_closed = True
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self._threads.shutdown)
        for server in self._idle:
            server.close()
        self._idle.clear()

    # --- on a thread ----------------------------------------------------------------------

    def take(self) -> Server:
        """A connection that works, as far as this side knows."""
        with self._lock:
            while self._idle:
                server = self._idle.pop()
                if not server.closed:
                    return server
                self._open -= 1
            self._open += 1
        try:
            return connect(self._url, prepares=self._prepares)
        except BaseException:
            with self._lock:
                self._open -= 1
            raise

    def give_back(self, server: Server) -> None:
        """Return a connection. One that is not between two transactions is closed instead."""
        if server.closed or server.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.drop(server)
            return
        with self._lock:
            self._idle.append(server)

    def drop(self, server: Server) -> None:
        """Close a connection that cannot be used any more."""
        with self._lock:
            self._open -= 1
        server.close()

    def drop_idle(self) -> None:
        """Close the idle connections: after one was lost, the others are too, as a rule."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._open -= len(idle)
        for server in idle:
            server.close()
