"""Commands that query a running daemon: `recalld health`, `status` and `stop`.

A monitoring probe runs every few seconds, so this module starts fast: standard library only.
"""

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any, Final

from daemon.bridge import attach
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import DEGRADED, OK, UNREACHABLE, Exit

ANSWER_SECONDS: Final = 5.0
STOP_SECONDS: Final = 10.0


def ask(path: Path, method: str) -> dict[str, Any]:
    """Send one request and return its result; `Exit(UNREACHABLE)` when there is none."""
    try:
        link = attach.connect(path, ANSWER_SECONDS)
    except Exit as exit:
        raise Exit(UNREACHABLE, exit.message) from None
    if link is None:
        raise Exit(UNREACHABLE, f"no daemon is listening at {path}")
    with link:
        try:
            request = {"jsonrpc": "2.0", "id": 1, "method": method}
            link.sendall(json.dumps(request).encode() + b"\n")
            line = b""
            while not line.endswith(b"\n"):
                chunk = link.recv(65_536)
                if not chunk:
                    break
                line += chunk
            answer = json.loads(line)
        except (OSError, ValueError) as error:
            raise Exit(UNREACHABLE, f"the daemon at {path} does not answer: {error}") from None
    if "result" not in answer:
        message = answer.get("error", {}).get("message", "no result")
        raise Exit(UNREACHABLE, f"the daemon at {path} refused: {message}")
    result: dict[str, Any] = answer["result"]
    return result


def health(settings: Settings, *, as_json: bool) -> int:
    """Print the health of the daemon; exit code 0 healthy, 1 degraded, 2 unreachable."""
    try:
        found = ask(settings.socket, "health/check")
    except Exit as exit:
        if as_json:
            _print(json.dumps({"status": "unreachable", "details": exit.message}))
            return exit.code
        raise
    if as_json:
        _print(json.dumps(found))
    else:
        _print(
            f"{found['status']}: recalld {found['version']}, up {found['uptime']} s, "
            f"{found['sessions']['active']} of {found['sessions']['total']} sessions active, "
            f"database {found['database']}"
        )
        for reason in found.get("degraded", []):
            _print(f"  {reason}")
    return OK if found["status"] == "healthy" else DEGRADED


def status(settings: Settings, *, as_json: bool) -> int:
    """Print the address, connections and sessions of the daemon."""
    found = ask(settings.socket, "recalld/status")
    if as_json:
        _print(json.dumps(found))
        return OK
    _print(f"recalld {found['version']}, pid {found['pid']}, up {found['uptime']} s")
    _print(f"  socket       {found['socket']}")
    _print(f"  data         {found['data']}")
    _print(f"  connections  {found['connections']}, {found['inFlight']} calls in flight")
    sessions = found["sessions"]
    _print(f"  sessions     {sessions['total']}, {sessions['active']} active")
    return OK


def stop(settings: Settings) -> int:
    """Stop the daemon and wait until it has released the data directory."""
    found = ask(settings.socket, "recalld/stop")
    deadline = time.monotonic() + STOP_SECONDS
    lock = os.open(settings.lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    message = f"pid {found['pid']} has not exited after {STOP_SECONDS:g} s"
                    raise Exit(UNREACHABLE, message) from None
                time.sleep(0.01)
    finally:
        os.close(lock)
    _print(f"recalld: pid {found['pid']} stopped")
    return OK


def _print(line: str) -> None:
    print_lines((line,))
