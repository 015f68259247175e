"""`recalld health`, `status` and `stop` against a peer that is not a daemon of ours."""

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.processes import PATIENCE, recalld

NONSENSE = [
    b"",
    b"nonsense\n",
    b"[]\n",
    b"7\n",
    b'"text"\n',
    b"{}\n",
    b'{"jsonrpc":"2.0","id":1,"result":{}}\n',
    b'{"jsonrpc":"2.0","id":1,"result":[]}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{"status":"healthy"}}\n',
    b'{"jsonrpc":"2.0","id":1,"result":{"status":"healthy","version":"1","uptime":1,'
    b'"sessions":7,"database":"connected"}}\n',
    b'{"jsonrpc":"2.0","id":1,"error":null}\n',
    b'{"jsonrpc":"2.0","id":1,"error":"text"}\n',
    b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}\n',
    b"\xff\xfe\n",
    b"[" * 5000 + b"\n",
]


@pytest.mark.parametrize("command", ["health", "status", "stop"])
@pytest.mark.parametrize("answer", NONSENSE, ids=lambda answer: answer[:40].decode("latin-1"))
def test_a_nonsense_answer_is_one_line_and_exit_code_2(
    tmp_path: Path, command: str, answer: bytes
) -> None:
    path = tmp_path / "run" / "recalld.sock"
    path.parent.mkdir(mode=0o700)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "daemon.lock").touch()
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
            done = recalld(tmp_path, command)
            responding.result(PATIENCE)
    assert done.returncode == 2, done.stderr
    assert (done.stdout, done.stderr.count("\n")) == ("", 1)
    assert done.stderr.startswith("recalld: the daemon at ")


def test_without_a_daemon_health_is_exit_code_2_also_as_json(tmp_path: Path) -> None:
    done = recalld(tmp_path, "health", "--json")
    assert done.returncode == 2
    assert json.loads(done.stdout)["status"] == "unreachable"
