"""Finished but unsent answers are bounded, on one connection and on all of them."""

from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from daemon.fixtures import surface as fixture_surface
from daemon.tools.context import Context
from daemon.tools.specification import ToolSpec
from daemon.tools.surface import Surface
from tests.support.wire import MemoryWire, call, initialize, join, running_services

pytestmark = pytest.mark.anyio

LARGE = 200_000
CALLS = 60
LIMIT = 1_000_000


async def _late(_arguments: Any, _context: Context) -> str:
    await anyio.lowlevel.checkpoint()
    return "x" * LARGE


def surface() -> Surface:
    served = fixture_surface()
    served.tools.add(ToolSpec(name="late", description="A large answer, later.", run=_late))
    return served


def answers(*wires: MemoryWire) -> tuple[int, list[Any]]:
    frames = [frame for wire in wires for frame in wire.frames() if frame["id"]]
    errors = [frame["error"] for frame in frames if "error" in frame]
    return len(frames), errors


async def test_a_client_that_does_not_read_has_large_answers_discarded_with_an_error(
    tmp_path: Path,
) -> None:
    flags: dict[str, Any] = {
        "limits__output_bytes": 10_000,
        "limits__unsent_bytes": LIMIT,
        "limits__requests_per_minute": 0,
    }
    async with running_services(tmp_path, surface=surface(), **flags) as services:
        peer, wire = join(services, capacity=0)
        peer.feed(initialize() + b"".join(call(n, "late") for n in range(1, CALLS + 1)))
        await anyio.wait_all_tasks_blocked()

        assert 0 < peer.unsent() <= LIMIT + 2 * LARGE
        while services.gate.in_flight:
            wire.drain()
            await anyio.sleep(0.01)
        wire.drain()

        count, errors = answers(wire)
        assert count == CALLS
        assert len(errors) > CALLS / 2
        assert {error["code"] for error in errors} == {-32001}
        assert "limits.unsent_bytes is 1000000" in str(errors[0])


async def test_many_clients_that_do_not_read_share_one_limit(tmp_path: Path) -> None:
    flags: dict[str, Any] = {
        "limits__output_bytes": 10_000,
        "limits__unsent_bytes_total": LIMIT,
        "limits__requests_per_minute": 0,
    }
    async with running_services(tmp_path, surface=surface(), **flags) as services:
        joined = [join(services, capacity=0) for _ in range(CALLS)]
        for peer, _ in joined:
            peer.feed(initialize() + call(1, "late"))
        await anyio.wait_all_tasks_blocked()

        assert 0 < services.connections.unsent() <= LIMIT + 2 * LARGE
        for _, wire in joined:
            wire.drain()
        count, errors = answers(*(wire for _, wire in joined))
        assert count == CALLS
        assert "limits.unsent_bytes_total" in str(errors[0])
