"""`recalld version`: the versions of recalld, Python, SQLite and the libraries it uses."""

import argparse
import json
import platform
import sqlite3
from importlib import metadata
from types import SimpleNamespace
from typing import Final

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import OK
from daemon.version import VERSION

PACKAGES: Final = ("onnxruntime", "usearch", "numpy", "aiosqlite", "anyio", "msgspec", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(chosen: SimpleNamespace, _settings: Settings) -> int:
    found = versions()
    lines = [f"{name:12}{version}" for name, version in found.items()]
    print_lines([json.dumps(found)] if chosen.json else lines)
    return OK


def versions() -> dict[str, str]:
    """The versions, without importing the libraries."""
    found = {
        "recalld": VERSION,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
