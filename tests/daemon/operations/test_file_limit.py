"""Descriptors: the limit is raised, files keep a reserve, and accept errors stay quiet."""

import asyncio
import errno
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from daemon.operations.file_limit import RESERVED, LoopErrors, connections_within
from tests.support.processes import child, recalld

RAISED = """
import resource
from daemon.operations.file_limit import raise_limit
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (200, min(hard, 700)))
print(raise_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_the_soft_limit_is_raised_to_the_hard_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", RAISED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "700 700\n"


@pytest.mark.parametrize(
    ("descriptors", "wanted", "given"),
    [(65_536, 1_000, 1_000), (1_024, 1_000, 256), (64, 1_000, 16), (1_024, 10, 10)],
)
def test_connections_leave_a_reserve_for_files(descriptors: int, wanted: int, given: int) -> None:
    assert connections_within(descriptors, wanted) == given
    assert RESERVED >= 400


def test_many_accept_errors_are_one_line_in_the_log() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        handle = LoopErrors()
        error = OSError(errno.EMFILE, "Too many open files")
        for _ in range(5_000):
            handle(loop, {"message": "socket.accept() out of system resource", "exception": error})

    with capture_logs() as logs:
        asyncio.run(main())
    assert [(line["event"], line["error"]) for line in logs] == [("accept.failed", "EMFILE")]


def test_a_daemon_raises_its_limit(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with child(tmp_path, "serve", "--no-http") as daemon:
        for _ in range(200):
            if recalld(tmp_path, "health").returncode != 2:
                break
        limits = Path(f"/proc/{daemon.process.pid}/limits").read_text()
    (line,) = [line for line in limits.splitlines() if line.startswith("Max open files")]
    soft = line.split()[3]
    assert soft == "unlimited" or int(soft) >= min(hard, 65_536)
