"""Starts an entry exactly as a client would, and completes the MCP handshake with it.

A stdio entry runs as a child process. The handshake is done in both eras: `initialize` of
2025-11-25, and `server/discover` of 2026-07-28. A URL gets the same messages over HTTP.
"""

import contextlib
import json
import os
import select
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
SECONDS: Final = 30.0
_INFO: Final = {"name": "recalld-setup", "version": "1"}


class Proof(Struct, frozen=True, kw_only=True):
    """The result of a handshake; `fault` is empty if it succeeded."""

    seconds: float = 0.0
    tools: int = 0
    fault: str = ""


class _Fault(Exception):
    pass


def prove(entry: Mapping[str, Any], variables: Mapping[str, str], folder: Path) -> Proof:
    """Start an entry as it is written in a file of a client, and list its tools."""
    url = entry.get("url") or entry.get("uri") or entry.get("serverUrl") or entry.get("httpUrl")
    began = time.monotonic()
    try:
        tools = _ask_url(str(url)) if url else _ask_command(entry, variables, folder)
    except _Fault as fault:
        return Proof(fault=str(fault))
    return Proof(seconds=time.monotonic() - began, tools=tools)


def command_of(entry: Mapping[str, Any]) -> list[str]:
    """The words that a client executes for a stdio entry of any shape."""
    command = entry.get("command", entry.get("cmd", ""))
    words = cast("list[Any]", command) if isinstance(command, list) else [command]
    return [str(word) for word in (*words, *entry.get("args", []))]


def _messages() -> list[dict[str, Any]]:
    modern = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": _INFO,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    hello = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": _INFO}
    return [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": modern}},
    ]


def _ask_command(entry: Mapping[str, Any], variables: Mapping[str, str], folder: Path) -> int:
    words = command_of(entry)
    extra: Mapping[Any, Any] = (
        entry.get("env") or entry.get("envs") or entry.get("environment") or {}
    )
    try:
        process = subprocess.Popen(
            words,
            env={**variables, **{str(name): str(value) for name, value in extra.items()}},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except (OSError, ValueError) as error:
        raise _Fault(f"{words[0]} cannot be started: {error}") from None
    with process:
        assert process.stdin is not None
        try:
            with contextlib.suppress(BrokenPipeError):
                for message in _messages():
                    process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
            answers = _collect(process, 3)
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5.0)
        finally:
            if process.poll() is None:
                process.kill()
    return _count(answers)


def _collect(process: "subprocess.Popen[bytes]", wanted: int) -> dict[Any, Any]:
    assert process.stdout is not None and process.stderr is not None
    deadline = time.monotonic() + SECONDS
    answers: dict[Any, Any] = {}
    data = b""
    while len(answers) < wanted:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            raise _Fault(f"no answer within {SECONDS:g} s")
        chunk = os.read(process.stdout.fileno(), 65_536)
        if not chunk:
            words = process.stderr.read(2000).decode(errors="replace").strip().splitlines()
            raise _Fault(f"the process ended: {words[-1] if words else 'no message'}")
        data += chunk
        *lines, data = data.split(b"\n")
        for line in lines:
            try:
                answer: Any = json.loads(line)
            except ValueError:
                raise _Fault("the output is not MCP") from None
            if isinstance(answer, dict) and "id" in answer:
                answers[answer["id"]] = answer
    return answers


def _ask_url(url: str) -> int:
    answers: dict[Any, Any] = {}
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
    }
    for message in _messages():
        if message["method"] == "server/discover":
            headers = {
                "content-type": "application/json",
                "accept": "application/json, text/event-stream",
                "mcp-protocol-version": MODERN,
                "mcp-method": "server/discover",
            }
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                body = response.read()
                session = response.headers.get("mcp-session-id")
        except urllib.error.HTTPError as error:
            with error:
                raise _Fault(f"{url} answered with status {error.code}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise _Fault(f"{url} does not answer: {reason}; start `recalld serve`") from None
        if session:
            headers = {**headers, "mcp-session-id": session, "mcp-protocol-version": LEGACY}
        if "id" in message:
            try:
                answers[message["id"]] = json.loads(body)
            except ValueError:
                raise _Fault(f"{url} does not answer as an MCP server does") from None
    return _count(answers)


def _count(answers: dict[Any, Any]) -> int:
    try:
        for number in (1, 2, 3):
            if "error" in answers[number]:
                raise _Fault(f"the server refused: {answers[number]['error']['message']}")
        name = answers[1]["result"]["serverInfo"]["name"]
        if name != "recalld":
            raise _Fault(f"the server is {name!r}, not recalld")
        return len(answers[2]["result"]["tools"])
    except (KeyError, TypeError):
        raise _Fault("the server does not answer as recalld does") from None
