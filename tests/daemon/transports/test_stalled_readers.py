"""A client that stops reading is disconnected; a slow or idle one is not."""

import asyncio
import socket
from pathlib import Path

import anyio
import pytest

from daemon.transports.http.edge.messages import Pace
from daemon.transports.stalled_readers import StallGuard
from daemon.transports.streams import StreamWire
from tests.support.web import running_web
from tests.support.wire import call, initialize, running_services

pytestmark = pytest.mark.anyio

STALL = 0.15


class QuickWire(StreamWire):
    stall_seconds = STALL


async def is_closed(client: socket.socket, seconds: float) -> bool:
    """Whether the server closes the connection in that time, seen without reading its output."""
    loop = asyncio.get_running_loop()
    with anyio.move_on_after(seconds):
        while True:
            try:
                await loop.sock_sendall(client, b"\n")
            except OSError:
                return True
            await anyio.sleep(0.02)
    return False


async def test_a_socket_client_that_stops_reading_is_closed_and_an_idle_one_is_not(
    tmp_path: Path,
) -> None:
    async with running_services(
        tmp_path, limits__requests_per_minute=0, limits__output_bytes=4096
    ) as services:
        clients: list[socket.socket] = []
        for _ in range(2):
            server, client = socket.socketpair()
            client.setblocking(False)
            clients.append(client)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: QuickWire(services.for_peers, "unix", frozenset()), server
            )
        stalled, idle = clients
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(idle, initialize())
        assert b'"result"' in await loop.sock_recv(idle, 65_536)
        big = b"".join(call(n, "big", bytes=100_000) for n in range(1, 30))
        await loop.sock_sendall(stalled, initialize() + big)

        assert await is_closed(stalled, 10 * STALL + 5)
        assert not await is_closed(idle, 3 * STALL)
        for client in clients:
            client.close()


async def test_an_http_client_that_stops_reading_is_closed(tmp_path: Path) -> None:
    async with running_web(tmp_path, pace=Pace(stall=STALL)) as web:
        client = socket.create_connection(("127.0.0.1", web.port))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)
        body = b'{"bytes": 3000000}'
        request = b"POST /tools/big HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % web.port
        request += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, (request + body) * 8)

        assert await is_closed(client, 10 * STALL + 5)
        client.close()


class SlowTransport(asyncio.Transport):
    """A transport whose reader takes some of the output between two looks."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 1000
        self.is_aborted = False
        self.all_read = anyio.Event()

    def get_write_buffer_size(self) -> int:
        self.waiting = max(0, self.waiting - 100)
        if not self.waiting:
            self.all_read.set()
        return self.waiting

    def abort(self) -> None:
        self.is_aborted = True


async def test_a_slow_client_that_reads_a_little_is_not_closed() -> None:
    transport = SlowTransport()
    guard = StallGuard(transport, "test", 0.01)
    guard.wrote()
    with anyio.fail_after(5):
        await transport.all_read.wait()
    assert not transport.is_aborted
    guard.stop()
