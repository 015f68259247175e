"""`recalld bank`: looking after one's data, with a daemon running or without.

What is asked becomes a verb of `daemon.memory.bank_administration`, as JSON. When a daemon listens
on the socket it is asked, by a method that exists for the owner's own processes only; when none
does, the verb is done in this process, under the locks a starting daemon would take. Standard
library only: the engine is imported when it is needed here, and not by who merely asks.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from daemon.bridge import attach
from daemon.commands import bank_report
from daemon.commands.output import say
from daemon.config import Settings
from daemon.exit_codes import (
    CANNOT_CREATE,
    DEGRADED,
    INTERNAL,
    LOCKED,
    OK,
    UNAVAILABLE,
    USAGE,
    Exit,
)

if TYPE_CHECKING:
    import argparse

Asked = dict[str, Any]
Progress = Callable[[int, int], None]
#: Does a verb in this process; handed in by `daemon.cli`, which knows how.
Alone = Callable[[Settings, Asked, Progress], dict[str, Any]]

CONNECT_SECONDS: Final = 5.0
#: A verb may take hours. Whether the daemon still lives is asked this often, and it has this long.
PING_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 60.0

FOR_GOOD: Final = {
    "erase": (
        "Erasing leaves no copy of them in recalld's files: not in the bank, its indexes or its"
        " log; backups that hold them are deleted whole. Exports and copies made elsewhere are out"
        " of its reach."
    ),
    "delete": "The bank goes with all it holds and with its backups. Exports of it stay.",
}


def add_arguments(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)

    def verb(name: str, about: str, *, bank: bool = True) -> "argparse.ArgumentParser":
        added = verbs.add_parser(name, help=about, description=about)
        if bank:
            added.add_argument("bank", metavar="BANK")
        added.add_argument("--json", action="store_true", help="print JSON")
        added.add_argument("--socket", metavar="PATH", help="the daemon's socket")
        return added

    verb("list", "names, items, sizes, quotas and ages of all banks", bank=False)
    create = verb("create", "make an empty bank")
    create.add_argument("--quota", metavar="BYTES", help="how large it may grow")
    verb("rename", "give a bank another name").add_argument("new", metavar="NEW")
    quota = verb("quota", "bound the size of a bank, or take the bound away")
    quota.add_argument("quota", metavar="BYTES|none")
    delete = verb("delete", "delete a bank with all it holds and its backups")
    verb("backup", "make a verified copy of a bank; the last five are kept")
    verb("backups", "the backups there are")
    restore = verb("restore", "put a backup in the bank's place, which is backed up first")
    restore.add_argument("backup", metavar="BACKUP")
    export = verb("export", "write a bank to a file of JSON lines")
    export.add_argument("path", metavar="FILE")
    export.add_argument("--force", action="store_true", help="replace FILE if it exists")
    taking = verb("import", "take what an exported file holds into a bank; made if need be")
    taking.add_argument("path", metavar="FILE")
    forget = verb("forget", "hide items; this can be undone for a day")
    undo = verb("undo", "bring back what was forgotten")
    undo.add_argument("undo", metavar="TOKEN", help="as `forget` printed it")
    erase = verb("erase", "leave no copy of items or documents in any file of recalld's")
    for those in (forget, erase):
        those.add_argument("ids", metavar="ID", nargs="+")
    for dangerous in (erase, delete):
        dangerous.add_argument("--yes", action="store_true", help="do not ask")
    check = verb("check", "look at every row, word and vector; exit code 1 when something is wrong")
    check.add_argument("--repair", action="store_true", help="mend it, and look again")
    verb("rebuild", "make words and vectors again from the rows")


def run(chosen: SimpleNamespace, settings: Settings, alone: Alone) -> int:
    """Do one verb and print what came of it; the exit code."""
    asked = _asked(chosen, settings)
    if chosen.verb in FOR_GOOD and not chosen.yes and not _is_confirmed(asked):
        sys.stderr.write("recalld: nothing was changed\n")
        return DEGRADED
    shown = bank_report.Shown(chosen.verb, is_shown=sys.stderr.isatty() and not chosen.json)
    try:
        done = _done(asked, settings, alone, shown.count)
    finally:
        shown.clear()
    if chosen.verb == "export":
        _need_there(asked["path"], settings)
    out = [json.dumps(done)] if chosen.json else bank_report.lines(chosen.verb, done)
    say(out)
    return DEGRADED if done.get("problems") else OK


# --- what is asked ---------------------------------------------------------------------------


def _asked(chosen: SimpleNamespace, settings: Settings) -> Asked:
    given: dict[str, Any] = vars(chosen)
    fields = ("verb", "bank", "new", "quota", "backup", "path", "undo", "ids", "repair")
    asked = {name: given[name] for name in fields if given.get(name) is not None}
    if "quota" in asked:
        asked["quota"] = _quota(asked["quota"])
    if "path" in asked:
        # The daemon runs elsewhere: what the caller calls `notes.jsonl` is here.
        path = Path(os.path.abspath(asked["path"]))  # noqa: PTH100  (without following links)
        check = _check_target if chosen.verb == "export" else _check_source
        check(path, settings, is_forced=given.get("force", False))
        asked["path"] = str(path)
    return asked


def _quota(text: str) -> int | None:
    if text == "none":
        return None
    if not (text.isascii() and text.isdigit()) or not 0 < int(text) < 2**63:
        raise Exit(USAGE, f"{text!r} is not a number of bytes; say one, from 1 on, or none")
    return int(text)


def _check_target(path: Path, settings: Settings, *, is_forced: bool) -> None:
    data = settings.directories.data.resolve()
    if path.is_dir():
        raise Exit(USAGE, f"{path}: is a directory; name a file in it")
    if path.parent.resolve().is_relative_to(data):
        raise Exit(USAGE, f"{path}: lies among recalld's own files; name one elsewhere")
    if not path.parent.is_dir():
        raise Exit(CANNOT_CREATE, f"{path}: there is no directory {path.parent}")
    if os.path.lexists(path) and not is_forced:
        raise Exit(USAGE, f"{path}: exists already; --force replaces it")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise Exit(CANNOT_CREATE, f"{path}: {path.parent} may not be written")


def _check_source(path: Path, _settings: Settings, *, is_forced: bool) -> None:
    try:
        if not path.is_file():
            missing = "is not a file" if path.exists() else "there is no such file"
            raise Exit(USAGE, f"{path}: {missing}; name one that `recalld bank export` wrote")
        path.open("rb").close()
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path}: {error.strerror}") from None


def _need_there(path: str, settings: Settings) -> None:
    """A daemon in a container or a sandbox may see other files under the same names."""
    if not Path(path).is_file():
        raise Exit(
            CANNOT_CREATE,
            f"{path}: the daemon at {settings.socket} wrote it where this process cannot see it;"
            " name a file that both see, or stop the daemon first",
        )


def _is_confirmed(asked: Asked) -> bool:
    verb = asked["verb"]
    if not sys.stdin.isatty():
        raise Exit(USAGE, f"{verb} cannot be undone; say --yes, since there is nobody to ask here")
    count = len(asked.get("ids", ()))
    things = f"{count} thing{'s' * (count != 1)} in " if count else ""
    question = f"{verb.capitalize()} {things}bank {asked['bank']!r} for good? [y/N] "
    sys.stderr.write(f"{FOR_GOOD[verb]}\n{question}")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


# --- who does it -----------------------------------------------------------------------------


def _done(asked: Asked, settings: Settings, alone: Alone, count: Progress) -> dict[str, Any]:
    link = attach.connect(settings.socket, CONNECT_SECONDS)
    if link is None:
        # A client that starts a daemon meanwhile waits at this lock, rather than failing.
        lock = _hold(settings, f"(recalld bank {asked['verb']}) has the data directory")
        try:
            link = attach.connect(settings.socket, CONNECT_SECONDS)
            if link is None:
                return alone(settings, asked, count)
        finally:
            os.close(lock)
    with link:
        return _told(link, asked, settings, count)


def _hold(settings: Settings, why: str) -> int:
    try:
        return attach.hold_start(settings, why)
    except Exit as exit:
        # To a bridge there is no daemon to be had; to us somebody is in the way.
        raise Exit(LOCKED if exit.code == UNAVAILABLE else exit.code, exit.message) from None


def _told(link: socket.socket, asked: Asked, settings: Settings, count: Progress) -> dict[str, Any]:
    """The daemon's answer, however long it takes, as long as it lives."""
    meta = {"progressToken": 1}
    params = {"data": str(settings.directories.data), "do": asked, "_meta": meta}
    try:
        _send(link, 1, "recalld/bank", params)
        for frame in frames(link):
            if frame.get("method") == "notifications/progress":
                told = frame["params"]
                count(int(told["progress"]), int(told.get("total", 0)))
            elif frame.get("id") != "ping" and "method" not in frame:
                return _result(frame, settings)
    except (OSError, ValueError) as error:
        reason = str(error)
    else:
        reason = "it ended before it was done"
    raise Exit(UNAVAILABLE, f"the daemon at {settings.socket} does not answer: {reason}")


