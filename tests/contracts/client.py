"""An MCP client that speaks JSON lines over one connection in one protocol revision.

It supports three transports. `embedded` and `bridged` start a `recalld stdio` process, with and
without `--embedded`; `unix` connects to the daemon's socket. This module does not import recalld.
"""

import itertools
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

TRANSPORTS: Final = ("embedded", "bridged", "unix")
REVISIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
MODERN: Final = "2026-07-28"
#: Revisions that report invalid arguments as an error result, and those with structured results.
RESULT_REFUSALS: Final = frozenset({"2025-11-25", MODERN})
STRUCTURED: Final = frozenset({"2025-06-18", "2025-11-25", MODERN})
EVERY_DIALECT: Final = "hindsight,awareness,recall,harness,native"
COMMAND: Final = str(Path(sys.executable).with_name("recalld"))
TIMEOUT_SECONDS: Final = 30.0

_request_ids: Final = itertools.count(1)
_banks: Final = itertools.count(1)


class Answer(NamedTuple):
    """The response to a tool call: a result or an error, never both."""

    result: dict[str, Any] | None
    error: dict[str, Any] | None

    @property
    def is_error(self) -> bool:
        return bool(self.error is not None or (self.result or {}).get("isError"))

    @property
    def text(self) -> str:
        assert self.result is not None, self.error
        (block,) = self.result["content"]
        assert block["type"] == "text"
        return str(block["text"])

    @property
    def json(self) -> Any:
        assert not self.is_error, self
        return json.loads(self.text)


class Home:
    """A temporary `RECALLD_HOME` directory and the processes started in it."""

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="recalld-", dir="/tmp"))
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("RECALLD_")
        }
        self.env = {
            **inherited,
            "RECALLD_HOME": str(self.path),
            "RECALLD_RATE_LIMIT": "0",
            "RECALLD_DIALECTS": EVERY_DIALECT,
            **(extra or {}),
        }
        self._daemon: subprocess.Popen[bytes] | None = None
        self._log = (self.path / "stderr.log").open("ab")

    @property
    def socket(self) -> Path:
        return self.path / "run" / "recalld.sock"

    def run(self, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [COMMAND, *arguments],
            env=self.env,
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )

    def serve(self, *arguments: str, http: bool = False) -> subprocess.Popen[bytes]:
        """Start a daemon and return when it accepts connections."""
        reading, writing = os.pipe()
        network = () if http else ("--no-http",)
        command = [COMMAND, "serve", *network, "--ready-fd", str(writing), *arguments]
        self._daemon = subprocess.Popen(
            command,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            pass_fds=(writing,),
        )
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], TIMEOUT_SECONDS)
        output = os.read(reading, 16) if ready else b""
        os.close(reading)
        assert output == b"ready\n", (self.path / "stderr.log").read_text()[-2000:]
        return self._daemon

    def child(
        self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [COMMAND, "stdio", *arguments],
            env={**self.env, **(env or {})},
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def close(self) -> None:
        if self.socket.exists():
            self.run("stop")
        if self._daemon is not None:
            try:
                self._daemon.wait(10)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
        self._log.close()
        shutil.rmtree(self.path, ignore_errors=True)


class Client:
    """One connection in one revision."""

    def __init__(
        self, transport: str, revision: str, home: Home, *arguments: str, **attach: Any
    ) -> None:
        """Connect and initialize.

        `arguments` are added to the command line of a stdio process; `attach` are the parameters of
        the `recalld/attach` request on a socket.
        """
        self.transport = transport
        self.revision = revision
        self._child: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._buffer = b""
        if transport == "unix":
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._socket.settimeout(TIMEOUT_SECONDS)
            self._socket.connect(str(home.socket))
            if attach:
                answer = self.exchange("recalld/attach", {"version": "0.0.1", **attach})
                assert "result" in answer, answer
        else:
            embedded = ("--embedded",) if transport == "embedded" else ()
            self._child = home.child(*embedded, *arguments)
        self.handshake()

    @classmethod
    def from_process(cls, child: subprocess.Popen[bytes], revision: str = "2025-11-25") -> "Client":
        """Use a `recalld stdio` process that is already running."""
        client = cls.__new__(cls)
        client.transport, client.revision = "child", revision
        client._child, client._socket, client._buffer = child, None, b""
        client.handshake()
        return client

    def handshake(self) -> None:
        if self.revision == MODERN:
            return
        hello = {
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": {"name": "contract", "version": "1.0"},
        }
        answer = self.exchange("initialize", hello)
        assert answer["result"]["protocolVersion"] == self.revision, answer
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request in this connection's revision and return the whole response."""
        given = dict(params or {})
        if self.revision == MODERN:
            given["_meta"] = self.meta()
        return self.exchange(method, given)

    def tools(self) -> dict[str, dict[str, Any]]:
        return {tool["name"]: tool for tool in self.request("tools/list")["result"]["tools"]}

    def call(self, tool: str, /, **arguments: Any) -> Answer:
        return self.call_with(tool, arguments)

    def call_with(self, tool: str, arguments: Any) -> Answer:
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        return Answer(answer.get("result"), answer.get("error"))

    def raw_call(self, tool: str, arguments: dict[str, Any], escape: str) -> dict[str, Any]:
        """Call a tool, with `ESCAPE` replaced by a JSON escape that `json.dumps` never writes."""
        number = next(_request_ids)
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.revision == MODERN:
            params["_meta"] = self.meta()
        message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
        self.send_bytes(json.dumps(message).replace("ESCAPE", escape).encode() + b"\n")
        answer: dict[str, Any] = json.loads(self.line())
        return answer

    @staticmethod
    def meta() -> dict[str, Any]:
        return {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "contract", "version": "1.0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }

    def exchange(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = next(_request_ids)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        while True:
            answer: dict[str, Any] = json.loads(self.line())
            if answer.get("id") == number:
                return answer

    def send(self, message: Any) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def send_bytes(self, data: bytes) -> None:
        if self._socket is not None:
            self._socket.sendall(data)
            return
        assert self._child is not None and self._child.stdin is not None
        self._child.stdin.write(data)
        self._child.stdin.flush()

    def _handle(self) -> int:
        if self._socket is not None:
            return self._socket.fileno()
        assert self._child is not None and self._child.stdout is not None
        return self._child.stdout.fileno()

    def line(self) -> bytes:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while b"\n" not in self._buffer:
            handle = self._handle()
            ready, _, _ = select.select([handle], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, "no answer"
            chunk = os.read(handle, 1 << 20)
            assert chunk, "the connection ended"
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._child is not None:
            assert self._child.stdin is not None and self._child.stdout is not None
            self._child.stdin.close()
            try:
                self._child.wait(10)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
            self._child.stdout.close()


OpenClient = Callable[..., Client]


def connect(home: Home, transport: str, revision: str = "2025-11-25", bank: str = "") -> Client:
    """Open a client; unless `bank` is given, its default bank is new."""
    bank = bank or f"bank-{next(_banks)}"
    if transport == "unix":
        return Client(transport, revision, home, bank=bank)
    return Client(transport, revision, home, "--bank", bank)
