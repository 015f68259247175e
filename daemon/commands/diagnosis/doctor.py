"""`recalld doctor`: checks the installation and names a remedy for each problem.

Every check is a function that yields findings. A check changes nothing and opens no database. The
check of client entries starts them, which starts a daemon if none runs.
"""

import argparse
import fcntl
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

from daemon.commands.diagnosis.storage import server_findings
from daemon.commands.diagnosis.versions import versions
from daemon.commands.output import print_lines
from daemon.commands.probe import ask
from daemon.config import Settings
from daemon.config.directories import LONGEST_SOCKET_PATH
from daemon.exit_codes import DEGRADED, OK, Exit
from daemon.version import VERSION

GIB: Final = 1024**3
LOW_SPACE_BYTES: Final = GIB
CLIENT_SECONDS: Final = 120.0
LARGE_LOG_BYTES: Final = 64 * 1024 * 1024
#: The import names that recalld uses. Another distribution with one of them damages it.
IMPORT_NAMES: Final = ("daemon", "store", "protocol", "conformance")
#: recalld was written after this time; an earlier clock is wrong.
EARLIEST: Final = 1_790_000_000
DAY: Final = 86_400
#: The remedy for each reason of a degraded daemon, as docs/operations.md has them.
REMEDIES: Final = {
    "directory-missing": "restore it and restart recalld",
    "directory-read-only": "make it writable",
    "storage-unreachable": "start the server; no restart of recalld is needed",
    "storage-full": "free space; no restart is needed",
    "erase-incomplete": "it is completed when the bank is opened",
    "deletion-incomplete": "check the permissions, then restart",
    "banks-orphaned": "`recalld bank recover`",
    "catalogue-replaced": (
        "check the disk; `recalld bank recover`; the reason ends with a restart"
    ),
    "damaged": "`recalld bank check BANK --repair`, or restore a backup",
    "embedder-failed": "check the `embedding` settings",
    "model-missing": "restore the `embedding` settings",
    "embedder-without-meaning": "none, if intended",
    "vectors-pending": "wait",
    "indexing-stopped": "see the log; `recalld bank rebuild BANK`",
    "snapshot-broken": "check the disk",
    "snapshot-not-written": "check the disk",
}
HARMLESS: Final = frozenset({"embedder-without-meaning", "vectors-pending"})


class Finding(NamedTuple):
    """The result of a check. `remedy` is empty if there is no problem."""

    check: str
    level: str  # ok, warning or problem
    message: str
    remedy: str = ""


