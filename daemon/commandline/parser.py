"""Builds the argument parser from the table of commands.

A parser for one command has the arguments of that command only, because building the others takes
milliseconds. `full_parser` has all of them, for the man page and for tab completion.
"""

import argparse
import importlib
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final, NoReturn

from daemon.commandline.table import COMMANDS, EXAMPLES, Command
from daemon.exit_codes import USAGE, Exit
from daemon.version import VERSION

DESCRIPTION: Final = (
    "Memory daemon for AI agents: one memory for all your editors, on this machine."
)
_SUGGESTION_CUTOFF: Final = 0.5


class Formatter(argparse.RawDescriptionHelpFormatter):
    """The width of the terminal is read here: argparse imports shutil and with it all compression
    modules to find it, and it does so for every argument."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog, **{"width": _columns(), **options})


def _columns() -> int:
    try:
        return int(os.environ["COLUMNS"]) - 2
    except (KeyError, ValueError):
        pass
    try:
        return (os.get_terminal_size(1).columns or 80) - 2
    except (OSError, ValueError):
        return 78


class Parser(argparse.ArgumentParser):
    """Reports a usage error as one line and a documented exit code."""

    def error(self, message: str) -> NoReturn:
        raise Exit(USAGE, f"{message} (see {self.prog} --help)")


def parse(given: Sequence[str]) -> SimpleNamespace:
    """The arguments of a command line; `Exit` names the mistake."""
    name = next((word for word in given if not word.startswith("-")), "")
    command = find(name)
    if name and command is None:
        raise Exit(USAGE, _unknown(name))
    parser = _root()
    commands = _commands(parser)
    if command is not None:
        _add(commands, command)
    return parser.parse_args(list(given), SimpleNamespace())


def full_parser() -> argparse.ArgumentParser:
    """A parser with the arguments of every command."""
    parser = _root()
    commands = _commands(parser)
    for command in COMMANDS:
        _add(commands, command)
    return parser


def find(name: str) -> Command | None:
    return next((command for command in COMMANDS if command.name == name), None)


def load(place: str) -> Callable[..., Any]:
    """The function at `module:function`."""
    module, _, name = place.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def help_text() -> str:
    """The help of `recalld` itself: the commands by group, and examples."""
    lines = [DESCRIPTION, "", "usage: recalld COMMAND …", ""]
    width = max(len(command.name) for command in COMMANDS) + 2
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines.append(f"{group}:")
        lines += [f"    {c.name:{width}}{c.about}" for c in COMMANDS if c.group == group]
        lines.append("")
    lines.append("examples:")
    longest = max(len(example) for example, _ in EXAMPLES)
    lines += [f"    {example:{longest}}  # {about}" for example, about in EXAMPLES]
    lines += ["", "`recalld COMMAND --help` describes a command. `recalld config` shows the files."]
    return "\n".join(lines) + "\n"


class _Root(Parser):
    def format_help(self) -> str:
        return help_text()


def _root() -> argparse.ArgumentParser:
    parser = _Root(prog="recalld", description=DESCRIPTION, formatter_class=Formatter)
    parser.add_argument("--version", "-V", action="version", version=f"recalld {VERSION}")
    return parser


def _commands(parser: argparse.ArgumentParser) -> Any:
    # With `prog` given, argparse needs no help formatter here, which imports the compression
    # modules for the width of the terminal.
    return parser.add_subparsers(
        dest="command", metavar="COMMAND", parser_class=Parser, prog=parser.prog
    )


def _add(commands: Any, command: Command) -> None:
    added = commands.add_parser(
        command.name,
        help=command.about,
        description=f"{command.about[:1].upper()}{command.about[1:]}.",
        formatter_class=Formatter,
    )
    if command.arguments:
        load(command.arguments)(added)


def _unknown(name: str) -> str:
    import difflib  # imported late: only a mistyped command needs it

    names = [command.name for command in COMMANDS]
    close = difflib.get_close_matches(name, names, n=1, cutoff=_SUGGESTION_CUTOFF)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"there is no command {name[:40]!r}{hint} (see recalld --help)"
