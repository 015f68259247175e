"""Shutdown in two steps: a stop is requested, then the process leaves."""

import anyio

from daemon.rpc.connections import Connections


class Shutdown:
    """`stopping` is set when a stop is requested, `leaving` when the shutdown begins."""

    def __init__(self, connections: Connections) -> None:
        self.stopping = anyio.Event()
        self.leaving = anyio.Event()
        self._connections = connections

    def stop(self) -> None:
        """Ask the process to end soon, in an orderly way."""
        self.stopping.set()

    def depart(self) -> None:
        """Begin to leave: open subscriptions end now."""
        self.leaving.set()
        for connection in self._connections:
            connection.leaving.set()
