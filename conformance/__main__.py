"""The `mcp-conform` command line."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from conformance import __version__, options, revisions, roles
from conformance.check import SetupFailed, Trial, load_suites
from conformance.client.stdio import end_all_children
from conformance.client.wire import Endpoint, WireError
from conformance.clients import command as client_command
from conformance.context import Settings
from conformance.discovery import discover_all
from conformance.explain import explain
from conformance.options import Usage
from conformance.report import (
    badge,
    baselines,
    html_report,
    json_report,
    junit_report,
    known_failures,
    markdown_report,
    text_report,
)
from conformance.report.run_options import RunOptions
from conformance.requirements import requirements
from conformance.runner import CannotRun, Report, run, select

PASSED, MUST_FAILED, COULD_NOT_RUN = 0, 1, 2


def _run(given: argparse.Namespace, words: Sequence[str]) -> int:
    load_suites()
    if given.version:
        print(f"mcp-conform {__version__}")
        return PASSED
    if given.explain is not None:
        print(explain(given.explain))
        return PASSED
    selected = select(given.only.split(","), options.levels(given.level))
    if given.list:
        for row in selected:
            print(text_report.listing(row))
        return PASSED
    wanted = revisions.expand([word.strip() for word in given.revision.split(",")])
    settings = options.settings(given)
    explained = known_failures.read(Path(given.known_failures)) if given.known_failures else []
    for entry in explained:
        if entry.case not in requirements():
            raise Usage(f"{given.known_failures}: unknown case {entry.case!r}")
    baselines.check_name(given.sdk)
    endpoint = options.endpoint(given)
    if given.list_calls:
        return _list_calls(endpoint, wanted, settings)
    color = not given.no_color and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    paint = text_report.Paint(enabled=color)
    watched = sys.stderr.isatty() and not given.verbose
    tried = itertools.count(1)

    def show_trial(trial: Trial) -> None:
        if given.verbose:
            print(text_report.line(trial, paint), flush=True)
        elif watched:
            print(f"\r{next(tried)} tried, {trial.case:<5}", end="", file=sys.stderr, flush=True)

    report = run(
        endpoint,
        selected,
        wanted=wanted,
        settings=settings,
        jobs=given.jobs or _jobs(endpoint),
        listener=show_trial,
        say=lambda text: print(f"mcp-conform: {text}", file=sys.stderr, flush=True),
    )
    if watched:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    verdict = known_failures.judge(report, explained, baselines.match(report, given.sdk))
    made = RunOptions.of(words)
    for target, render in (
        (given.json, json_report.as_json),
        (given.junit, junit_report.as_junit),
        (given.html, html_report.as_html),
        (given.markdown, markdown_report.as_markdown),
    ):
        if target:
            Path(target).write_text(render(report, verdict, made), "utf-8")
    if given.badge:
        Path(given.badge).write_text(badge.as_svg(report, verdict), "utf-8")
    if given.write_known_failures:
        Path(given.write_known_failures).write_text(known_failures.as_toml(report), "utf-8")
    print(text_report.as_text(report, verdict, made, paint))
    return _status(report, verdict, strict=given.strict)


def _status(report: Report, verdict: known_failures.Verdict, *, strict: bool) -> int:
    if report.interrupted:
        print("mcp-conform: interrupted; the reports hold the results so far", file=sys.stderr)
        return COULD_NOT_RUN
    if verdict.unexplained("MUST") or verdict.newly_passing:
        return MUST_FAILED
    if strict and verdict.unexplained("SHOULD"):
        return MUST_FAILED
    if report.errors():
        return COULD_NOT_RUN
    return PASSED


def _list_calls(endpoint: Endpoint, wanted: Sequence[str], settings: Settings) -> int:
    """Print the tools that a run would call."""
    try:
        facts = discover_all(endpoint, wanted, settings, lambda _: None)
    finally:
        endpoint.close()
    spoken = [found for found in facts.values() if found.speaks]
    if not spoken:
        raise CannotRun("the server supports none of the requested revisions")
    tools = spoken[-1].tools
    for tool in tools:
        name = tool.get("name")
        played = [
            role
            for role in roles.KNOWN
            if (found := roles.find(role, tools, settings.vouched)) and found.tool == name
        ]
        allowed = settings.vouched.allows(tool)
        why = "read-only" if roles.is_read_only(tool) else "named by you" if allowed else ""
        state = f"may be called ({why})" if allowed else "never called"
        print(f"{name}: {state}{'; roles: ' + ', '.join(played) if played else ''}")
    return PASSED


def _jobs(endpoint: Endpoint) -> int:
    """All revisions at once, but fewer where each connection is a process."""
    return 5 if endpoint.transport != "stdio" else min(5, (os.cpu_count() or 1) + 1)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """A signal ends the run as Ctrl-C does: the reports are written, the children ended."""
    signal.signal(number, signal.SIG_DFL)
    raise KeyboardInterrupt


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _stop)
    if words[:1] == ["client"]:
        return client_command.main(words[1:])
    try:
        return _run(options.parser().parse_args(words), words)
    except BrokenPipeError:
        with contextlib.suppress(OSError):  # `--list | head`: the reader has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return PASSED
    except CannotRun as error:
        print(f"mcp-conform: {error}", file=sys.stderr)
        _show_stderr(error.stderr)
        return COULD_NOT_RUN
    except (Usage, SetupFailed, WireError, ValueError, OSError) as error:
        print(f"mcp-conform: {error}", file=sys.stderr)
        return COULD_NOT_RUN
    except KeyboardInterrupt:
        print("mcp-conform: interrupted", file=sys.stderr)
        return COULD_NOT_RUN
    finally:
        end_all_children()


def _show_stderr(tail: bytes) -> None:
    """The last lines that the server wrote to stderr."""
    lines = tail.decode("utf-8", "backslashreplace").splitlines()[-20:]
    if lines:
        print("the server's stderr:", file=sys.stderr)
        for line in lines:
            print(f"  | {line}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
