"""The `mcp-conform` command line."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from conformance import revisions, roles
from conformance.check import Trial, load_suites
from conformance.client.stdio import StdioEndpoint, end_all_children
from conformance.client.streamable_http import HttpEndpoint
from conformance.client.unix_socket import UnixEndpoint
from conformance.client.wire import Endpoint, WireError
from conformance.context import Settings
from conformance.report import (
    html_report,
    json_report,
    junit_report,
    known_failures,
    text_report,
)
from conformance.requirements import requirements
from conformance.runner import CannotRun, run, select

PASSED, MUST_FAILED, COULD_NOT_RUN = 0, 1, 2


class Usage(Exception):
    """The command line is invalid; the message gives the reason."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Usage(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="mcp-conform",
        description="Tests an MCP server over its transport, in all five protocol revisions.",
        epilog="Exit status: 0 no MUST failed, 1 a MUST failed, 2 the tests could not run.",
        usage="mcp-conform [options] (--unix PATH | --http URL | --stdio -- COMMAND [ARGUMENT...])",
    )
    where = parser.add_argument_group("the server")
    where.add_argument("--stdio", action="store_true", help="start the command after -- as a child")
    where.add_argument("--unix", metavar="PATH", help="connect to a unix socket")
    where.add_argument("--http", metavar="URL", help="connect to a Streamable HTTP endpoint")
    where.add_argument("--token", metavar="TOKEN", help="bearer token for every HTTP request")
    where.add_argument("--other-token", metavar="TOKEN", help="token of another user, for S15")
    where.add_argument(
        "--idle-seconds", type=float, metavar="S", help="expiry of idle HTTP sessions, for S05"
    )
    where.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    where.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a variable for each child (repeatable); {tmpdir} is a new directory per child",
    )
    what = parser.add_argument_group("the cases")
    what.add_argument("--list", action="store_true", help="print the cases and exit")
    what.add_argument("--only", metavar="IDS", default="", help="groups or ids, such as J,F02,T05")
    what.add_argument(
        "--revision", metavar="DATES", default="all", help="dates, legacy, modern or all"
    )
    what.add_argument(
        "--level", metavar="LEVELS", default="", help="MUST, SHOULD, ours (default: all)"
    )
    what.add_argument("--roles", metavar="FILE", help="tools that play the roles (TOML)")
    what.add_argument("--known-failures", metavar="FILE", help="accepted failures (TOML)")
    what.add_argument(
        "--strict", action="store_true", help="also exit 1 if a SHOULD fails unexplained"
    )
    how = parser.add_argument_group("the run")
    how.add_argument("--timeout", type=float, default=5.0, metavar="S", help="time for a response")
    how.add_argument(
        "--case-timeout", type=float, default=40.0, metavar="S", help="time for a case"
    )
    how.add_argument(
        "--jobs", type=int, default=0, metavar="N", help="revisions to test in parallel"
    )
    out = parser.add_argument_group("the reports")
    out.add_argument("--json", metavar="FILE", help="write a JSON report")
    out.add_argument("--junit", metavar="FILE", help="write a JUnit XML report")
    out.add_argument("--html", metavar="FILE", help="write an HTML report")
    out.add_argument("--verbose", "-v", action="store_true", help="print each case when it ends")
    out.add_argument("--no-color", action="store_true", help="no colours (also NO_COLOR)")
    return parser


def _endpoint(options: argparse.Namespace) -> Endpoint:
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
        )
    for name in ("token", "other_token", "idle_seconds"):
        if getattr(options, name) is not None:
            raise Usage(f"--{name.replace('_', '-')} needs --http")
    if options.unix is not None:
        if options.command:
            raise Usage(f"--unix takes no command; remove {options.command[0]!r}")
        return UnixEndpoint(options.unix, timeout=options.timeout)
    if not options.command:
        raise Usage("--stdio needs a command after --")
    env = dict(os.environ)
    for pair in options.env:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Usage(f"--env needs NAME=VALUE, not {pair!r}")
        env[name] = value
    return StdioEndpoint(options.command, env)


def _settings(options: argparse.Namespace) -> Settings:
    if options.timeout <= 0 or options.case_timeout <= 0:
        raise Usage("--timeout and --case-timeout must be above 0 seconds")
    if options.idle_seconds is not None and options.idle_seconds <= 0:
        raise Usage("--idle-seconds must be above 0")
    given = roles.read_roles(Path(options.roles)) if options.roles else {}
    return Settings(
        timeout=options.timeout,
        case_seconds=options.case_timeout,
        idle_seconds=options.idle_seconds,
        roles=given,
    )


def _levels(text: str) -> list[str]:
    names = {"must": "MUST", "should": "SHOULD", "ours": "ours"}
    wanted = [word.strip().lower() for word in text.split(",") if word.strip()]
    for word in wanted:
        if word not in names:
            raise Usage(f"unknown level {word!r}; use MUST, SHOULD or ours")
    return [names[word] for word in wanted]


def _run(options: argparse.Namespace) -> int:
    load_suites()
    if options.list:
        for row in select(options.only.split(","), _levels(options.level)):
            print(text_report.listing(row))
        return PASSED
    selected = select(options.only.split(","), _levels(options.level))
    wanted = revisions.expand([word.strip() for word in options.revision.split(",")])
    settings = _settings(options)
    explained = known_failures.read(Path(options.known_failures)) if options.known_failures else []
    for entry in explained:
        if entry.case not in requirements():
            raise Usage(f"{options.known_failures}: unknown case {entry.case!r}")
    endpoint = _endpoint(options)
    color = not options.no_color and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    paint = text_report.Paint(enabled=color)

    watched = sys.stderr.isatty() and not options.verbose
    tried = itertools.count(1)

    def show_trial(trial: Trial) -> None:
        if options.verbose:
            print(text_report.line(trial, paint), flush=True)
        elif watched:
            print(f"\r{next(tried)} tried, {trial.case:<5}", end="", file=sys.stderr, flush=True)

    outcome = run(
        endpoint,
        selected,
        wanted=wanted,
        settings=settings,
        jobs=options.jobs or _jobs(endpoint),
        listener=show_trial,
    )
    if watched:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    verdict = known_failures.judge(outcome, explained)
    for target, render in (
        (options.json, json_report.as_json),
        (options.junit, junit_report.as_junit),
        (options.html, html_report.as_html),
    ):
        if target:
            Path(target).write_text(render(outcome, verdict), "utf-8")
    print(text_report.as_text(outcome, verdict, paint))
    if verdict.unexplained("MUST") or verdict.newly_passing:
        return MUST_FAILED
    if options.strict and verdict.unexplained("SHOULD"):
        return MUST_FAILED
    return PASSED


def _jobs(endpoint: Endpoint) -> int:
    """All revisions at once, but fewer where each connection is a process."""
    return 5 if endpoint.transport != "stdio" else min(5, (os.cpu_count() or 1) + 1)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    end_all_children()
    raise SystemExit(128 + number)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    if arguments is None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
    try:
        return _run(_parser().parse_args(arguments))
    except (Usage, CannotRun, WireError, ValueError, OSError) as error:
        print(f"mcp-conform: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("mcp-conform: interrupted", file=sys.stderr)
        return COULD_NOT_RUN
    finally:
        end_all_children()


if __name__ == "__main__":
    raise SystemExit(main())
