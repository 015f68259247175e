"""The command line: parses arguments, loads settings, runs a command and returns its exit code."""

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

from daemon.config import Settings, load, unknown_variables
from daemon.exit_codes import INTERNAL, UNAVAILABLE, USAGE, Exit, leaves

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping


def _parse_plain_health(given: list[str]) -> SimpleNamespace | None:
    """Parse the plain forms of `recalld health` without argparse, because probes run often."""
    if given == ["health"] or given == ["health", "--json"]:
        return SimpleNamespace(command="health", socket=None, json=len(given) > 1)
    if len(given) == 3 and given[:2] == ["health", "--socket"]:
        return SimpleNamespace(command="health", socket=given[2], json=False)
    return None


def _parse(given: list[str]) -> SimpleNamespace:
    import argparse

    from daemon.version import VERSION

    class Parser(argparse.ArgumentParser):
        """Reports a usage error as one line and a documented exit code."""

        def error(self, message: str) -> NoReturn:
            raise Exit(USAGE, f"{message} (see {self.prog} --help)")

    parser = Parser(prog="recalld", description="Memory daemon for AI agents.")
    parser.add_argument("--version", action="version", version=f"recalld {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")

    serve = commands.add_parser("serve", help="run the daemon in the foreground")
    _server_flags(serve)
    serve.add_argument("--bind", metavar="HOST:PORT", help="address to listen on for HTTP")
    serve.add_argument("--no-http", action="store_true", help="do not listen for HTTP")
    serve.add_argument("--spawned", action="store_true", help=argparse.SUPPRESS)
    serve.add_argument("--ready-fd", type=int, help=argparse.SUPPRESS)

    stdio = commands.add_parser("stdio", help="serve MCP on stdin and stdout, for an MCP client")
    _server_flags(stdio)
    stdio.add_argument(
        "--embedded", action="store_true", help="run the engine in this process, without a daemon"
    )

    for name, about in (
        ("health", "check the daemon; exit code 0 healthy, 1 degraded, 2 unreachable"),
        ("status", "show the running daemon, its connections and sessions"),
    ):
        probe = commands.add_parser(name, help=about)
        probe.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")
        probe.add_argument("--json", action="store_true", help="print JSON")
    _token_commands(
        commands.add_parser("token", help="create, list and revoke bearer tokens for HTTP")
    )
    bank = commands.add_parser(
        "bank", help="manage banks: list, back up, export, import, erase, check …"
    )
    if given[:1] == ["bank"]:  # building its parsers takes milliseconds that other commands save
        from daemon.commands.bank import add_arguments

        add_arguments(bank)
    source = commands.add_parser(
        "source", help="manage document sources: add, list, show, sync, watch, test, remove"
    )
    if given[:1] == ["source"]:
        from daemon.commands.source import add_arguments as add_source_arguments

        add_source_arguments(source)
    tool = commands.add_parser("tool", help="write, test and list Lua tools")
    if given[:1] == ["tool"]:
        from daemon.commands.tool import add_arguments as add_tool_arguments

        add_tool_arguments(tool)
    _setup_commands(commands, given)
    ctx = commands.add_parser("ctx", help="the commands of Context Harness, with its ctx.toml")
    if given[:1] == ["ctx"]:
        from daemon.commands.ctx.command import add_arguments as add_ctx_arguments

        add_ctx_arguments(ctx)
    _transfer_commands(commands, given)
    stop = commands.add_parser("stop", help="stop the daemon and wait until it has exited")
    stop.add_argument("--socket", metavar="PATH", help="unix socket of the daemon")
    return parser.parse_args(given, SimpleNamespace())


def _transfer_commands(commands: Any, given: list[str]) -> None:
    """The commands that move memories. Each adds its arguments only when it is called."""
    taking = commands.add_parser("import", help="import memories of other programs, and exports")
    giving = commands.add_parser("export", help="write a bank as JSON lines, Markdown or CSV")
    if given[:1] == ["import"]:
        from daemon.commands.importing import add_arguments

        add_arguments(taking)
    elif given[:1] == ["export"]:
        from daemon.commands.exporting import add_arguments as add_export_arguments

        add_export_arguments(giving)


