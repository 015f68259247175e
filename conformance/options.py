"""The options of `mcp-conform`: their parser, and the endpoint and settings that they describe."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import NoReturn

from conformance import roles
from conformance.client.stdio import StdioEndpoint
from conformance.client.streamable_http import HttpEndpoint
from conformance.client.unix_socket import UnixEndpoint
from conformance.client.wire import Endpoint, Pace
from conformance.context import Settings

EPILOG = """\
Exit status: 0 no MUST failed; 1 a MUST failed, or a known failure passed; 2 the tests could not
run, were interrupted, or some cases could not begin.

Tools: mcp-conform calls a tool only if the server marks it with readOnlyHint: true, if you name it
(--tool, --roles), or if you say that the server is a test server (--fixtures). It lists and reads
resources, gets prompts and asks for completions. A stdio run starts the server 20 to 150 times.
"""


class Usage(Exception):
    """The command line is invalid; the message gives the reason."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(message)


def parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mcp-conform",
        description="Tests an MCP server over its transport, in all five protocol revisions.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="mcp-conform [options] (--unix PATH | --http URL | --stdio -- COMMAND [ARGUMENT...])",
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    _add_server(parser)
    _add_cases(parser)
    _add_run(parser)
    _add_reports(parser)
    return parser


def _add_server(parser: argparse.ArgumentParser) -> None:
    where = parser.add_argument_group("the server")
    add = where.add_argument
    add("--stdio", action="store_true", help="start the command after -- as a child")
    add("--unix", metavar="PATH", help="connect to a unix socket")
    add("--http", metavar="URL", help="connect to a Streamable HTTP endpoint (http or https)")
    add("--token", metavar="TOKEN", help="bearer token for every HTTP request")
    add("--other-token", metavar="TOKEN", help="token of another user, for S15")
    add("--foreign-token", metavar="TOKEN", help="valid token for another audience, for H41e")
    add(
        "--header",
        action="append",
        default=[],
        metavar="NAME: VALUE",
        help="add a header to every HTTP request (repeatable)",
    )
    add("--idle-seconds", type=float, metavar="S", help="expiry of idle HTTP sessions, for S05")
    add("command", nargs="*", help=argparse.SUPPRESS)
    add(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a variable for each child (repeatable); {tmpdir}, here and in the command, is a "
        "new directory for each child",
    )
    add("--exclusive", action="store_true", help="never run two children at once (as --jobs 1)")
    add(
        "--start-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time for the first response of a server that is starting (default 60)",
    )


def _add_cases(parser: argparse.ArgumentParser) -> None:
    what = parser.add_argument_group("the cases")
    add = what.add_argument
    add("--list", action="store_true", help="print the cases and exit")
    add("--list-calls", action="store_true", help="print the tools that would be called and exit")
    add("--explain", metavar="ID", help="explain a case: clause, link, messages, examples")
    add("--only", metavar="IDS", default="", help="groups or ids, such as J,F02,T05")
    add("--revision", metavar="DATES", default="all", help="dates, legacy, modern or all (default)")
    add("--level", metavar="LEVELS", default="", help="MUST, SHOULD, ours (default: all)")
    add(
        "--tool",
        action="append",
        default=[],
        metavar="NAME=JSON",
        help="a tool that may be called, with these arguments; a value {text} makes it the echo "
        "role, {seconds} the slow role (repeatable)",
    )
    add("--roles", metavar="FILE", help="tools that play the roles (TOML)")
    add("--fixtures", action="store_true", help="the server is a test server: call its fixtures")
    add("--known-failures", metavar="FILE", help="accepted failures (TOML)")
    add("--write-known-failures", metavar="FILE", help="write the failures of this run as such")
    add(
        "--sdk",
        metavar="NAME",
        default="auto",
        help="baseline to compare with: auto, none or a name",
    )
    add("--strict", action="store_true", help="also exit 1 if a SHOULD fails unexplained")


def _add_run(parser: argparse.ArgumentParser) -> None:
    how = parser.add_argument_group("the run")
    add = how.add_argument
    add("--timeout", type=float, default=5.0, metavar="S", help="time for a response (default 5)")
    add(
        "--case-timeout", type=float, default=40.0, metavar="S", help="time for a case (default 40)"
    )
    add("--jobs", type=int, default=0, metavar="N", help="revisions to test in parallel")
    add("--rate", type=float, default=0.0, metavar="N", help="send at most N messages a second")
    add("--no-repeat", action="store_true", help="do not repeat failures")


