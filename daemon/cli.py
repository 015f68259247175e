"""The command line: which command, which settings, which exit code."""

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from daemon.config import Settings, load, unknown_variables
from daemon.exit_codes import INTERNAL, UNAVAILABLE, USAGE, Exit, leaves

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def _plain_health(given: list[str]) -> SimpleNamespace | None:
    """`recalld health` in its plain form, which runs often, without the cost of a parser."""
    if given == ["health"] or given == ["health", "--json"]:
        return SimpleNamespace(command="health", socket=None, json=len(given) > 1)
    if len(given) == 3 and given[:2] == ["health", "--socket"]:
        return SimpleNamespace(command="health", socket=given[2], json=False)
    return None


def _parse(given: list[str]) -> SimpleNamespace:
    import argparse

    from daemon.version import VERSION

    class Parser(argparse.ArgumentParser):
        """Bad flags are one clear line and a documented exit code."""

        def error(self, message: str) -> NoReturn:
            raise Exit(USAGE, f"{message} (see {self.prog} --help)")

    parser = Parser(prog="recalld", description="The memory daemon for AI agents.")
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
    _token_commands(commands.add_parser("token", help="make, list and revoke tokens for HTTP"))
    bank = commands.add_parser("bank", help="list, back up, export, import, erase, check banks …")
    if given[:1] == ["bank"]:  # its many verbs cost milliseconds that others need not pay
        from daemon.commands.bank import add_arguments

        add_arguments(bank)
    stop = commands.add_parser("stop", help="ask the daemon to leave, and wait until it has")
    stop.add_argument("--socket", metavar="PATH", help="the daemon's socket")
    return parser.parse_args(given, SimpleNamespace())


def _token_commands(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add = verbs.add_parser("add", help="make a token; it is printed once")
    add.add_argument("name", metavar="NAME", help="what logs call it")
    add.add_argument(
        "--bank",
        metavar="B",
        action="append",
        dest="banks",
        default=[],
        help="a bank it opens; may be given again; all by default",
    )
    add.add_argument("--read-only", action="store_true", help="it may read, not write")
    listing = verbs.add_parser("list", help="names and rights, never the tokens")
    revoke = verbs.add_parser("revoke", help="take a token back")
    revoke.add_argument("name", metavar="NAME")
    for verb in (add, listing, revoke):
        verb.add_argument("--file", metavar="PATH", dest="token_file", help="the token file")


def _server_flags(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("--socket", metavar="PATH", help="the unix socket")
    parser.add_argument("--fixtures", action="store_true", default=None, help="serve test fixtures")
    parser.add_argument("--dialects", metavar="A,B", help="tool surfaces to serve; all by default")
    parser.add_argument(
        "--bank", metavar="NAME", help="the bank for tools that name none; auto: one a repository"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code. Failures are one line on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(_plain_health(given) or _parse(given))
    except KeyboardInterrupt:
        return 130
    except Exception as failure:
        exit = next((leaf for leaf in leaves(failure) if isinstance(leaf, Exit)), None)
        if exit is None:
            from daemon.operations import crash_report

            command = given[0] if given and given[0].isalpha() else ""
            exit = Exit(INTERNAL, crash_report.keep(failure, command, os.environ))
        sys.stderr.write(f"recalld: {exit.message}\n")
        return exit.code


def _run(chosen: SimpleNamespace) -> int:
    command = chosen.command
    if command is None:
        raise Exit(USAGE, "a command is needed: serve, stdio, health, status, bank, token or stop")
    given: dict[str, Any] = vars(chosen)
    named = ["socket", "fixtures", "dialects", "bind", "token_file"]
    if command != "bank":  # there it is the bank to look after, not the one for tools
        named.append("bank")
    flags = {f"server.{name}": given[name] for name in named if given.get(name) is not None}
    if command == "stdio":
        _need_descriptors()
    settings = load(flags, os.environ)
    if command != "health" and not given.get("spawned"):
        for remark in unknown_variables(os.environ):
            sys.stderr.write(f"recalld: {remark}\n")
    if settings.bank == "auto":
        from pathlib import Path

        from daemon.bridge.project_bank import bank_of

        # A daemon that a bridge started belongs to no project; each bridge names its own.
        settings.bank = "" if given.get("spawned") else bank_of(Path.cwd())
    if command == "stdio" and not chosen.embedded:
        from daemon.bridge.process import Bridge

        return Bridge(settings, 0, 1).run()
    if command in ("health", "status", "stop"):
        from daemon.commands import probe

        if command == "stop":
            return probe.stop(settings)
        ask = probe.health if command == "health" else probe.status
        return ask(settings, as_json=chosen.json)
    if command == "bank":
        from daemon.commands import bank

        return bank.run(chosen, settings, _tend_bank)
    if command == "token":
        return _token(chosen, settings)
    return _serve(command, chosen, settings)


def _token(chosen: SimpleNamespace, settings: Settings) -> int:
    from daemon.commands import token

    if chosen.verb == "add":
        return token.add(settings, chosen.name, chosen.banks, read_only=chosen.read_only)
    if chosen.verb == "list":
        return token.show(settings)
    return token.revoke(settings, chosen.name)


def _tend_bank(
    settings: Settings, asked: dict[str, Any], progress: "Callable[[int, int], None]"
) -> dict[str, Any]:
    """A verb of `recalld bank` where no daemon runs, with everything the engine imports."""
    _without_rich()
    import anyio

    from daemon import app

    return anyio.run(app.tend_bank, settings, asked, progress)


def _need_descriptors() -> None:
    """First of all: were 0 or 1 closed, the next file opened would get their number."""
    try:
        os.fstat(0)
        os.fstat(1)
    except OSError:
        raise Exit(UNAVAILABLE, "stdin or stdout is closed; recalld stdio needs both") from None


def _serve(command: str, chosen: SimpleNamespace, settings: Settings) -> int:
    """The two commands that run the engine, with everything it imports."""
    from daemon.operations.descriptors import take_descriptors

    # Before the imports below: nothing of theirs may print to what a client reads.
    descriptors = take_descriptors() if command == "stdio" else None
    _without_rich()
    import anyio

    from daemon import app

    if descriptors is not None:
        return anyio.run(app.serve_stdio, settings, descriptors)
    if chosen.spawned:
        os.chdir("/")
    return anyio.run(
        lambda: app.serve(
            settings,
            is_spawned=chosen.spawned,
            ready=chosen.ready_fd,
            http=not chosen.no_http,
        )
    )


def _without_rich() -> None:
    """structlog imports rich, where it is installed, for a console we never show: 70 ms of start.

    None is Python's own word for "cannot be imported", which typeshed does not know.
    """
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # as said above
