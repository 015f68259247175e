"""The command line: parses arguments, loads settings, runs a command and returns its exit code."""

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from daemon.config import Settings, unknown_variables
from daemon.config import load as load_settings
from daemon.exit_codes import INTERNAL, OK, UNAVAILABLE, Exit, leaves

#: Commands whose options `--bank`, `--dialects` … are not settings of this process.
OWN_FLAGS = frozenset({"setup", "awareness-setup", "hook", "service"})
#: Commands that use rich on a terminal.
IN_COLOUR = frozenset({"search", "recent", "list", "show"})

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _parse_plain_health(given: list[str]) -> SimpleNamespace | None:
    """Parse the plain forms of `recalld health` without argparse, because probes run often."""
    if given == ["health"] or given == ["health", "--json"]:
        return SimpleNamespace(command="health", socket=None, json=len(given) > 1)
    if len(given) == 3 and given[:2] == ["health", "--socket"]:
        return SimpleNamespace(command="health", socket=given[2], json=False)
    return None


def _parse(given: list[str]) -> SimpleNamespace:
    from daemon.commandline.parser import parse

    return parse(given)


def main(arguments: list[str] | None = None) -> int:
    """Run a command and return its exit code; a failure is one line on stderr."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["hook"] and "--help" not in given:
        from daemon.commands.clients import hook

        return hook.main(given[1:])  # without argparse: a client waits for it
    if not IN_COLOUR.intersection(given[:1]):
        _without_rich()
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
        from daemon.commandline.parser import help_text

        sys.stdout.write(help_text())
        return OK
    given: dict[str, Any] = vars(chosen)
    if command == "ctx":
        return _ctx(chosen)
    if command in OWN_FLAGS:
        return _run_from_table(chosen, load_settings({}, os.environ))
    named = ["socket", "fixtures", "dialects", "bind", "token_file"]
    # In these commands, --bank does not name the bank for tools.
    if command not in ("bank", "source"):
        named.append("bank")
    flags = {f"server.{name}": given[name] for name in named if given.get(name) is not None}
    if command == "stdio":
        _check_descriptors()
    settings = load_settings(flags, os.environ)
    if command != "health" and not given.get("spawned"):
        for warning in unknown_variables(os.environ):
            sys.stderr.write(f"recalld: {warning}\n")
    if settings.bank == "auto":
        from pathlib import Path

        from daemon.bridge.project_bank import bank_of

        # A daemon that a bridge started has no project; each bridge sends its own bank.
        settings.bank = "" if given.get("spawned") else bank_of(Path.cwd())
    if command == "stdio":
        _explain_on_a_terminal()
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
    if command in ("serve", "stdio"):
        return _serve(command, chosen, settings)
    return _run_from_table(chosen, settings)


def _run_from_table(chosen: SimpleNamespace, settings: Settings) -> int:
    from daemon.commandline.parser import find, load

    command = find(chosen.command)
    assert command is not None
    code: int = load(command.run)(chosen, settings)
    return code


def _explain_on_a_terminal() -> None:
    """A person who runs `recalld stdio` would otherwise see nothing happen."""
    if os.isatty(0):
        sys.stderr.write(
            "recalld stdio is started by MCP clients and waits for JSON-RPC messages on stdin.\n"
            "`recalld setup` connects a client; `recalld add` and `recalld search` work at a"
            " prompt.\nPress Ctrl-D to end.\n"
        )


def _ctx(chosen: SimpleNamespace) -> int:
    from daemon.commands.ctx.command import Callbacks
    from daemon.commands.ctx.command import run as run_ctx

    def call(settings: Settings, name: str, arguments: "Mapping[str, Any]") -> dict[str, Any]:
        import anyio

        from daemon import app

        return anyio.run(app.call_tool, settings, name, arguments)

    def serve(settings: Settings) -> int:
        options = SimpleNamespace(spawned=False, ready_fd=None, no_http=False)
        return _serve("serve", options, settings)

    def complete(shell: str) -> list[str]:
        from daemon.commandline.completion import script

        return script(shell)

    callbacks = Callbacks(
        administer_source=_administer_source,
        administer_bank=_administer_bank,
        call_tool=call,
        serve=serve,
        complete=complete,
    )
    return run_ctx(chosen, callbacks)


def _transfer(chosen: SimpleNamespace, settings: Settings) -> int:
    if chosen.command == "import":
        from daemon.commands import importing

        return importing.run(chosen, settings, _administer_bank)
    from daemon.commands import exporting

    return exporting.run(chosen, settings, _administer_bank)


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
    import anyio

    from daemon import app

    def progress(done: int, total: int) -> None:
        show(done, total, "")

    return anyio.run(app.tend_bank, settings, request, progress)


def _administer_source(
    settings: Settings, request: dict[str, Any], show: "Callable[[int, int, str], None]"
) -> dict[str, Any]:
    """Run a `recalld source` command in this process; imports the engine."""
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
    import anyio

    from daemon import app

    if descriptors is not None:
        return anyio.run(app.serve_stdio, settings, descriptors)
    lock = None
    if chosen.spawned:
        os.chdir("/")
    else:
        from daemon.bridge.attach import take_over

        lock = take_over(settings)
    return anyio.run(
        lambda: app.serve(
            settings,
            is_spawned=chosen.spawned,
            ready=chosen.ready_fd,
            http=not chosen.no_http,
            start_lock=lock,
        )
    )


def _without_rich() -> None:
    """Keep structlog from importing rich, which it does for console output that we never use.

    The import takes 70 ms. A None entry in `sys.modules` makes Python raise ImportError.
    """
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]  # typeshed does not allow None
