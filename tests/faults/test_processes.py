"""Many clients, killed daemons, simultaneous starts and clients that never read.

Short versions of the runs of `scripts/soak.py wire`.
"""

import os
import signal
import subprocess
import sys
import time

import pytest

from scripts.kit import stdio_client
from scripts.kit.duplex import Duplex
from scripts.kit.recalld import alive, fresh_home, gone
from scripts.soaks import wire

pytestmark = [pytest.mark.faults, pytest.mark.serial]


def test_many_clients_each_get_every_response_exactly_once() -> None:
    verdict = wire.crowd(clients=32, window=8, seconds=3.0)
    assert verdict.faults == []


def test_bridges_survive_daemon_kills_and_answer_every_call() -> None:
    verdict = wire.kills(bridges=3, seconds=5.0, every=2.0)
    assert verdict.faults == []


def test_bridges_started_at_once_share_one_daemon() -> None:
    verdict = wire.stampede(bridges=10, rounds=1)
    assert verdict.faults == []


def test_clients_that_never_read_neither_use_memory_nor_delay_others() -> None:
    verdict = wire.stalled_readers(clients=20, seconds=2.0)
    assert verdict.faults == []


def test_short_connections_leak_no_memory_and_no_descriptors() -> None:
    verdict = wire.short_connections(visits=200)
    assert verdict.faults == []


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "bridged"])
def test_a_client_that_never_reads_stderr_is_still_answered(embedded: bool) -> None:
    with (
        fresh_home() as home,
        subprocess.Popen(
            home.stdio(embedded=embedded),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **home.env},
            bufsize=0,
        ) as server,
    ):
        assert server.stdin is not None
        assert server.stdout is not None
        answers: list[bytes] = []
        duplex = Duplex(server.stdout.fileno(), server.stdin.fileno(), answers.append)
        # Each call logs at least one line on stderr; together they exceed the capacity of a pipe.
        frames = [stdio_client.initialize(), stdio_client.INITIALIZED]
        unknown = {"name": "nowhere"}
        printing = {"name": "print", "arguments": {"text": "x" * 2_000}}
        frames += [stdio_client.request(each, "tools/call", unknown) for each in range(1, 1_001)]
        frames += [
            stdio_client.request(each, "tools/call", printing) for each in range(1_001, 1_101)
        ]
        try:
            duplex.exchange(b"".join(frames), lambda: len(answers) >= 1_101, 15.0)
            server.stdin.close()
            assert server.wait(5) == 0
        finally:
            server.kill()


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "bridged"])
def test_the_server_exits_cleanly_when_the_client_closes_stdout(embedded: bool) -> None:
    with (
        fresh_home() as home,
        stdio_client.Child(home.stdio(embedded=embedded), home.env, home.log) as child,
    ):
        child.ask(stdio_client.initialize(), 0)
        assert child.process.stdout is not None
        child.process.stdout.close()
        child.send(stdio_client.INITIALIZED + stdio_client.echo(1, "to nobody"))
        assert child.process.wait(5) == 0
        assert "Traceback" not in home.last_words()


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "bridged"])
def test_the_server_exits_when_the_client_dies_and_its_pipe_stays_open(embedded: bool) -> None:
    """If another child of the client has inherited the pipe, the server sees no end of file."""
    code = (
        "import subprocess, sys\n"
        "server = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)\n"
        "print(server.pid, file=sys.stderr, flush=True)\n"
        "server.wait()\n"
    )
    with (
        fresh_home() as home,
        subprocess.Popen(
            [sys.executable, "-c", code, *home.stdio(embedded=embedded)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **home.env},
            bufsize=0,
        ) as client,
    ):
        assert client.stdin is not None
        assert client.stdout is not None
        assert client.stderr is not None
        server = int(client.stderr.readline())
        client.stdin.write(stdio_client.initialize())
        assert client.stdout.readline().startswith(b'{"jsonrpc":"2.0","id":0,')
        client.kill()
        client.wait()
        try:
            assert gone(server, 6.0)
        finally:
            if alive(server):
                os.kill(server, signal.SIGKILL)


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "bridged"])
def test_signals_during_shutdown_do_not_change_the_exit_code(embedded: bool) -> None:
    """Old clients close stdin and send SIGTERM at once."""
    with (
        fresh_home() as home,
        stdio_client.Child(home.stdio(embedded=embedded), home.env, home.log) as child,
    ):
        child.ask(stdio_client.initialize(), 0)
        child.hang_up()
        deadline = time.monotonic() + 5.0
        while child.process.poll() is None and time.monotonic() < deadline:
            child.process.send_signal(signal.SIGTERM)
            time.sleep(0.001)
        assert child.process.returncode == 0


def test_the_server_exits_cleanly_when_the_client_leaves_during_searches() -> None:
    """A native library computes embeddings in threads, which an exit must not interrupt."""
    with (
        fresh_home() as home,
        stdio_client.Child(home.stdio(embedded=True, fixtures=False), home.env, home.log) as child,
    ):
        child.ask(stdio_client.initialize(), 0)
        memory = {"bank_id": "default", "content": "a fact", "context": "x"}
        putting = {"name": "hindsight_put", "arguments": memory}
        assert "result" in child.ask(stdio_client.request(1, "tools/call", putting), 1)
        question = {"semantic_query": "words " * 4_000}
        asking = {"name": "awareness_recall", "arguments": question}
        child.send(
            b"".join(stdio_client.request(each, "tools/call", asking) for each in range(2, 40))
        )
        child.hang_up()
        assert child.process.wait(5) == 0