def _transfer(chosen: SimpleNamespace, settings: Settings) -> int:
    if chosen.command == "import":
        from daemon.commands import importing

        return importing.run(chosen, settings, _administer_bank)
    from daemon.commands import exporting

    return exporting.run(chosen, settings, _administer_bank)


def _token_commands(parser: "argparse.ArgumentParser") -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    add = verbs.add_parser("add", help="create a token; it is printed once")
    add.add_argument("name", metavar="NAME", help="name of the token, used in logs")
    add.add_argument(
        "--bank",
        metavar="B",
        action="append",
        dest="banks",
        default=[],
        help="bank that the token may access; repeatable; all banks by default",
    )
    add.add_argument("--read-only", action="store_true", help="allow reading only")
    listing = verbs.add_parser("list", help="list names and rights, without the tokens")
    revoke = verbs.add_parser("revoke", help="revoke a token")
    revoke.add_argument("name", metavar="NAME")
    for verb in (add, listing, revoke):
        verb.add_argument("--file", metavar="PATH", dest="token_file", help="token file to use")


def _setup_commands(commands: "Any", given: list[str]) -> None:
    """The commands that connect clients. Each adds its arguments only when it is called."""
    setup = commands.add_parser("setup", help="connect MCP clients to recalld")
    if given[:1] == ["setup"]:
        from daemon.commands.setup import add_arguments

        add_arguments(setup)
    service = commands.add_parser("service", help="install or remove a service of this user")
    if given[:1] == ["service"]:
        from daemon.commands.service import add_arguments as add_service_arguments

        add_service_arguments(service)
    hook = commands.add_parser("hook", help="called by the hooks of a client")
    hook.add_argument("event", metavar="EVENT", help="session-start, pre-compact or session-end")
    hook.add_argument("--client", metavar="NAME", help="client that calls")
    hook.add_argument("--bank", metavar="NAME", help="bank to read and write")
    awareness = commands.add_parser(
        "awareness-setup", help="write the rules and the MCP file of an IDE for Awareness"
    )
    if given[:1] == ["awareness-setup"]:
        from daemon.commands.awareness_setup import add_arguments as add_awareness_arguments

        add_awareness_arguments(awareness)


def _server_flags(parser: "argparse.ArgumentParser") -> None:
    parser.add_argument("--socket", metavar="PATH", help="path of the unix socket")
    parser.add_argument("--fixtures", action="store_true", default=None, help="serve test fixtures")
    parser.add_argument("--dialects", metavar="A,B", help="dialects to serve; all by default")
    parser.add_argument(
        "--bank",
        metavar="NAME",
        help="bank for tools that name none; auto: one bank per repository",
    )


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; a failure is one line on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["hook"] and "--help" not in given:
        from daemon.commands import hook

        return hook.main(given[1:])  # without argparse: a client waits for it
    try:
        return _run(_parse_plain_health(given) or _parse(given))
    except KeyboardInterrupt:
        return 130
    except Exception as failure:
        exit = next((leaf for leaf in leaves(failure) if isinstance(leaf, Exit)), None)
        if exit is None:
            from daemon.operations import crash_report

            command = given[0] if given and given[0].isalpha() else ""
            exit = Exit(INTERNAL, crash_report.write(failure, command, os.environ))
        sys.stderr.write(f"recalld: {exit.message}\n")
        return exit.code


