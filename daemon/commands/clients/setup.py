"""`recalld setup`: connects MCP clients to this installation.

Without names it finds the installed clients, shows the changes and asks once. Without a terminal it
asks nothing: named clients are set up, and without names the changes are only shown. A client that
cannot be set up does not stop the others.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from daemon.bridge.project_bank import bank_of
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.dialect_names import chosen
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, USAGE, Exit
from daemon.setup import executable, hooks_part, origins, rules_part
from daemon.setup.clients import BY_NAME, CLIENTS, Client, Places, Scope, Server
from daemon.setup.entry_part import plan_entry, plan_removal
from daemon.setup.formats import text_files
from daemon.setup.formats.syntax import SyntaxFault, lookup
from daemon.setup.formats.text_files import FileFault
from daemon.setup.handshake import Proof, prove
from daemon.setup.ledger import Ledger
from daemon.setup.plan import Editor, Part, Plan, Status, carry_out
from daemon.setup.report import Line, as_data, table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("clients", metavar="CLIENT", nargs="*", help="; ".join(BY_NAME))
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("--user", action="store_true", help="for all your projects (the default)")
    scope.add_argument("--project", action="store_true", help="for the project in this directory")
    parser.add_argument("--http", action="store_true", help="connect by HTTP to recalld serve")
    parser.add_argument("--bank", metavar="NAME", help="bank of the client; auto: one per project")
    parser.add_argument("--dialects", metavar="A,B", help="tools to serve; native by default")
    parser.add_argument("--rules", action="store_true", help="also write the client's rules file")
    parser.add_argument("--hooks", action="store_true", help="also install hooks")
    parser.add_argument("--dry-run", action="store_true", help="show the changes, write nothing")
    parser.add_argument("--force", action="store_true", help="replace an entry of another origin")
    parser.add_argument("--remove", action="store_true", help="remove everything setup wrote")
    parser.add_argument("--check", action="store_true", help="only test the present entries")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(
    options: SimpleNamespace,
    settings: Settings,
    ask: Callable[[str], str] | None = None,
) -> int:
    """Set up, remove or check clients. `ask` poses a question; None: there is no terminal."""
    if ask is None and sys.stdin.isatty() and sys.stdout.isatty() and not options.json:
        ask = input
    setup = _Setup(options, settings)
    if options.check:
        return setup.finish(setup.check())
    named = bool(options.clients)
    if not setup.clients and not setup.elsewhere:
        raise Exit(DEGRADED, "no client was found; name one: recalld setup CLIENT")
    if named or options.dry_run or options.force or ask is None:
        is_shown_only = options.dry_run or not (named or options.force)
        lines = setup.lines(dry=is_shown_only, force=options.force)
        conflicts = [each for each in lines if each.plan.status == "conflict"]
        if ask is not None and conflicts and not is_shown_only:
            print_lines(table(conflicts, setup.places.home))
            if _yes(ask("Replace these? [y/N] ")):
                lines = setup.lines(dry=False, force=True)
        if is_shown_only and not options.dry_run and not options.json:
            print_lines(["Nothing was changed. Name the clients to set up: recalld setup CLIENT…"])
        return setup.finish(lines)
    planned = setup.lines(dry=True, force=False)
    print_lines(table(planned, setup.places.home))
    conflicts = [each for each in planned if each.plan.status == "conflict"]
    if not conflicts and not any(each.plan.is_change for each in planned):
        return _code(planned)
    question = "Apply these changes, and replace the conflicting parts? [y/N] "
    if not conflicts:
        question = "Apply these changes? [y/N] "
    if not _yes(ask(question)):
        print_lines(["Nothing was changed."])
        return OK
    return setup.finish(setup.lines(dry=False, force=True))


def _yes(answer: str) -> bool:
    return answer.strip().lower() in ("y", "yes")


def _code(lines: Sequence[Line]) -> int:
    faults = [each for each in lines if each.is_fault]
    if not faults:
        return OK
    is_io = all(each.plan.status == "failed" for each in faults)
    return CANNOT_CREATE if is_io else DEGRADED


class _Setup:
    """One run: its options, the directories and the clients."""

    def __init__(self, options: SimpleNamespace, settings: Settings) -> None:
        self._options = options
        self._settings = settings
        self.places = Places(
            home=Path.home(),
            project=Path.cwd(),
            variables=os.environ,
            platform=sys.platform,
        )
        self._scope: Scope = "project" if options.project else "user"
        self._ledger = Ledger(settings.directories.state / "setup.json")
        self.clients = _named(options.clients) or [
            client for client in CLIENTS if _is_installed(client, self.places)
        ]
        if options.clients and self._scope == "project":
            for client in self.clients:
                if not client.project:
                    raise Exit(USAGE, f"{client.name}: has no file in a project; use --user")
        self.clients = [each for each in self.clients if self._scope == "user" or each.project]
        if options.dialects is not None:
            try:
                chosen(options.dialects)
            except LookupError as error:
                raise Exit(USAGE, f"--{error}") from None

    def lines(self, *, dry: bool, force: bool) -> list[Line]:
        found: list[Line] = []
        for client in self.clients:
            for path in client.files(self._scope, self.places):
                found += self._parts(client, path, dry=dry, force=force)
        seen = {(each.plan.part, each.plan.path) for each in found}
        for client, part, path in self.elsewhere:
            if (part, path) not in seen:
                found += self._removal(client, part, path, dry=dry, force=force)
        return found

    @property
    def elsewhere(self) -> list[tuple[Client, str, Path]]:
        """Everything that setup ever wrote, for a removal that names neither client nor project."""
        if not self._options.remove or self._options.clients or self._options.project:
            return []
        recorded = self._ledger.parts()
        return [(BY_NAME[name], part, path) for name, part, path in recorded if name in BY_NAME]

    def _removal(
        self, client: Client, part: str, path: Path, *, dry: bool, force: bool
    ) -> list[Line]:
        if part == "entry":
            plan = plan_removal(client, path, self._ledger, force=force)
        elif part == "rules":
            plan = rules_part.plan_rules_removal(client, path, self._ledger)
        else:
            plan = hooks_part.plan_hooks_removal(client, path, self._ledger)
        if plan.status == "absent":
            return []
        plan = plan if dry else carry_out(plan, self._ledger)
        return [Line(plan=plan, is_done=not dry)]

    def check(self) -> list[Line]:
        """Start the present entry of each client, and report those without one."""
        found: list[Line] = []
        for client in self.clients:
            for path in client.files(self._scope, self.places):
                entry = self._present(client, path)
                if isinstance(entry, Plan):
                    found.append(Line(plan=entry, is_done=True))
                    continue
                status: Status = "absent" if entry is None else "current"
                plan = Plan(client=client.name, part="entry", path=path, status=status)
                proof = None if entry is None else self._prove(entry)
                found.append(Line(plan=plan, is_done=True, proof=proof))
        return found

    def finish(self, lines: Sequence[Line]) -> int:
        if self._options.json:
            print_lines([json.dumps({"results": as_data(lines)}, ensure_ascii=False)])
        else:
            print_lines(table(lines, self.places.home))
        return _code(lines)

    def _parts(self, client: Client, path: Path, *, dry: bool, force: bool) -> list[Line]:
        found = [self._entry(client, path, dry=dry, force=force)]
        if self._options.rules or self._options.remove:
            found += self._rules(client, path, dry=dry, force=force)
        if self._options.hooks or self._options.remove:
            found += self._hooks(client, path, dry=dry)
        return found

    def _hooks(self, client: Client, entry_path: Path, *, dry: bool) -> list[Line]:
        path = hooks_part.hooks_file(client, self._scope, self.places)
        if path is None:
            detail = f"{client.title} documents no hooks"
            return (
                [] if self._options.remove else [_unsupported(client, "hooks", entry_path, detail)]
            )
        if self._options.remove:
            return self._removal(client, "hooks", path, dry=dry, force=False)
        server = self._command(client, entry_path)
        plan = hooks_part.plan_hooks(client, path, server, self._ledger)
        plan = plan if dry else carry_out(plan, self._ledger)
        return [Line(plan=plan, is_done=not dry)]

    def _rules(self, client: Client, entry_path: Path, *, dry: bool, force: bool) -> list[Line]:
        path = rules_part.rules_file(client, self._scope, self.places)
        if path is None:
            if self._options.remove:
                return []
            detail = f"{client.title} has no rules file here"
            detail += "" if self._scope == "project" else "; use --project"
            return [_unsupported(client, "rules", entry_path, detail)]
        if self._options.remove:
            return self._removal(client, "rules", path, dry=dry, force=force)
        names = chosen(self._dialects(client, entry_path))
        text = rules_part.content(client, names)
        plan = rules_part.plan_rules(client, path, text, self._ledger, force=force)
        plan = plan if dry else carry_out(plan, self._ledger)
        return [Line(plan=plan, is_done=not dry)]

    def _entry(self, client: Client, path: Path, *, dry: bool, force: bool) -> Line:
        if self._options.remove:
            plan = plan_removal(client, path, self._ledger, force=force)
            plan = plan if dry else carry_out(plan, self._ledger)
            return Line(plan=plan, is_done=not dry)
        entry = client.entry(self._server(client, path), self._scope)
        if entry is None:
            detail = f"{client.title} has no HTTP servers in its file; leave --http out"
            return _unsupported(client, "entry", path, detail)
        plan = plan_entry(client, path, entry, self._ledger, force=force)
        plan = plan if dry else carry_out(plan, self._ledger)
        works = not dry and (plan.is_change or plan.status == "current")
        written = self._present(client, path) if works else None
        proof = self._prove(written) if isinstance(written, dict) else None
        note = client.project_note if self._scope == "project" else client.note
        notes = [note] if note and not dry and plan.is_change else []
        return Line(plan=plan, is_done=not dry, proof=proof, notes=notes)

    def _server(self, client: Client, path: Path) -> Server:
        if self._options.http:
            return Server(url=self._url())
        return self._command(client, path)

    def _command(self, client: Client, path: Path) -> Server:
        dialects = self._dialects(client, path)
        bank = self._options.bank
        if bank is None and self._scope == "project":
            bank = bank_of(self.places.project)
        args = ["stdio"]
        args += ["--bank", bank] if bank else []
        args += ["--dialects", dialects] if dialects else []
        return Server(
            command=executable.own_command(),
            args=tuple(args),
            env=executable.carried_variables(),
        )

    def _dialects(self, client: Client, path: Path) -> str:
        """The requested dialects, else those of the user's former system, else the native one."""
        if self._options.dialects is not None:
            return str(self._options.dialects)
        try:
            data = Editor(client.format).read(text_files.load(path).text)
        except (SyntaxFault, FileFault):
            return origins.NATIVE  # the plan of the entry reports it
        return origins.dialects_for(data, client.key_in(data))

    def _url(self) -> str:
        """The endpoint of `recalld serve`; one dialect has an endpoint of its own."""
        host, _, port = self._settings.bind.rpartition(":")
        host = "127.0.0.1" if host in ("", "0.0.0.0", "[::]") else host
        dialects = self._options.dialects or ""
        part = f"/{dialects}" if dialects and "," not in dialects else ""
        return f"http://{host}:{port}/mcp{part}"

    def _present(self, client: Client, path: Path) -> dict[str, Any] | Plan | None:
        """Our entry as the file has it; None if there is none; a plan if it cannot be read."""
        try:
            data = Editor(client.format).read(text_files.load(path).text)
        except (SyntaxFault, FileFault) as fault:
            reason = fault.reason if isinstance(fault, FileFault) else str(fault)
            return Plan(
                client=client.name, part="entry", path=path, status="refused", detail=reason
            )
        found = lookup(data, client.key_in(data))
        return cast("dict[str, Any]", found) if isinstance(found, dict) else None

    def _prove(self, entry: dict[str, Any]) -> Proof:
        return prove(entry, os.environ, self.places.project)


def _unsupported(client: Client, part: Part, path: Path, detail: str) -> Line:
    plan = Plan(client=client.name, part=part, path=path, status="unsupported", detail=detail)
    return Line(plan=plan, is_done=False)


def _named(names: Sequence[str]) -> list[Client]:
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], BY_NAME, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known: {', '.join(BY_NAME)}"
        raise Exit(USAGE, f"{unknown[0]}: is not a client that setup knows{hint}")
    return [BY_NAME[name] for name in dict.fromkeys(names)]


def _is_installed(client: Client, places: Places) -> bool:
    if any(path.exists() for path in client.traces(places)):
        return True
    return any(shutil.which(name, path=places.variables.get("PATH")) for name in client.commands)
