"""`recalld service install|remove`: a systemd user unit, or a launchd agent on macOS.

The service runs `recalld serve`, which has HTTP and stays when no client is connected. The file is
written even if no service manager runs here; the printed commands then start it later.
"""

import argparse
import plistlib
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Final

from daemon.commands.output import print_lines
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, Exit
from daemon.setup import executable
from daemon.setup.formats import text_files
from daemon.setup.formats.text_files import FileFault

LABEL: Final = "dev.recalld.daemon"
MARK: Final = "# Written by recalld service install"
SECONDS: Final = 30.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", choices=("install", "remove"), help="install or remove the service")
    parser.add_argument("--dry-run", action="store_true", help="show the file, write nothing")


def run(
    options: SimpleNamespace,
    _settings: object = None,
    *,
    home: Path | None = None,
    platform: str = sys.platform,
    execute: Callable[[Sequence[str]], bool] | None = None,
) -> int:
    """Install or remove the service of this user."""
    place = home or Path.home()
    path = service_file(place, platform)
    text = service_text(executable.own_command(), executable.carried_variables(), platform)
    start, stop = _commands(path, platform)
    execute = execute or _execute
    try:
        file = text_files.load(path)
        if file.exists and MARK not in file.text and LABEL not in file.text:
            raise Exit(DEGRADED, f"{path}: was not written by recalld; it was not changed")
        if options.verb == "remove":
            if not file.exists:
                print_lines([f"{path}: nothing to remove"])
                return OK
            if options.dry_run:
                print_lines([f"would remove {path}"])
                return OK
            for command in stop:
                execute(command)
            file.remove()
            print_lines([f"removed {path}"])
            return OK
        if options.dry_run:
            print_lines([f"would write {path}:", text.rstrip("\n")])
            return OK
        if file.text != text:
            file.save(text, text_files.utc_day)
    except FileFault as fault:
        raise Exit(CANNOT_CREATE, str(fault)) from None
    print_lines([f"wrote {path}"])
    outcomes = [execute(command) for command in start]
    if all(outcomes):
        print_lines(["the service is running; `recalld status` shows it"])
        return OK
    print_lines(["start it with:", *("  " + " ".join(command) for command in start)])
    return OK


def service_file(home: Path, platform: str) -> Path:
    if platform == "darwin":
        return home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    return home / ".config" / "systemd" / "user" / "recalld.service"


def service_text(command: str, variables: Mapping[str, str], platform: str) -> str:
    if platform == "darwin":
        agent = {
            "Label": LABEL,
            "ProgramArguments": [command, "serve"],
            "EnvironmentVariables": dict(variables),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
        }
        return plistlib.dumps(agent).decode()
    lines = [
        MARK,
        "[Unit]",
        "Description=recalld, the memory daemon for AI agents",
        "",
        "[Service]",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in variables.items()),
        f"ExecStart={_quoted(command)} serve",
        "Restart=on-failure",
        "",
        "[Install]",
        "WantedBy=default.target",
    ]
    return "\n".join(lines) + "\n"


def _quoted(word: str) -> str:
    """A word of a unit file: quoted, with `%` and `$` taken literally."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"'


def _commands(path: Path, platform: str) -> tuple[list[list[str]], list[list[str]]]:
    if platform == "darwin":
        return [["launchctl", "load", "-w", str(path)]], [["launchctl", "unload", str(path)]]
    user = ["systemctl", "--user"]
    start = [[*user, "daemon-reload"], [*user, "enable", "--now", "recalld.service"]]
    return start, [[*user, "disable", "--now", "recalld.service"]]


def _execute(command: Sequence[str]) -> bool:
    try:
        done = subprocess.run(
            command, capture_output=True, stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
