"""Plans for the rules file of a client (`recalld setup --rules`).

A rules file tells the model when to use its memory. The text is the server's `instructions`, or
the Awareness rules for the Awareness dialect, in a block between markers.
"""

from pathlib import Path
from typing import Final

from daemon.dialects import registry
from daemon.dialects.awareness import rules as awareness
from daemon.setup.clients import Client, Places, Scope
from daemon.setup.formats.managed_text import Conflict, Markers, Strategy, removed, synced
from daemon.setup.formats.text_files import TextFile
from daemon.setup.ledger import Ledger, restored
from daemon.setup.plan import Plan, guarded, recorded

MARKERS: Final = Markers("<!-- RECALLD_RULES_START -->", "<!-- RECALLD_RULES_END -->")
AWARENESS_MARKERS: Final = Markers(awareness.START, awareness.END)
#: The rules file in a project, and the one for all projects. `C` is the configuration directory,
#: `~` the home directory. The second one is empty if the client has none.
FILES: Final = {
    "claude-code": ("CLAUDE.md", "~/.claude/CLAUDE.md"),
    "cursor": (".cursor/rules/recalld.mdc", ""),
    "vscode": (".github/copilot-instructions.md", ""),
    "copilot-cli": ("AGENTS.md", "~/.copilot/copilot-instructions.md"),
    "windsurf": (".windsurfrules", "~/.codeium/windsurf/memories/global_rules.md"),
    "cline": (".clinerules", ""),
    "codex": ("AGENTS.md", "~/.codex/AGENTS.md"),
    "gemini-cli": ("GEMINI.md", "~/.gemini/GEMINI.md"),
    "opencode": ("AGENTS.md", "C/opencode/AGENTS.md"),
    "zed": ("AGENTS.md", ""),
    "continue": (".continue/rules/recalld.md", "~/.continue/rules/recalld.md"),
    "goose": (".goosehints", "C/goose/.goosehints"),
    "kiro": (".kiro/steering/recalld.md", "~/.kiro/steering/recalld.md"),
    "amp": ("AGENTS.md", "C/amp/AGENTS.md"),
    "jetbrains": (".junie/guidelines.md", ""),
}
_FRONT_MATTER: Final = (
    "---\ndescription: Long-term memory (recalld)\nglobs:\nalwaysApply: true\n---\n"
)


def rules_file(client: Client, scope: Scope, places: Places) -> Path | None:
    """The rules file of a client; None if it has none in this scope."""
    in_project, for_user = FILES.get(client.name, ("", ""))
    if scope == "project":
        return rules_path(places.project, in_project) if in_project else None
    if for_user.startswith("C/"):
        return places.config / for_user[2:]
    return places.home / for_user[2:] if for_user else None


def rules_path(project: Path, name: str) -> Path:
    """A rules file in a project. Where newer versions use a folder, a file of ours in it."""
    path = project / name
    return path / "recalld.md" if path.is_dir() else path


def content(client: Client, dialects: list[str]) -> str:
    if dialects == ["awareness"]:
        ide = awareness.recognise(client.name)
        return awareness.rules_for(ide or awareness.IDES[0]).rules_content
    front = _FRONT_MATTER if client.name == "cursor" else ""
    body = f"# Memory\n\n{registry.instructions(dialects)}"
    return f"{front}{MARKERS.start}\n{body}\n{MARKERS.end}\n"


def plan_rules(client: Client, path: Path, text: str, ledger: Ledger, *, force: bool) -> Plan:
    markers = AWARENESS_MARKERS if awareness.START in text else MARKERS
    strategy: Strategy = "managed_file" if client.name == "cursor" else "managed_block"

    def compute(file: TextFile) -> Plan:
        plan = Plan(client=client.name, part="rules", path=path, status="current", file=file)
        try:
            action, new = synced(
                file.text if file.exists else None, text, markers, strategy, force=force
            )
        except Conflict as conflict:
            plan.status, plan.detail = "conflict", str(conflict)
            return plan
        if action != "current":
            plan.status = "update" if action == "replaced" else "add"
            plan.text = new
            plan.record = recorded(file, new, text, (), ledger.find(path, "rules"))
        return plan

    return guarded(client.name, "rules", path, compute)


def plan_rules_removal(client: Client, path: Path, ledger: Ledger) -> Plan:
    def compute(file: TextFile) -> Plan:
        plan = Plan(client=client.name, part="rules", path=path, status="absent", file=file)
        record = ledger.find(path, "rules")
        try:
            left = removed(file.text, MARKERS)
            if left == file.text and record is not None:
                left = removed(file.text, AWARENESS_MARKERS)
        except Conflict as conflict:
            plan.status, plan.detail = "conflict", str(conflict)
            return plan
        if left == file.text:
            return plan
        plan.status = "remove"
        exact = restored(file.text, record.undo) if record else None
        plan.text = left if exact is None else exact
        front = plan.text.replace(_FRONT_MATTER, "").strip()
        if record and record.created_file and not front:
            plan.text = None
        return plan

    return guarded(client.name, "rules", path, compute)
