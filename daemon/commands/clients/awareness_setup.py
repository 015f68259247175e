"""`recalld awareness-setup`: the setup command of the Awareness document.

It writes the rules file of one of six IDEs, and with `--configure-mcp` or one of the values the MCP
configuration of that IDE. The table of IDEs is that of `awareness_init`'s `setup_hints`. The MCP
configuration is written even if the rules are up to date.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.dialects.awareness import rules
from daemon.exit_codes import DEGRADED, OK, Exit
from daemon.setup.clients import Client, Scope, Server
from daemon.setup.entry_part import plan_entry
from daemon.setup.formats import text_files
from daemon.setup.formats.managed_text import Conflict, Markers, synced
from daemon.setup.formats.text_files import FileFault
from daemon.setup.ledger import Ledger
from daemon.setup.plan import carry_out
from daemon.setup.rules_part import rules_path

#: The MCP configuration of an IDE in a project, and the name of its server list.
_MCP_FILES: Final = {
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "claude-code": (".mcp.json", "mcpServers"),
    "windsurf": (".windsurf/mcp.json", "mcpServers"),
    "copilot": (".vscode/mcp.json", "servers"),
}
_DONE: Final = {"created": "Created", "appended": "Appended", "replaced": "Replaced"}
_DRY: Final = {"created": "create", "appended": "append to", "replaced": "replace"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = ", ".join(ide.name for ide in rules.IDES)
    parser.add_argument("--ide", help=f"{names}; found by the files of the project by default")
    parser.add_argument("--configure-mcp", action="store_true", help="also write the MCP file")
    parser.add_argument("--mcp-url", metavar="URL", help="address of the server")
    parser.add_argument("--api-key", metavar="KEY", help="bearer token of the server")
    parser.add_argument("--memory-id", metavar="ID", help="memory, which is a bank of recalld")
    parser.add_argument("--dry-run", action="store_true", help="show the changes, write nothing")
    parser.add_argument("--force", action="store_true", help="replace a file that is not managed")


def run(
    options: SimpleNamespace,
    settings: Settings,
    ask: Callable[[str], str] | None = None,
) -> int:
    """Sync the rules and the MCP configuration. `ask` poses a question on a terminal."""
    if ask is None and sys.stdin.isatty() and sys.stdout.isatty():
        ask = input
    project = Path.cwd()
    ide = _chosen(options.ide, project, os.environ)
    code = _sync_rules(ide, project, options)
    values = _mcp_values(options, settings, os.environ, ask)
    if values is not None:
        code = max(code, _sync_mcp(ide, project, values, options, settings))
    return code


def detect(project: Path, variables: Mapping[str, str]) -> rules.Ide | None:
    """The IDE whose files a project has, in the order of the Awareness document."""
    signs = (
        ("cursor", (project / ".cursor").exists()),
        ("claude-code", (project / "CLAUDE.md").exists() or bool(variables.get("CLAUDE_CODE"))),
        ("windsurf", (project / ".windsurfrules").exists() or (project / ".windsurf").exists()),
        ("cline", (project / ".clinerules").exists()),
        (
            "copilot",
            (project / ".github" / "copilot-instructions.md").exists()
            or (project / ".vscode" / "mcp.json").exists(),
        ),
        ("codex", (project / "AGENTS.md").exists()),
    )
    found = next((name for name, is_there in signs if is_there), None)
    return None if found is None else rules.recognise(found)


def _chosen(named: str | None, project: Path, variables: Mapping[str, str]) -> rules.Ide:
    if named is not None:
        ide = rules.recognise(named)
        if ide is None:
            known = ", ".join(each.name for each in rules.IDES)
            raise Exit(DEGRADED, f"--ide: {named!r} is not one of {known}")
        return ide
    ide = detect(project, variables)
    if ide is None:
        raise Exit(DEGRADED, "Could not auto-detect IDE; name it with --ide")
    return ide


def _sync_rules(ide: rules.Ide, project: Path, options: SimpleNamespace) -> int:
    wanted = rules.rules_for(ide)
    path = rules_path(project, wanted.rules_file)
    name = str(path.relative_to(project))
    markers = Markers(wanted.start_marker, wanted.end_marker)
    try:
        file = text_files.load(path)
        action, text = synced(
            file.text if file.exists else None,
            wanted.rules_content,
            markers,
            wanted.strategy,
            force=options.force,
        )
        if action != "current" and not options.dry_run:
            file.save(text, text_files.utc_day)
    except Conflict as conflict:
        print_lines([f"Conflict while syncing {name}: {conflict}"])
        return DEGRADED
    except FileFault as fault:
        print_lines([f"Conflict while syncing {name}: {fault.reason}"])
        return DEGRADED
    if action == "current":
        print_lines([f"{name} is already up to date"])
    elif options.dry_run:
        print_lines([f"Would {_DRY[action]} {name}"])
    else:
        print_lines([f"{_DONE[action]} {name}"])
    return OK


def _mcp_values(
    options: SimpleNamespace,
    settings: Settings,
    variables: Mapping[str, str],
    ask: Callable[[str], str] | None,
) -> dict[str, str] | None:
    """The values of the MCP configuration; None if it was not requested."""
    given = {
        "url": options.mcp_url or variables.get("AWARENESS_MCP_URL", ""),
        "key": options.api_key or variables.get("AWARENESS_API_KEY", ""),
        "memory": options.memory_id or variables.get("AWARENESS_MEMORY_ID", ""),
    }
    if not options.configure_mcp and not any(given.values()):
        return None
    default = f"http://{settings.bind}/mcp/awareness"
    if options.configure_mcp and ask is not None:
        questions = {
            "url": f"MCP URL [{default}]: ",
            "key": "API key [none]: ",
            "memory": "Memory id [default]: ",
        }
        for name, question in questions.items():
            given[name] = given[name] or ask(question).strip()
    given["url"] = given["url"] or default
    given["role"] = variables.get("AWARENESS_AGENT_ROLE", "builder_agent")
    given["name"] = variables.get("AWARENESS_MCP_SERVER_NAME", "awareness-memory")
    return given


def _sync_mcp(
    ide: rules.Ide,
    project: Path,
    values: dict[str, str],
    options: SimpleNamespace,
    settings: Settings,
) -> int:
    if ide.name not in _MCP_FILES:
        print_lines([f"Note: {ide.title} has no MCP file in a project; use `recalld setup`"])
        return OK
    name, container = _MCP_FILES[ide.name]
    entry = _entry(ide, values)
    client = Client(
        name=ide.name,
        title=ide.title,
        user=lambda _places: (),
        entry=_no_entry,
        key=(container, values["name"]),
    )
    ledger = Ledger(settings.directories.state / "setup.json")
    plan = plan_entry(client, project / name, entry, ledger, force=True)
    if not options.dry_run:
        plan = carry_out(plan, ledger)
    if plan.status in ("refused", "failed", "conflict"):
        print_lines([f"Conflict while syncing {name}: {plan.detail}"])
        return DEGRADED
    if plan.status == "current":
        print_lines([f"{name} is already up to date"])
        return OK
    is_new = plan.file is not None and not plan.file.exists
    verb = "create" if is_new else "update"
    done = "Created" if is_new else "Updated"
    print_lines([f"Would {verb} {name}" if options.dry_run else f"{done} {name}"])
    return OK


def _entry(ide: rules.Ide, values: dict[str, str]) -> dict[str, Any]:
    headers = {
        **({"Authorization": f"Bearer {values['key']}"} if values["key"] else {}),
        **({"X-Awareness-Memory-Id": values["memory"]} if values["memory"] else {}),
        "X-Awareness-Agent-Role": values["role"],
    }
    kind = {"type": "http"} if ide.name in ("claude-code", "copilot") else {}
    address = "serverUrl" if ide.name == "windsurf" else "url"
    return {**kind, address: values["url"], "headers": headers}


def _no_entry(_server: Server, _scope: Scope) -> None:
    return None