def _result(frame: dict[str, Any], settings: Settings) -> dict[str, Any]:
    if "result" in frame:
        result: dict[str, Any] = frame["result"]
        return result
    error = frame.get("error", {})
    data = error.get("data", {})
    if "exit" in data:
        raise Exit(data["exit"], data["details"])
    if error.get("code") == -32601:
        raise Exit(
            UNAVAILABLE,
            f"the daemon at {settings.socket} is older than this command; `recalld stop` ends it",
        )
    code = INTERNAL if "errorId" in data else UNAVAILABLE
    raise Exit(code, f"the daemon at {settings.socket} refused: {error.get('message')}")


def _send(link: socket.socket, id: int | str, method: str, params: Asked) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    link.sendall(json.dumps(message).encode() + b"\n")


def frames(
    link: socket.socket, ping: float = PING_SECONDS, silence: float = SILENCE_SECONDS
) -> Iterator[dict[str, Any]]:
    """What the daemon says, until it has said nothing for too long, not even to a ping."""
    link.settimeout(ping)
    waiting = b""
    heard = time.monotonic()
    while True:
        try:
            chunk = link.recv(1 << 20)
        except TimeoutError:
            if time.monotonic() - heard > silence:
                raise TimeoutError(f"nothing in {silence:g} s") from None
            _send(link, "ping", "ping", {})
            continue
        if not chunk:
            return
        heard = time.monotonic()
        *lines, waiting = (waiting + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)
