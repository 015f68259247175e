"""`mcp-conform client -- COMMAND`: runs a client against each scripted server and reports.

The client gets the address of the server in place of `{url}` in its command (or as its last
argument, if the command has no placeholder), or the path of a server to start over stdio in place
of `{server}`. The variable MCP_CONFORM_SCRIPT names the script. A client should list the tools,
call them, answer the questions of the server and exit; whatever it does not do is not judged.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from conformance import __version__
from conformance.check import Failed, NotApplicable
from conformance.clients.script import SCRIPTS, Script, Transcript
from conformance.clients.servers import ScriptedHttpServer, launcher, read_log
from conformance.clients.verdicts import VERDICTS
from conformance.requirements import Requirement, client_requirements

URL, SERVER = "{url}", "{server}"
PASSED, MUST_FAILED, COULD_NOT_RUN = 0, 1, 2


class CannotTest(Exception):
    """The client could not be tested."""


@dataclass(frozen=True)
class Judged:
    """The result of one requirement under one script."""

    id: str
    script: str
    status: str
    reason: str = ""


@dataclass(frozen=True)
class Ran:
    """One run of the client."""

    transcript: Transcript
    exit: int | None
    """None if the client had to be ended."""
    stderr: bytes


def run_client(command: Sequence[str], script: str, seconds: float) -> Ran:
    """Run the client once against a script."""
    with tempfile.TemporaryDirectory(prefix="mcp-conform-") as directory:
        if any(SERVER in word for word in command):
            path, log = launcher(script, Path(directory))
            words = [word.replace(SERVER, str(path)) for word in command]
            ended, stderr = _execute(words, script, seconds)
            return Ran(read_log(script, log), ended, stderr)
        server = ScriptedHttpServer(Script(script, "http"))
        words = [word.replace(URL, server.url) for word in command]
        if words == list(command):
            words.append(server.url)
        try:
            ended, stderr = _execute(words, script, seconds)
        finally:
            transcript = server.stop()
        return Ran(transcript, ended, stderr)


def _execute(words: Sequence[str], script: str, seconds: float) -> tuple[int | None, bytes]:
    env = {**os.environ, "MCP_CONFORM_SCRIPT": script}
    try:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        raise CannotTest(f"cannot start {words[0]!r}: {error.strerror or error}") from error
    try:
        stderr = child.communicate(timeout=seconds)[1]
        return child.returncode, stderr
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            return None, child.communicate(timeout=5)[1]
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            return None, child.communicate()[1]


def judge(transcript: Transcript) -> list[Judged]:
    """Every verdict that applies to a script and its transport."""
    found = []
    for id, (scripts, check) in VERDICTS.items():
        row = client_requirements()[id]
        if transcript.script not in scripts or transcript.transport not in row.transports:
            continue
        try:
            check(transcript)
            found.append(Judged(id, transcript.script, "passed"))
        except NotApplicable as error:
            found.append(Judged(id, transcript.script, "not applicable", str(error)))
        except Failed as error:
            found.append(Judged(id, transcript.script, "failed", str(error)))
    return found


def status_of(results: Sequence[Judged], id: str) -> str:
    """A requirement fails if it fails under any script; it passes if it passes under one."""
    seen = {result.status for result in results if result.id == id}
    order = ("failed", "passed", "not applicable")
    return next((status for status in order if status in seen), "not applicable")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="mcp-conform client",
        description="Tests an MCP client against scripted servers.",
        epilog=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="mcp-conform client [options] -- COMMAND [ARGUMENT...]",
    )
    made.add_argument("command", nargs="*", help=argparse.SUPPRESS)
    made.add_argument("--script", default=",".join(SCRIPTS), help="scripts, such as legacy,modern")
    made.add_argument("--seconds", type=float, default=20.0, help="time for a run (default 20)")
    made.add_argument("--json", metavar="FILE", help="write a JSON report")
    made.add_argument("--list", action="store_true", help="print the requirements and exit")
    made.add_argument("--verbose", "-v", action="store_true", help="print passed cases too")
    return made


def main(words: Sequence[str]) -> int:
    options = parser().parse_args(list(words))
    if options.list:
        for id, row in client_requirements().items():
            print(f"{id} {row.level:6} {row.text}")
        return PASSED
    scripts = [name.strip() for name in options.script.split(",")]
    unknown = [name for name in scripts if name not in SCRIPTS]
    if unknown or not options.command:
        what = f"unknown script {unknown[0]!r}" if unknown else "a command is needed after --"
        print(f"mcp-conform client: {what}", file=sys.stderr)
        return COULD_NOT_RUN
    if any(SERVER in word for word in options.command):
        scripts = [name for name in scripts if name != "forgets"]  # stdio has no sessions
    results: list[Judged] = []
    silent: list[str] = []
    for name in scripts:
        try:
            ran = run_client(options.command, name, options.seconds)
        except CannotTest as error:
            print(f"mcp-conform client: {error}", file=sys.stderr)
            return COULD_NOT_RUN
        if not ran.transcript.heard:
            silent.append(name)
            _show(name, ran)
            continue
        if ran.exit is None:
            print(f"mcp-conform client: {name}: the client was ended after {options.seconds:g} s")
        results += judge(ran.transcript)
    if options.json:
        Path(options.json).write_text(as_json(results, options.command), "utf-8")
    print(as_text(results, verbose=options.verbose))
    if len(silent) == len(scripts):
        return COULD_NOT_RUN
    failed = [id for id in client_requirements() if status_of(results, id) == "failed"]
    return MUST_FAILED if any(client_requirements()[i].level == "MUST" for i in failed) else PASSED


def _show(script: str, ran: Ran) -> None:
    told = ran.stderr.decode("utf-8", "backslashreplace").splitlines()[-5:]
    print(f"mcp-conform client: {script}: the client sent no message", file=sys.stderr)
    for line in told:
        print(f"  | {line}", file=sys.stderr)


def as_text(results: Sequence[Judged], *, verbose: bool = False) -> str:
    lines = []
    counts = dict.fromkeys(("passed", "failed", "not applicable"), 0)
    for id, row in client_requirements().items():
        status = status_of(results, id)
        counts[status] += 1
        if status == "failed":
            lines.append(f"FAIL {row.level:6} {id} {row.text}")
            lines += [f"       {r.script}: {r.reason}" for r in results if _is(r, id, status)]
            lines += [f"       “{quote}” {link}" for quote, link in _clauses(row)]
        elif verbose and status == "passed":
            lines.append(f"ok   {row.level:6} {id} {row.text}")
        elif verbose:
            why = {r.reason for r in results if r.id == id} or {"no script applies"}
            lines.append(f"-    {row.level:6} {id} {row.text} ({'; '.join(sorted(why))})")
    lines.append(", ".join(f"{count} {status}" for status, count in counts.items()))
    return "\n".join(lines)


def _is(result: Judged, id: str, status: str) -> bool:
    return result.id == id and result.status == status


def _clauses(row: Requirement) -> list[tuple[str, str]]:
    newest = row.revisions[-1]
    return [(clause.quote, clause.link(newest)) for clause in row.clauses(newest)]


def as_json(results: Sequence[Judged], command: Sequence[str]) -> str:
    cases: list[dict[str, Any]] = [
        {
            "id": id,
            "level": row.level,
            "requirement": row.text,
            "status": status_of(results, id),
            "scripts": {
                r.script: {"status": r.status, "reason": r.reason} for r in results if r.id == id
            },
        }
        for id, row in client_requirements().items()
    ]
    report = {
        "schemaVersion": 1,
        "toolVersion": __version__,
        "command": list(command),
        "cases": cases,
    }
    return json.dumps(report, indent=1) + "\n"
