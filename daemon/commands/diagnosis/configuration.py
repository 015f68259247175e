"""`recalld config`: the effective settings and the origin of each."""

import argparse
import json
import os
from types import SimpleNamespace
from typing import Any, Final, cast

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.config.loading import effective, suggestion
from daemon.exit_codes import OK, USAGE, Exit

#: Values that are never printed.
SECRET: Final = frozenset({"server.api_key", "embedding.key", "storage.url", "storage.read_url"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", nargs="?", help="one setting, such as server.bind")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = "examples:\n    recalld config\n    recalld config server.bind"


def run(chosen: SimpleNamespace, settings: Settings) -> int:
    shown = [
        {"key": each.key, "value": _shown(each.key, each.value), "origin": each.origin}
        for each in effective(os.environ)
    ]
    if chosen.key is not None:
        keys = [each["key"] for each in shown]
        shown = [each for each in shown if each["key"] == chosen.key]
        if not shown:
            hint = suggestion(chosen.key, keys, 0.4)
            raise Exit(USAGE, f"there is no setting {chosen.key}{hint}")
        if not chosen.json:
            print_lines([_text(shown[0]["value"])])
            return OK
    files = _files(settings)
    if chosen.json:
        print_lines([json.dumps({"settings": shown, "files": files})])
        return OK
    width = max(len(each["key"]) for each in shown)
    values = max(min(len(_text(each["value"])), 32) for each in shown)
    lines = [
        f"{each['key']:{width}}  {_text(each['value']):{values}}  {each['origin']}"
        for each in shown
    ]
    print_lines([*(f"{name:10}{path}" for name, path in files.items()), "", *lines])
    return OK


def _files(settings: Settings) -> dict[str, str]:
    directories = settings.directories
    is_there = directories.config.exists()
    return {
        "config": f"{directories.config}{'' if is_there else ' (does not exist)'}",
        "data": str(directories.data),
        "state": str(directories.state),
        "socket": str(settings.socket),
        "log": str(settings.log_file),
    }


def _shown(key: str, value: Any) -> Any:
    return "(set)" if key in SECRET and value else value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        return ", ".join(str(each) for each in cast("tuple[Any, ...]", value)) or "(none)"
    return str(value) if value != "" else "(none)"
