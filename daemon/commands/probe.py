"""Commands that query a running daemon: `recalld health`, `status` and `stop`.

A monitoring probe runs every few seconds, so this module starts fast: standard library only.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from daemon.bridge import attach
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import DEGRADED, OK, UNREACHABLE, Exit

ANSWER_SECONDS: Final = 5.0
STOP_SECONDS: Final = 10.0
MAX_ANSWER_BYTES: Final = 1024 * 1024


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
            while not line.endswith(b"\n") and len(line) <= MAX_ANSWER_BYTES:
                chunk = link.recv(65_536)
                if not chunk:
                    break
                line += chunk
            answer: Any = json.loads(line)
        except (OSError, ValueError, RecursionError) as error:
            raise Exit(UNREACHABLE, f"the daemon at {path} does not answer: {error}") from None
    try:
        if "error" in answer:
            message = f"the daemon at {path} refused: {answer['error']['message']}"
            raise Exit(UNREACHABLE, message)
        result: Any = answer["result"]
        if not isinstance(result, dict):
            raise _not_recalld(path)
    except (KeyError, TypeError):
        raise _not_recalld(path) from None
    return cast("dict[str, Any]", result)


def health(settings: Settings, *, as_json: bool) -> int:
    """Print the health of the daemon; exit code 0 healthy, 1 degraded, 2 unreachable."""
    try:
        found = ask(settings.socket, "health/check")
        lines = _render(settings, found, _health_lines)
    except Exit as exit:
        if as_json:
            print_lines([json.dumps({"status": "unreachable", "details": exit.message})])
            return exit.code
        raise
    print_lines([json.dumps(found)] if as_json else lines)
    return OK if found["status"] == "healthy" else DEGRADED


def status(settings: Settings, *, as_json: bool) -> int:
    """Print the address, connections and sessions of the daemon."""
    found = ask(settings.socket, "recalld/status")
    lines = _render(settings, found, _status_lines)
    print_lines([json.dumps(found)] if as_json else lines)
    return OK


def stop(settings: Settings) -> int:
    """Stop the daemon and wait until it has released the data directory."""
    found = ask(settings.socket, "recalld/stop")
    (pid,) = _render(settings, found, lambda found: [str(found["pid"])])
    deadline = time.monotonic() + STOP_SECONDS
    lock = os.open(settings.lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() > deadline:
                    message = f"pid {pid} has not exited after {STOP_SECONDS:g} s"
                    raise Exit(UNREACHABLE, message) from None
                time.sleep(0.01)
    finally:
        os.close(lock)
    print_lines([f"recalld: pid {pid} stopped"])
    return OK


def _render(
    settings: Settings, found: dict[str, Any], render: Callable[[dict[str, Any]], list[str]]
) -> list[str]:
    """Format a result; `Exit` when it is not the result of a recalld daemon."""
    try:
        return render(found)
    except (KeyError, TypeError):
        raise _not_recalld(settings.socket) from None


def _health_lines(found: dict[str, Any]) -> list[str]:
    sessions = found["sessions"]
    summary = (
        f"{found['status']}: recalld {found['version']}, up {found['uptime']} s, "
        f"{sessions['active']} of {sessions['total']} sessions active, "
        f"database {found['database']}"
    )
    pending = found.get("pendingVectors", 0)
    waiting = [f"  {pending} vectors are pending; until then these match by keyword only"]
    degraded: list[str] = [f"  {reason}" for reason in found.get("degraded", [])]
    return [summary, *degraded, *(waiting if pending else [])]


def _status_lines(found: dict[str, Any]) -> list[str]:
    sessions = found["sessions"]
    rows = [
        ("socket", found["socket"]),
        ("http", found.get("http") or "off (`recalld serve` turns it on)"),
        ("data", found["data"]),
        ("config", found.get("config")),
        ("log", found.get("log") or "stderr of `recalld serve`"),
        ("connections", f"{found['connections']}, {found['inFlight']} calls in flight"),
        ("sessions", f"{sessions['total']}, {sessions['active']} active"),
        ("pending", f"{found.get('pendingVectors', 0)} vectors"),
    ]
    lines = [f"recalld {found['version']}, pid {found['pid']}, up {found['uptime']} s"]
    lines += [f"  {name:12} {value}" for name, value in rows if value is not None]
    clients: list[dict[str, Any]] = found.get("clients", [])
    if clients:
        lines.append(f"  clients      {len(clients)}")
    for client in clients:
        name = " ".join(str(part) for part in (client["client"], client["version"]) if part)
        lines.append(
            f"    {name or 'unnamed'}  bank {client['bank']}"
            f"  dialects {client['dialects'] or 'all'}"
            f"{'  over HTTP' if client.get('transport') == 'http' else ''}"
        )
    return lines


def _not_recalld(path: Path) -> Exit:
    return Exit(UNREACHABLE, f"the daemon at {path} does not answer as recalld does")