def _run(chosen: SimpleNamespace) -> int:
    command = chosen.command
    if command is None:
        raise Exit(
            USAGE,
            "no command given: use serve, stdio, health, status, bank, source, token, tool or stop",
        )
    given: dict[str, Any] = vars(chosen)
    if command in ("setup", "awareness-setup", "service"):
        return _setup(chosen)
    if command == "ctx":
        return _ctx(chosen)
    named = ["socket", "fixtures", "dialects", "bind", "token_file"]
    if command not in ("bank", "source"):  # there it does not name the bank for tools
        named.append("bank")
    flags = {f"server.{name}": given[name] for name in named if given.get(name) is not None}
    if command == "stdio":
        _check_descriptors()
    settings = load(flags, os.environ)
    if command != "health" and not given.get("spawned"):
        for warning in unknown_variables(os.environ):
            sys.stderr.write(f"recalld: {warning}\n")
    if settings.bank == "auto":
        from pathlib import Path

        from daemon.bridge.project_bank import bank_of

        # A daemon that a bridge started has no project; each bridge sends its own bank.
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

        return bank.run(chosen, settings, _administer_bank)
    if command == "source":
        from daemon.commands import source

        return source.run(chosen, settings, _administer_source)
    if command in ("import", "export"):
        return _transfer(chosen, settings)
    if command == "token":
        return _token(chosen, settings)
    if command == "tool":
        _without_rich()
        from daemon.commands import tool

        return tool.run(chosen, settings)
    return _serve(command, chosen, settings)


def _ctx(chosen: SimpleNamespace) -> int:
    _without_rich()
    from daemon.commands.ctx.command import Callbacks
    from daemon.commands.ctx.command import run as run_ctx

    def call(settings: Settings, name: str, arguments: "Mapping[str, Any]") -> dict[str, Any]:
        import anyio

        from daemon import app

        return anyio.run(app.call_tool, settings, name, arguments)

    def serve(settings: Settings) -> int:
        options = SimpleNamespace(spawned=False, ready_fd=None, no_http=False)
        return _serve("serve", options, settings)

    callbacks = Callbacks(administer_source=_administer_source, call_tool=call, serve=serve)
    return run_ctx(chosen, callbacks)


def _setup(chosen: SimpleNamespace) -> int:
    if chosen.command == "service":
        from daemon.commands import service

        return service.run(chosen)
    settings = load({}, os.environ)
    if chosen.command == "setup":
        from daemon.commands import setup

        return setup.run(chosen, settings)
    from daemon.commands import awareness_setup

    return awareness_setup.run(chosen, settings)


def _token(chosen: SimpleNamespace, settings: Settings) -> int:
    from daemon.commands import token

    if chosen.verb == "add":
        return token.add(settings, chosen.name, chosen.banks, read_only=chosen.read_only)
    if chosen.verb == "list":
        return token.show(settings)
    return token.revoke(settings, chosen.name)


def _administer_bank(
    settings: Settings, request: dict[str, Any], show: "Callable[[int, int, str], None]"
) -> dict[str, Any]:
    """Run a `recalld bank` command in this process; imports the engine."""
    _without_rich()
    import anyio

    from daemon import app

    def progress(done: int, total: int) -> None:
        show(done, total, "")

    return anyio.run(app.tend_bank, settings, request, progress)


def _administer_source(
    settings: Settings, request: dict[str, Any], show: "Callable[[int, int, str], None]"
) -> dict[str, Any]:
    """Run a `recalld source` command in this process; imports the engine."""
    _without_rich()
    import anyio

    from daemon import app

    return anyio.run(app.tend_source, settings, request, show)


def _check_descriptors() -> None:
    """Fail if descriptor 0 or 1 is closed; the next opened file would get its number."""
    try:
        os.fstat(0)
        os.fstat(1)
    except OSError:
        raise Exit(UNAVAILABLE, "stdin or stdout is closed; recalld stdio needs both") from None


def _serve(command: str, chosen: SimpleNamespace, settings: Settings) -> int:
    """Run `serve` or `stdio --embedded`; imports the engine."""
    from daemon.operations.descriptors import take_descriptors

    # Before the imports below, so that no library can print to the client's pipe.
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
    """Keep structlog from importing rich, which it does for console output that we never use.

    The import takes 70 ms. A None entry in `sys.modules` makes Python raise ImportError.
    """
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # typeshed does not allow None
