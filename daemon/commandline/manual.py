"""`recalld manual`: the man page, generated from the parser."""

import argparse
from types import SimpleNamespace

from daemon.commandline.completion import is_subcommands, subcommands
from daemon.commandline.parser import DESCRIPTION, full_parser
from daemon.commandline.table import EXAMPLES
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import OK
from daemon.version import VERSION


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "examples:\n    recalld manual > ~/.local/share/man/man1/recalld.1"


def run(_chosen: SimpleNamespace, _settings: Settings) -> int:
    print_lines(page())
    return OK


def page() -> list[str]:
    """The lines of recalld(1)."""
    lines = [
        f'.TH RECALLD 1 "" "recalld {VERSION}" "User Commands"',
        ".SH NAME",
        r"recalld \- memory daemon for AI agents",
        ".SH SYNOPSIS",
        r".B recalld",
        r".I COMMAND",
        r"[\fIOPTIONS\fR]",
        ".SH DESCRIPTION",
        _escaped(DESCRIPTION),
        ".SH COMMANDS",
    ]
    for name, about, parser in subcommands(full_parser()):
        lines += [f'.SS "recalld {name}"', _escaped(f"{about[:1].upper()}{about[1:]}.")]
        verbs = subcommands(parser)
        lines += _arguments(parser)
        for verb, purpose, inner in verbs:
            lines += [".TP", rf"\fBrecalld {name} {verb}\fR {_usage(inner)}".rstrip()]
            lines.append(_escaped(purpose))
            lines += _indented(_arguments(inner))
    lines += [".SH EXAMPLES"]
    for example, about in EXAMPLES:
        lines += [".TP", rf"\fB{_escaped(example)}\fR", _escaped(about)]
    return [
        *lines,
        ".SH EXIT STATUS",
        "0 success; 1 degraded or problems found; 2 the daemon is unreachable; 64 usage;",
        "69 unavailable; 70 internal error; 73 a file cannot be created; 75 locked;",
        "78 configuration.",
        ".SH FILES",
        r"\fBrecalld config\fR shows the configuration file, the data directory and the log.",
    ]


def _usage(parser: argparse.ArgumentParser) -> str:
    positional = [action for action in parser._actions if not action.option_strings]
    return " ".join(rf"\fI{_escaped(str(a.metavar or a.dest))}\fR" for a in positional)


def _arguments(parser: argparse.ArgumentParser) -> list[str]:
    lines: list[str] = []
    for action in parser._actions:
        is_hidden = action.help == argparse.SUPPRESS or "--help" in action.option_strings
        if is_hidden or is_subcommands(action):
            continue
        names = ", ".join(rf"\fB{_escaped(option)}\fR" for option in action.option_strings)
        takes_value = action.nargs != 0
        value = str(action.metavar or action.dest.upper()) if takes_value else ""
        placeholder = rf"\fI{_escaped(value)}\fR" if takes_value else ""
        shown = f"{names} {placeholder}".strip()
        lines += [".TP", shown, _escaped((action.help or "").replace("%%", "%"))]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return [".RS", *lines, ".RE"] if lines else []


def _escaped(text: str) -> str:
    """Text for roff: backslashes and hyphens are escaped, and no line begins with a request."""
    plain = text.replace("\\", r"\e").replace("-", r"\-")
    plain = "".join(each if each.isascii() else rf"\[u{ord(each):04X}]" for each in plain)
    return rf"\&{plain}" if plain[:1] in (".", "'") else plain
