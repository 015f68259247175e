"""Minimal stdio client: a server as a child process, read and written with `os.read`, `os.write`.

Benchmarks measure the server, not a client library. Requests are encoded in advance, and responses
are only counted while the clock runs. They are verified afterwards: each id must be answered
exactly once, with the text that was sent. A run that fails this check fails.
"""

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

CHUNK: Final = 1 << 16
LATEST_LEGACY: Final = "2025-11-25"


class WireFault(Exception):
    """The server violated the protocol: no response, a wrong id, or a line that is not JSON."""


def request(identity: int | str, method: str, params: object = None) -> bytes:
    message: dict[str, object] = {"jsonrpc": "2.0", "id": identity, "method": method}
    if params is not None:
        message["params"] = params
    return msgspec.json.encode(message) + b"\n"


def notification(method: str, params: object = None) -> bytes:
    message: dict[str, object] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return msgspec.json.encode(message) + b"\n"


def initialize(identity: int | str = 0, version: str = LATEST_LEGACY) -> bytes:
    client = {"name": "scripts", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    return request(identity, "initialize", params)


INITIALIZED: Final = notification("notifications/initialized")


def echo(identity: int | str, text: str) -> bytes:
    return request(identity, "tools/call", {"name": "echo", "arguments": {"text": text}})


class Child:
    """A server as a child process, with requests over its stdin and stdout."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, log: Path | None = None
    ) -> None:
        with contextlib.ExitStack() as files:
            errors = files.enter_context(log.open("ab")) if log else subprocess.DEVNULL
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **(env or {})},
                bufsize=0,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.to = self.process.stdin.fileno()
        self.out = self.process.stdout.fileno()
        self.rest = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.to, view) :]

    def line(self, seconds: float = 30.0) -> bytes:
        """The next line without its newline; raises `WireFault` after the timeout."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.out], [], [], left)[0]:
                raise WireFault(f"no answer within {seconds:g} s")
            chunk = os.read(self.out, CHUNK)
            if not chunk:
                raise WireFault(f"the server closed its output (exit {self.process.poll()})")
            self.rest += chunk
        line, self.rest = self.rest.split(b"\n", 1)
        return line

    def ask(self, data: bytes, identity: int | str, seconds: float = 30.0) -> dict[str, Any]:
        """Send a request and read until its response; notifications are skipped."""
        self.send(data)
        while True:
            message: dict[str, Any] = msgspec.json.decode(self.line(seconds))
            if message.get("id") == identity and "method" not in message:
                return message

    def hang_up(self) -> None:
        """Close stdin, which tells the server to exit."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    def close(self, seconds: float = 5.0) -> int:
        """Close stdin and return the exit code; kill a server that does not exit in time."""
        self.hang_up()
        if self.process.stdout is not None:
            self.process.stdout.close()
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Answer(msgspec.Struct):
    """The members of an echo response that identify its request."""

    class Result(msgspec.Struct):
        class Text(msgspec.Struct):
            text: str = ""

        content: list[Text] = []

    id: int | str | None = None
    result: Result | None = None
    error: msgspec.Raw = msgspec.Raw()


def check_echoes(received: bytes, first: int, count: int) -> None:
    """Check that every id from `first` on was answered exactly once with its own text."""
    decoder = msgspec.json.Decoder(Answer)
    seen = bytearray(count)
    for line in received.splitlines():
        answer = decoder.decode(line)
        if not isinstance(answer.id, int) or not first <= answer.id < first + count:
            raise WireFault(f"an answer nobody asked for: {line[:200]!r}")
        if seen[answer.id - first]:
            raise WireFault(f"id {answer.id} was answered twice")
        seen[answer.id - first] = 1
        if answer.result is None or not answer.result.content:
            raise WireFault(f"id {answer.id} got no text: {line[:200]!r}")
        if answer.result.content[0].text != text_for(answer.id):
            raise WireFault(f"id {answer.id} got another call's text: {line[:200]!r}")
    if not all(seen):
        raise WireFault(f"{count - sum(seen)} of {count} calls were never answered")


def text_for(identity: int) -> str:
    """The text of an echo call: of ordinary length, different for every id."""
    return f"the quick brown fox jumps over the lazy dog, {identity}"


def echoes(first: int) -> Iterator[bytes]:
    """An endless sequence of encoded echo requests with increasing ids."""
    identity = first
    # One template and two substitutions, so that encoding does not limit the server.
    template = echo(0, text_for(0)).replace(b'"id":0', b'"id":%d').replace(b", 0", b", %d")
    while True:
        yield template % (identity, identity)
        identity += 1


def resident_bytes(pid: int) -> int:
    """The resident set of a process, from procfs."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has no resident set (it has exited)")


def open_descriptors(pid: int) -> int:
    """The number of open descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
