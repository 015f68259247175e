"""Executes a request of `recalld bank` or `recalld source`, in the daemon or in this process.

A running daemon executes it, by a method that only processes of the same user can call. Without a
daemon it is executed in this process, under the locks that a starting daemon takes. Standard
library only: the engine is imported only when the request is executed here.
"""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from daemon.bridge import attach
from daemon.config import Settings
from daemon.exit_codes import INTERNAL, LOCKED, UNAVAILABLE, Exit

Request = dict[str, Any]
#: Called with the finished steps, the total (0 if it is unknown) and a message.
ShowProgress = Callable[[int, int, str], None]
#: Executes a request in this process; `daemon.cli` provides it.
LocalRunner = Callable[[Settings, Request, ShowProgress], dict[str, Any]]

CONNECT_SECONDS: Final = 5.0
#: A command may take hours. The daemon is pinged this often, and has this long to respond.
PING_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 60.0


def execute(
    command: str,
    request: Request,
    settings: Settings,
    run_locally: LocalRunner,
    show: ShowProgress,
) -> dict[str, Any]:
    """Return the result of a request; `command` is `bank` or `source`."""
    link = attach.connect(settings.socket, CONNECT_SECONDS)
    if link is None:
        # A client that starts a daemon meanwhile waits for this lock instead of failing.
        lock = _lock(settings, f"(recalld {command} {request['verb']}) has the data directory")
        try:
            link = attach.connect(settings.socket, CONNECT_SECONDS)
            if link is None:
                return run_locally(settings, request, show)
        finally:
            os.close(lock)
    with link:
        return execute_in_daemon(link, command, request, settings, show)


def _lock(settings: Settings, activity: str) -> int:
    try:
        return attach.acquire_start_lock(settings, activity)
    except Exit as exit:
        # For a bridge the daemon is unavailable; here another process has the data directory.
        raise Exit(LOCKED if exit.code == UNAVAILABLE else exit.code, exit.message) from None


def execute_in_daemon(
    link: socket.socket,
    command: str,
    request: Request,
    settings: Settings,
    show: ShowProgress,
) -> dict[str, Any]:
    """Send a request and wait for its result, as long as the daemon answers pings."""
    meta = {"progressToken": 1}
    params = {"data": str(settings.directories.data), "do": request, "_meta": meta}
    try:
        _send(link, 1, f"recalld/{command}", params)
        for frame in frames(link):
            if frame.get("method") == "notifications/progress":
                params = frame["params"]
                done, total = int(params["progress"]), int(params.get("total", 0))
                show(done, total, str(params.get("message", "")))
            elif frame.get("id") != "ping" and "method" not in frame:
                return _result(frame, settings)
    except (OSError, ValueError) as error:
        reason = str(error)
    else:
        reason = "it ended before it was done"
    raise Exit(UNAVAILABLE, f"the daemon at {settings.socket} does not answer: {reason}")


def _result(frame: dict[str, Any], settings: Settings) -> dict[str, Any]:
    if "result" in frame:
        result: Any = frame["result"]
        if not isinstance(result, dict):
            raise ValueError("its result is not a JSON object")
        return cast("dict[str, Any]", result)
    if not isinstance(frame.get("error"), dict):
        raise ValueError("it sent neither a result nor an error")  # noqa: TRY004
    error: dict[str, Any] = frame["error"]
    data: dict[str, Any] = error.get("data", {})
    if "exit" in data:
        raise Exit(data["exit"], data["details"])
    if error.get("code") == -32601:
        raise Exit(
            UNAVAILABLE,
            f"the daemon at {settings.socket} is older than this command; `recalld stop` ends it",
        )
    code = INTERNAL if "errorId" in data else UNAVAILABLE
    raise Exit(code, f"the daemon at {settings.socket} refused: {error.get('message')}")


def _send(link: socket.socket, id: int | str, method: str, params: Request) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    link.sendall(json.dumps(message).encode() + b"\n")


def frames(
    link: socket.socket, ping: float = PING_SECONDS, silence: float = SILENCE_SECONDS
) -> Iterator[dict[str, Any]]:
    """Yield the messages of the daemon; TimeoutError when it does not even answer pings."""
    link.settimeout(ping)
    waiting = b""
    last_heard = time.monotonic()
    while True:
        try:
            chunk = link.recv(1 << 20)
        except TimeoutError:
            if time.monotonic() - last_heard > silence:
                raise TimeoutError(f"nothing in {silence:g} s") from None
            _send(link, "ping", "ping", {})
            continue
        if not chunk:
            return
        last_heard = time.monotonic()
        *lines, waiting = (waiting + chunk).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError("it sent a line that is not a JSON object")  # noqa: TRY004
            yield cast("dict[str, Any]", message)