Check = Callable[[Settings], Iterator[Finding]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")


def run(chosen: SimpleNamespace, settings: Settings) -> int:
    found = findings(settings)
    if chosen.json:
        print_lines([json.dumps([each._asdict() for each in found])])
    else:
        print_lines([line for each in found for line in _lines(each)])
        count = sum(each.level != "ok" for each in found)
        print_lines(["", f"{count} to look at" if count else "no problems found"])
    return DEGRADED if any(each.level == "problem" for each in found) else OK


def findings(settings: Settings) -> list[Finding]:
    """The findings of all checks; a check that fails is a finding too."""
    found: list[Finding] = []
    for check in CHECKS:
        try:
            found.extend(check(settings))
        except OSError as error:
            name = check.__name__.strip("_")
            found.append(Finding(name, "problem", str(error), "check the file and its permissions"))
    return found


def _lines(finding: Finding) -> list[str]:
    line = f"{finding.level:8} {finding.check:12} {finding.message}"
    return [line, f"{'':22}-> {finding.remedy}"] if finding.remedy else [line]


# --- checks ----------------------------------------------------------------------------------


def _environment(_settings: Settings) -> Iterator[Finding]:
    version = sys.version_info
    python = f"Python {version.major}.{version.minor}.{version.micro} at {sys.executable}"
    if (3, 11) <= version[:2] <= (3, 13):
        yield Finding("environment", "ok", python)
    else:
        remedy = "install recalld with Python 3.11 to 3.13"
        yield Finding("environment", "warning", f"{python} is not tested", remedy)
    if not shutil.which("recalld"):
        yield Finding(
            "environment",
            "warning",
            "the command recalld is not in PATH",
            "use the absolute path in client configurations; `recalld setup` does",
        )


def _storage(settings: Settings) -> Iterator[Finding]:
    for level, message, remedy in server_findings(settings):
        yield Finding("storage", level, message, remedy)


def _versions(_settings: Settings) -> Iterator[Finding]:
    found = versions()
    listed = ", ".join(f"{name} {found[name]}" for name in ("sqlite", "onnxruntime", "usearch"))
    missing = [name for name, version in found.items() if version == "not installed"]
    if missing:
        remedy = "install recalld again (scripts/install, pipx or uv)"
        yield Finding("versions", "problem", f"missing: {', '.join(missing)}", remedy)
    with sqlite3.connect(":memory:") as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    connection.close()
    if "ENABLE_FTS5" not in options:
        remedy = "use a Python whose SQLite has FTS5"
        yield Finding("versions", "problem", "this SQLite has no FTS5", remedy)
    if sqlite3.sqlite_version_info < (3, 38):
        remedy = "use a Python with SQLite 3.38 or newer"
        yield Finding("versions", "problem", f"SQLite {found['sqlite']} is too old", remedy)
    if not missing:
        yield Finding("versions", "ok", f"recalld {VERSION}, {listed}")


def _distributions(_settings: Settings) -> Iterator[Finding]:
    owners = metadata.packages_distributions()
    others = sorted(
        {other for name in IMPORT_NAMES for other in owners.get(name, ()) if other != "recalld"}
    )
    if others:
        yield Finding(
            "packages",
            "problem",
            f"{', '.join(others)}: shares an import name with recalld in this environment",
            "install recalld in an environment of its own (pipx or uv tool)",
        )
    else:
        yield Finding("packages", "ok", "no other distribution shares recalld's import names")


def _directories(settings: Settings) -> Iterator[Finding]:
    places = settings.directories
    for name, path in (("data", places.data), ("state", places.state)):
        if not path.exists():
            yield Finding("directories", "ok", f"{name}: {path} is created at first use")
            continue
        found, remedy = path.stat(), f"chmod 700 {path}"
        if found.st_uid != os.geteuid():
            remedy = f"chown -R it to this user, or set RECALLD_HOME (now: uid {found.st_uid})"
            yield Finding("directories", "problem", f"{path}: belongs to another user", remedy)
        elif found.st_mode & 0o077:
            mode = f"{stat.S_IMODE(found.st_mode):04o}"
            yield Finding(
                "directories",
                "problem",
                f"{path}: others may read it ({mode})",
                f"chmod 700 {path}",
            )
        elif not os.access(path, os.W_OK | os.X_OK):
            yield Finding(
                "directories", "problem", f"{path}: cannot be written", f"chmod 700 {path}"
            )
        else:
            yield Finding("directories", "ok", f"{name}: {path}")
    if places.config.exists():
        yield Finding("config", "ok", str(places.config))
    else:
        yield Finding("config", "ok", f"{places.config} does not exist; defaults are used")


def _disk(settings: Settings) -> Iterator[Finding]:
    place = settings.directories.data
    while not place.exists() and place != place.parent:
        place = place.parent
    free = shutil.disk_usage(place).free
    text = f"{free / GIB:.1f} GiB free at {place}"
    if free < LOW_SPACE_BYTES:
        yield Finding("disk", "warning", text, "free some space; writes fail when the disk is full")
    else:
        yield Finding("disk", "ok", text)


def _socket(settings: Settings) -> Iterator[Finding]:
    path = settings.socket
    if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        yield Finding(
            "socket", "warning", f"{path}: is a long path", "set server.socket to a shorter one"
        )
    try:
        status = ask(path, "recalld/status")
    except Exit as exit:
        if path.exists():
            yield Finding(
                "daemon",
                "warning",
                f"{path}: nothing answers ({exit.message})",
                "the next client replaces the stale socket; `recalld logs` may tell the reason",
            )
        else:
            yield Finding("daemon", "ok", "no daemon runs; clients start one")
        return
    version = str(status.get("version"))
    if version != VERSION:
        yield Finding(
            "daemon",
            "warning",
            f"the daemon has version {version}, this command {VERSION}",
            "a newer client replaces an older daemon; `recalld stop` ends it now",
        )
    else:
        yield Finding("daemon", "ok", f"pid {status.get('pid')} listens at {path}")
    health = ask(path, "health/check")
    for reason in health.get("degraded", []):
        known = REMEDIES.get(str(reason).partition(":")[0], "see docs/operations.md, Health")
        level = "warning" if reason in HARMLESS else "problem"
        yield Finding("daemon", level, str(reason), known)


def _locks(settings: Settings) -> Iterator[Finding]:
    for name, path in (("data directory", settings.lock), ("start", settings.start_lock)):
        holder = _holder(path)
        if holder is None:
            yield Finding("locks", "ok", f"the {name} lock is free")
        elif name == "start":
            yield Finding(
                "locks",
                "warning",
                f"the start lock is held: {holder or 'unknown process'}",
                "wait for that process, or end it if it hangs; the file itself may stay",
            )
        else:
            yield Finding("locks", "ok", f"the data directory is in use ({holder})")


def _holder(path: Path) -> str | None:
    """The text in a lock file that another process holds; None if it is free."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(lock, 200, 0).decode(errors="replace").strip()
    finally:
        os.close(lock)
    return None


def _log(settings: Settings) -> Iterator[Finding]:
    path = settings.log_file
    size = path.stat().st_size if path.exists() else 0
    if size > LARGE_LOG_BYTES:
        remedy = "it is renamed at the next start of a daemon; log.level reduces it"
        yield Finding("log", "warning", f"{path}: {size / 2**20:.0f} MiB", remedy)


def _clock(settings: Settings) -> Iterator[Finding]:
    now = time.time()  # noqa: TID251  (the wall clock itself is checked)
    newest = max(
        (path.stat().st_mtime for path in settings.directories.data.glob("*")), default=0.0
    )
    if now < EARLIEST or newest > now + DAY:
        yield Finding(
            "clock",
            "problem",
            f"the clock shows {time.strftime('%Y-%m-%d %H:%M', time.gmtime(now))} UTC, which is"
            " before the latest change of the data",
            "set the clock; memories get wrong dates otherwise",
        )
    else:
        yield Finding("clock", "ok", f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime(now))} UTC")


def _clients(_settings: Settings) -> Iterator[Finding]:
    """The entries of installed clients, as `recalld setup --check` tests them."""
    command = [sys.executable, "-P", "-m", "daemon", "setup", "--check", "--json"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CLIENT_SECONDS, check=False
        )
        results: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
        remedy = "run `recalld setup --check` to see the reason"
        yield Finding("clients", "warning", "the entries of clients were not checked", remedy)
        return
    for each in results:
        name, file = each["client"], each["file"]
        if each["works"]:
            yield Finding("clients", "ok", f"{name}: {file} works ({each['tools']} tools)")
        elif each["works"] is False:
            remedy = f"recalld setup {name} --force"
            yield Finding("clients", "problem", f"{name}: {file}: {each['fault']}", remedy)
        elif each["status"] == "absent":
            yield Finding("clients", "ok", f"{name}: no entry; `recalld setup {name}` adds one")
        else:
            remedy = "correct the file, then run `recalld setup --check`"
            yield Finding("clients", "problem", f"{name}: {file}: {each['detail']}", remedy)


CHECKS: Final[tuple[Check, ...]] = (
    _environment,
    _versions,
    _storage,
    _distributions,
    _directories,
    _disk,
    _socket,
    _locks,
    _log,
    _clock,
    _clients,
)
