"""The command line: which command, which settings, which exit code."""

import argparse
import os
import sys
from typing import Any, NoReturn

from daemon.config import Settings, load
from daemon.exits import USAGE, Exit
from daemon.version import VERSION


class _Parser(argparse.ArgumentParser):
    """Bad flags are one clear line and a documented exit code."""

    def error(self, message: str) -> NoReturn:
        raise Exit(USAGE, f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="recalld", description="The memory daemon for AI agents.")
    parser.add_argument("--version", action="version", version=f"recalld {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the daemon in the foreground")
    _server_flags(serve)
    serve.add_argument("--bind", metavar="HOST:PORT", help="where to open HTTP")
    serve.add_argument("--no-http", action="store_true", help="do not open HTTP")
    serve.add_argument("--spawned", action="store_true", help=argparse.SUPPRESS)
    serve.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)

    stdio = commands.add_parser("stdio", help="speak MCP on stdin and stdout, for a client")
    _server_flags(stdio)
    stdio.add_argument(
        "--embedded", action="store_true", help="no daemon: the engine in this process"
    )

    for name, about in (
        ("health", "ask the daemon how it is; exit code 0 healthy, 1 degraded, 2 unreachable"),
        ("status", "say which daemon is running"),
    ):
        probe = commands.add_parser(name, help=about)
        probe.add_argument("--socket", metavar="PATH", help="the daemon's socket")
        probe.add_argument("--json", action="store_true", help="print JSON")
    stop = commands.add_parser("stop", help="ask the daemon to leave, and wait until it has")
    stop.add_argument("--socket", metavar="PATH", help="the daemon's socket")
    return parser


def _server_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH", help="the unix socket")
    parser.add_argument("--fixtures", action="store_true", default=None, help="serve test fixtures")
    parser.add_argument("--dialects", metavar="A,B", help="tool surfaces to serve; all by default")
    parser.add_argument("--bank", metavar="NAME", help="the bank for tools that name none")


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code. Failures are one line on stderr."""
    try:
        return _run(_parser().parse_args(arguments))
    except Exit as exit:
        sys.stderr.write(f"recalld: {exit.message}\n")
        return exit.code
    except KeyboardInterrupt:
        return 130


def _run(chosen: argparse.Namespace) -> int:
    command = chosen.command
    if command is None:
        raise Exit(USAGE, "a command is needed: serve, stdio, health, status or stop")
    given: dict[str, Any] = vars(chosen)
    flags = {
        f"server.{name}": given[name]
        for name in ("socket", "fixtures", "dialects", "bank", "bind")
        if given.get(name) is not None
    }
    settings = load(flags, os.environ)
    if command == "stdio" and not chosen.embedded:
        from daemon.bridge import Bridge

        return Bridge(settings, 0, 1).run()
    if command in ("health", "status", "stop"):
        from daemon import probe

        if command == "stop":
            return probe.stop(settings)
        return getattr(probe, command)(settings, as_json=chosen.json)  # type: ignore[no-any-return]
    return _serve(command, chosen, settings)


def _serve(command: str, chosen: argparse.Namespace, settings: Settings) -> int:
    """The two commands that run the engine, with everything it imports."""
    from daemon.descriptors import take_descriptors

    # Before the imports below: nothing of theirs may print to what a client reads.
    descriptors = take_descriptors() if command == "stdio" else None
    import anyio

    from daemon import app

    if descriptors is not None:
        return anyio.run(app.serve_stdio, settings, descriptors)
    if chosen.spawned:
        os.chdir("/")
    return anyio.run(lambda: app.serve(settings, is_spawned=chosen.spawned, ready=chosen.ready_fd))
