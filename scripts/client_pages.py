"""Writes docs/clients/*.md from the client table of `recalld setup`; a test compares them.

.venv/bin/python -m scripts.client_pages --write
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from daemon.setup.clients import CLIENTS, Client, Places, Scope, Server
from daemon.setup.hooks_part import HOOKS, hooks_file
from daemon.setup.plan import Editor
from daemon.setup.rules_part import rules_file

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ROOT / "docs" / "clients"
_COMMAND: Final = Server(command="/path/to/recalld", args=("stdio", "--dialects", "native"))
_URL: Final = Server(url="http://127.0.0.1:7331/mcp")
_TRIED: Final = {
    "claude-code": "2.1.197, by `claude mcp list`",
    "codex": "0.166.0, by `mcpServerStatus/list` of its app server",
    "gemini-cli": "0.61.0, by `gemini mcp list` in a trusted folder",
    "opencode": "1.18.33, by `opencode mcp list`",
}


def page(client: Client) -> str:
    """The page of one client."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        linux = Places(home=root, project=root / "project", variables={}, platform="linux")
        rows = ["| scope | location |", "|---|---|"]
        scopes: tuple[Scope, Scope] = ("user", "project")
        for scope in scopes:
            if scope == "project" and not client.project:
                continue
            names = [
                _shown(path, root)
                for location in (
                    client.user(linux)
                    if scope == "user"
                    else tuple((linux.project / name,) for (name, *_) in client.project)
                )
                for path in location[:1]
            ]
            rows.append(f"| {scope} | {', '.join(names)} |")
        for label, find in (("rules", rules_file), ("hooks", hooks_file)):
            for scope in scopes:
                path = find(client, scope, linux)
                if path is not None:
                    rows.append(f"| {scope}, `--{label}` | {_shown(path, root)} |")
    lines = [f"# {client.title}", "", "```sh", f"recalld setup {client.name}", "```", ""]
    lines += [_tested(client), "", *rows, ""]
    notes = [note for note in (client.note, client.project_note) if note]
    lines += [f"- {note[0].upper()}{note[1:]}." for note in dict.fromkeys(notes)]
    lines += [""] if notes else []
    lines += ["The entry, without other contents of the file:", ""]
    lines += _block(client, _COMMAND)
    http = client.entry(_URL, "user")
    if http is None:
        lines += ["", f"{client.title} has no HTTP servers in this file."]
    else:
        lines += ["", "With `--http`, for a daemon started by `recalld serve`:", ""]
        lines += _block(client, _URL)
    if client.name in HOOKS:
        lines += ["", "`--hooks` is described in [Clients](../clients.md#hooks)."]
    return "\n".join(lines) + "\n"


def _tested(client: Client) -> str:
    tried = _TRIED.get(client.name)
    if tried is not None:
        return f"Tested with version {tried} (`scripts/clients --setup`)."
    return (
        "The file and the entry follow the documentation of the client; they were not tried here."
    )


def _block(client: Client, server: Server) -> list[str]:
    entry = client.entry(server, "user")
    text = Editor(client.format).put("", client.key, entry)
    return [f"```{client.format}", *text.rstrip("\n").split("\n"), "```"]


def _shown(path: Path, root: Path) -> str:
    project = root / "project"
    if path.is_relative_to(project):
        return f"`{path.relative_to(project)}`"
    return f"`~/{path.relative_to(root)}`"


def main() -> int:
    stale = 0
    for client in CLIENTS:
        path = PAGES / f"{client.name}.md"
        if not path.exists() or path.read_text() != page(client):
            stale += 1
            if "--write" in sys.argv:
                path.write_text(page(client))
            else:
                print(f"{path.relative_to(ROOT)} is not up to date; run with --write")
    return 1 if stale and "--write" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
