"""Connecting to the daemon: the checks of its owner, and its place in the process tree."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from daemon.bridge import daemon_identity
from daemon.bridge.attach import connect
from daemon.exit_codes import UNAVAILABLE, Exit
from tests.support.processes import PATIENCE, child, kill_daemon, recalld, spawned_daemon
from tests.support.wire import initialize, request

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")


def descendants(pid: int) -> list[int]:
    """The processes that /proc lists below a process, in any session or process group."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def test_a_client_that_kills_its_whole_process_tree_does_not_stop_the_daemon(
    tmp_path: Path,
) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, "stdio", "--fixtures") as first:
        first.send(initialize() + request(1, "tools/call", name="echo", arguments={"text": "a"}))
        assert first.lines(2)[1]["result"]
        with child(tmp_path, "stdio", "--fixtures") as second:
            slow = {"name": "slow", "arguments": {"seconds": 1.0}}
            second.send(initialize() + request(1, "tools/call", **slow))
            assert second.line()["id"] == 0
            for pid in descendants(first.process.pid):
                os.kill(pid, signal.SIGKILL)
            first.process.kill()
            answer = second.line()
            assert "result" in answer, answer


def test_a_started_daemon_leaves_no_zombie_in_the_bridge(tmp_path: Path) -> None:
    with spawned_daemon(tmp_path), child(tmp_path, "stdio", "--fixtures") as bridge:
        bridge.send(initialize())
        bridge.line()
        assert descendants(bridge.process.pid) == []
        kill_daemon(tmp_path)
        bridge.send(request(1, "tools/call", name="echo", arguments={"text": "a"}))
        assert bridge.line()["id"] == 1
        assert descendants(bridge.process.pid) == []


# --- another user's daemon -------------------------------------------------------------------

LISTENER = """
import os, socket, sys
os.setgid(65534); os.setuid(65534)
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
print("ready", flush=True)
while True:
    link, _ = listener.accept()
    print("received", link.recv(65536), flush=True)
    link.close()
"""


@contextmanager
def foreign_listener(path: Path) -> "Generator[subprocess.Popen[str]]":
    """A process of the user `nobody` that listens at a path and prints every byte it receives."""
    with subprocess.Popen(
        [sys.executable, "-c", LISTENER, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def shared_directory(tmp_path: Path) -> Generator[Path]:
    """A sticky directory that every user can write to, such as /tmp."""
    path = Path(f"/tmp/recalld-test-{os.getpid()}-{time.monotonic_ns()}")
    path.mkdir()
    path.chmod(0o1777)
    yield path
    for entry in path.iterdir():
        entry.unlink()
    path.rmdir()


@as_root
@pytest.mark.parametrize("command", [["health"], ["status"], ["bank", "list"], ["stdio"]])
def test_no_byte_is_sent_to_the_daemon_of_another_user(
    tmp_path: Path, shared_directory: Path, command: list[str]
) -> None:
    path = shared_directory / "recalld.sock"
    with foreign_listener(path) as listener:
        done = recalld(tmp_path, *command, "--socket", str(path), stdin=subprocess.DEVNULL)
        assert done.returncode == (2 if command[0] in ("health", "status") else UNAVAILABLE)
        assert "belongs to another user (uid 65534); nothing was sent" in done.stderr
        assert done.stderr.count("\n") == 1
        listener.kill()
        assert listener.stdout is not None
        assert "received b'{" not in listener.stdout.read()


@as_root
def test_the_process_is_checked_even_when_the_socket_seems_to_be_ours(
    shared_directory: Path,
) -> None:
    path = shared_directory / "recalld.sock"
    with foreign_listener(path):
        os.chown(path, 0, 0)
        with pytest.raises(Exit, match="listening process belongs to another user") as raised:
            connect(path, PATIENCE)
        assert raised.value.code == UNAVAILABLE


@as_root
def test_a_foreign_directory_is_refused(shared_directory: Path) -> None:
    os.chown(shared_directory, NOBODY, NOBODY)
    path = shared_directory / "recalld.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with pytest.raises(Exit, match="belongs to another user"):
            connect(path, PATIENCE)


def test_a_directory_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "recalld.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        tmp_path.chmod(0o777)
        with pytest.raises(Exit, match=r"can replace the socket \(mode 0777\).*chmod go-w"):
            connect(path, PATIENCE)
        tmp_path.chmod(0o700)
        link = connect(path, PATIENCE)
        assert link is not None
        link.close()


@as_root
def test_without_peer_credentials_the_files_are_checked_again(shared_directory: Path) -> None:
    """The fallback for systems that do not report the user of the listening process."""

    def no_credentials(_link: socket.socket) -> None:
        return None

    path = shared_directory / "recalld.sock"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as link:
        listener.bind(str(path))
        listener.listen()
        link.connect(str(path))
        daemon_identity.check_process(link, path, no_credentials)
        os.chown(path, NOBODY, NOBODY)
        with pytest.raises(Exit, match="belongs to another user"):
            daemon_identity.check_process(link, path, no_credentials)


# --- directories that cannot be written ------------------------------------------------------


@as_root
def test_a_read_only_file_system_is_exit_code_73(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    script = (
        f"mount -t tmpfs -o ro none {tmp_path}/state &&"
        f" exec {sys.executable} -P -m daemon stdio </dev/null"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env={**os.environ, "RECALLD_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if "unshare" in done.stderr or "mount:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 73
    assert "start.lock: Read-only file system" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "answer",
    [b"nonsense\n", b"[]\n", b"7\n", b'{"result":{}}\n', b'{"result":[]}\n', b'{"error":7}\n'],
)
@pytest.mark.parametrize("command", [["stdio"], ["bank", "list"]])
def test_a_nonsense_peer_is_one_line_and_exit_code_69(
    tmp_path: Path, command: list[str], answer: bytes
) -> None:
    path = tmp_path / "run" / "recalld.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def respond() -> None:
            link, _ = listener.accept()
            with link:
                link.recv(65_536)
                link.sendall(answer)

        with ThreadPoolExecutor(1) as thread:
            responding = thread.submit(respond)
            done = recalld(tmp_path, *command, stdin=subprocess.DEVNULL)
            responding.result(PATIENCE)
    assert done.returncode == UNAVAILABLE, done.stderr
    assert done.stderr.count("\n") == 1
    assert "the daemon at " in done.stderr