def _add_reports(parser: argparse.ArgumentParser) -> None:
    out = parser.add_argument_group("the reports")
    add = out.add_argument
    add("--json", metavar="FILE", help="write a JSON report")
    add("--junit", metavar="FILE", help="write a JUnit XML report")
    add("--html", metavar="FILE", help="write an HTML report")
    add("--markdown", metavar="FILE", help="write a summary for a pull request")
    add("--badge", metavar="FILE", help="write a badge (SVG)")
    add("--verbose", "-v", action="store_true", help="print each case when it ends")
    add("--no-color", action="store_true", help="no colours (also NO_COLOR)")


def endpoint(options: argparse.Namespace) -> Endpoint:
    """The server under test."""
    chosen = [options.stdio, options.unix is not None, options.http is not None]
    if sum(chosen) != 1:
        raise Usage("give exactly one of --stdio -- COMMAND, --unix PATH and --http URL")
    if options.http is not None:
        if options.command:
            raise Usage(f"--http takes no command; remove {options.command[0]!r}")
        return HttpEndpoint(
            options.http,
            timeout=options.timeout,
            token=options.token or os.environ.get("MCP_CONFORM_TOKEN"),
            other_token=options.other_token or os.environ.get("MCP_CONFORM_OTHER_TOKEN"),
            foreign_token=options.foreign_token or os.environ.get("MCP_CONFORM_FOREIGN_TOKEN"),
            headers=_headers(options.header),
        )
    for name in ("token", "other_token", "foreign_token", "idle_seconds"):
        if getattr(options, name) is not None:
            raise Usage(f"--{name.replace('_', '-')} needs --http")
    if options.header:
        raise Usage("--header needs --http")
    if options.unix is not None:
        if options.command:
            raise Usage(f"--unix takes no command; remove {options.command[0]!r}")
        return UnixEndpoint(options.unix, timeout=options.timeout)
    if not options.command:
        raise Usage("--stdio needs a command after --")
    child = StdioEndpoint(options.command, environment(options.env))
    if options.exclusive or options.jobs == 1:
        child.one_at_a_time()
    return child


def _headers(given: list[str]) -> dict[str, str]:
    headers = {}
    for pair in given:
        name, colon, value = pair.partition(":")
        if not colon or not name.strip():
            raise Usage(f"--header needs 'NAME: VALUE', not {pair!r}")
        headers[name.strip()] = value.strip()
    return headers


def environment(given: list[str]) -> dict[str, str]:
    """The environment of a child."""
    env = dict(os.environ)
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Usage(f"--env needs NAME=VALUE, not {pair!r}")
        env[name] = value
    return env


def settings(options: argparse.Namespace) -> Settings:
    """The settings of the run."""
    if options.timeout <= 0 or options.case_timeout <= 0 or options.start_seconds <= 0:
        raise Usage("--timeout, --case-timeout and --start-seconds must be above 0 seconds")
    if options.idle_seconds is not None and options.idle_seconds <= 0:
        raise Usage("--idle-seconds must be above 0")
    if options.rate < 0:
        raise Usage("--rate must be above 0")
    given = roles.read_roles(Path(options.roles)) if options.roles else {}
    tools = tuple(roles.read_tool(text) for text in options.tool)
    return Settings(
        timeout=options.timeout,
        case_seconds=options.case_timeout,
        start_seconds=options.start_seconds,
        idle_seconds=options.idle_seconds,
        vouched=roles.Vouched(given, tools, fixtures=options.fixtures),
        pace=Pace(1 / options.rate if options.rate else 0.0),
        repeat=not options.no_repeat,
    )


def levels(text: str) -> list[str]:
    names = {"must": "MUST", "should": "SHOULD", "ours": "ours"}
    wanted = [word.strip().lower() for word in text.split(",") if word.strip()]
    for word in wanted:
        if word not in names:
            raise Usage(f"unknown level {word!r}; use MUST, SHOULD or ours")
    return [names[word] for word in wanted]
