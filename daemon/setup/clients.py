"""The MCP clients that `recalld setup` knows: their files, formats and entries.

The table holds facts about other programs: the location of their configuration for the user and for
a project, the key of the server list, and the shape of an entry. `docs/clients.md` describes
them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from daemon.setup.formats.syntax import MISSING, Item, Key, lookup

Format = Literal["json", "toml", "yaml"]
Scope = Literal["user", "project"]
SERVER: Final = "recalld"


class Places(Struct, frozen=True, kw_only=True):
    """The directories that file locations depend on."""

    home: Path
    project: Path
    variables: Mapping[str, str]
    platform: str

    @property
    def config(self) -> Path:
        named = self.variables.get("XDG_CONFIG_HOME", "")
        return Path(named) if named.startswith("/") else self.home / ".config"

    @property
    def applications(self) -> Path:
        """The folder in which desktop applications keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library" / "Application Support"
        return self.config

    def variable(self, name: str, default: Path) -> Path:
        named = self.variables.get(name, "")
        return Path(named) if named.startswith("/") else default


class Server(Struct, frozen=True, kw_only=True):
    """How a client reaches recalld: a command, or a URL."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    url: str = ""


#: One location: alternative names of one file. The first one that exists is used, else the first.
Names = tuple[Path, ...]


class Client(Struct, frozen=True, kw_only=True):
    name: str
    title: str
    user: Callable[[Places], tuple[Names, ...]]
    entry: Callable[[Server, Scope], dict[str, Any] | None]
    #: Locations in a project; empty if the client has none.
    project: tuple[tuple[str, ...], ...] = ()
    format: Format = "json"
    key: Key = ("mcpServers", SERVER)
    #: Folders whose presence shows that the client is installed, and its commands.
    traces: Callable[[Places], tuple[Path, ...]] = lambda _places: ()
    commands: tuple[str, ...] = ()
    #: The text of a new file, before our entry is added.
    skeleton: str = ""
    #: Something that the user must know after a change.
    note: str = ""
    project_note: str = ""

    def files(self, scope: Scope, places: Places) -> list[Path]:
        """The files to change: every location that the user has, or the first one."""
        if scope == "user":
            locations = self.user(places)
        else:
            locations = tuple(
                tuple(places.project / name for name in names) for names in self.project
            )
        present = [names for names in locations if any(name.exists() for name in names)]
        if not present:
            present = [names for names in locations if names[0].parent.exists()][:1]
        return [
            next((name for name in names if name.exists()), names[0])
            for names in (present or locations[:1])
        ]

    def key_in(self, data: Any) -> Key:
        """The key of our entry. Newer versions of OpenCode keep servers one level deeper."""
        if self.name == "opencode":
            deeper = lookup(data, ("mcp", "servers"))
            if isinstance(deeper, dict) and lookup(deeper, ("type",)) is MISSING:
                return ("mcp", "servers", SERVER)
        return self.key


def _standard(server: Server, _scope: Scope) -> dict[str, Any]:
    if server.url:
        return {"url": server.url}
    return {"command": server.command, "args": list(server.args), **_env(server)}


def _typed(server: Server, _scope: Scope) -> dict[str, Any]:
    if server.url:
        return {"type": "http", "url": server.url}
    return {"type": "stdio", **_standard(server, _scope)}


def _stdio_only(server: Server, scope: Scope) -> dict[str, Any] | None:
    return None if server.url else _standard(server, scope)


def _copilot_cli(server: Server, scope: Scope) -> dict[str, Any]:
    entry = _typed(server, scope)
    return {**entry, "tools": ["*"]} if scope == "user" else entry


def _windsurf(server: Server, scope: Scope) -> dict[str, Any]:
    return {"serverUrl": server.url} if server.url else _standard(server, scope)


def _cline(server: Server, scope: Scope) -> dict[str, Any]:
    kind = {"type": "streamableHttp"} if server.url else {}
    return {**kind, **_standard(server, scope), "disabled": False}


def _gemini(server: Server, scope: Scope) -> dict[str, Any]:
    kind = {"type": "http"} if server.url else {}
    return {**_standard(server, scope), **kind}


def _opencode(server: Server, _scope: Scope) -> dict[str, Any]:
    if server.url:
        return {"type": "remote", "url": server.url, "enabled": True}
    entry = {"type": "local", "command": [server.command, *server.args], "enabled": True}
    return {**entry, **_env(server, "environment")}


def _continue(server: Server, scope: Scope) -> dict[str, Any]:
    kind = {"type": "streamable-http"} if server.url else {}
    return {"name": SERVER, **kind, **_standard(server, scope)}


def _goose(server: Server, _scope: Scope) -> dict[str, Any]:
    common = {"enabled": True, "name": SERVER, "timeout": 60}
    if server.url:
        return {"type": "streamable_http", "uri": server.url, **common}
    command = {"type": "stdio", "cmd": server.command, "args": list(server.args)}
    return {**command, "envs": dict(server.env), **common}


def _env(server: Server, name: str = "env") -> dict[str, Any]:
    return {name: dict(server.env)} if server.env else {}


def _one(path: Callable[[Places], Path]) -> Callable[[Places], tuple[Names, ...]]:
    return lambda places: ((path(places),),)


def _claude_folder(places: Places) -> Path:
    return places.variable("CLAUDE_CONFIG_DIR", places.home / ".claude")


def _claude_json(places: Places) -> Path:
    return places.variable("CLAUDE_CONFIG_DIR", places.home) / ".claude.json"


def _codex_folder(places: Places) -> Path:
    return places.variable("CODEX_HOME", places.home / ".codex")


def _code_user(places: Places) -> Path:
    return places.applications / "Code" / "User"


CLIENTS: Final = (
    Client(
        name="claude-code",
        title="Claude Code",
        user=_one(_claude_json),
        project=((".mcp.json",),),
        entry=_typed,
        traces=lambda places: (_claude_folder(places), _claude_json(places)),
        commands=("claude",),
        project_note="Claude Code asks for approval of a project's servers when it starts",
    ),
    Client(
        name="claude-desktop",
        title="Claude Desktop",
        user=_one(lambda p: p.applications / "Claude" / "claude_desktop_config.json"),
        entry=_stdio_only,
        traces=lambda p: (p.applications / "Claude",),
        note="Claude Desktop rewrites its file: quit it, and test with --check after a restart",
    ),
    Client(
        name="cursor",
        title="Cursor",
        user=_one(lambda p: p.home / ".cursor" / "mcp.json"),
        project=((".cursor/mcp.json",),),
        entry=_standard,
        traces=lambda p: (p.home / ".cursor",),
        commands=("cursor", "cursor-agent"),
    ),
    Client(
        name="vscode",
        title="VS Code (Copilot)",
        user=_one(lambda p: _code_user(p) / "mcp.json"),
        project=((".vscode/mcp.json",),),
        key=("servers", SERVER),
        entry=_typed,
        traces=lambda p: (_code_user(p),),
        commands=("code",),
    ),
    Client(
        name="copilot-cli",
        title="Copilot CLI",
        user=_one(lambda p: p.home / ".copilot" / "mcp-config.json"),
        project=((".mcp.json",),),
        entry=_copilot_cli,
        traces=lambda p: (p.home / ".copilot",),
        commands=("copilot",),
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        user=lambda p: (
            (p.home / ".codeium" / "windsurf" / "mcp_config.json",),
            (p.config / "devin" / "mcp_config.json",),
        ),
        project=((".devin/mcp_config.json",),),
        entry=_windsurf,
        traces=lambda p: (p.home / ".codeium" / "windsurf", p.config / "devin"),
        commands=("windsurf",),
    ),
    Client(
        name="cline",
        title="Cline",
        user=lambda p: (
            (
                _code_user(p)
                / "globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
            ),
            (p.home / ".cline" / "data" / "settings" / "cline_mcp_settings.json",),
        ),
        entry=_cline,
        traces=lambda p: (
            _code_user(p) / "globalStorage" / "saoudrizwan.claude-dev",
            p.home / ".cline",
        ),
        commands=("cline",),
    ),
    Client(
        name="codex",
        title="Codex",
        user=_one(lambda p: _codex_folder(p) / "config.toml"),
        project=((".codex/config.toml",),),
        format="toml",
        key=("mcp_servers", SERVER),
        entry=_standard,
        traces=lambda p: (_codex_folder(p),),
        commands=("codex",),
        project_note="Codex reads a project's file only if the project is trusted",
    ),
    Client(
        name="gemini-cli",
        title="Gemini CLI",
        user=_one(lambda p: p.home / ".gemini" / "settings.json"),
        project=((".gemini/settings.json",),),
        entry=_gemini,
        traces=lambda p: (p.home / ".gemini" / "settings.json",),
        commands=("gemini",),
        note="Gemini CLI starts servers in trusted folders only",
        project_note="Gemini CLI starts servers in trusted folders only",
    ),
    Client(
        name="opencode",
        title="OpenCode",
        user=lambda p: (
            (
                p.config / "opencode" / "opencode.json",
                p.config / "opencode" / "opencode.jsonc",
            ),
        ),
        project=(("opencode.json", "opencode.jsonc"),),
        key=("mcp", SERVER),
        entry=_opencode,
        traces=lambda p: (p.config / "opencode",),
        commands=("opencode",),
    ),
    Client(
        name="zed",
        title="Zed",
        user=_one(lambda p: p.config / "zed" / "settings.json"),
        project=((".zed/settings.json",),),
        key=("context_servers", SERVER),
        entry=_standard,
        traces=lambda p: (p.config / "zed",),
        commands=("zed", "zeditor"),
    ),
    Client(
        name="continue",
        title="Continue",
        user=_one(lambda p: p.home / ".continue" / "config.yaml"),
        project=((".continue/mcpServers/recalld.yaml",),),
        format="yaml",
        key=("mcpServers", Item(SERVER)),
        skeleton="name: recalld\nversion: 1.0.0\nschema: v1\n",
        entry=_continue,
        traces=lambda p: (p.home / ".continue",),
        commands=("cn",),
    ),
    Client(
        name="goose",
        title="Goose",
        user=_one(lambda p: p.config / "goose" / "config.yaml"),
        format="yaml",
        key=("extensions", SERVER),
        entry=_goose,
        traces=lambda p: (p.config / "goose",),
        commands=("goose",),
    ),
    Client(
        name="kiro",
        title="Kiro",
        user=_one(lambda p: p.home / ".kiro" / "settings" / "mcp.json"),
        project=((".kiro/settings/mcp.json",),),
        entry=_standard,
        traces=lambda p: (p.home / ".kiro",),
        commands=("kiro", "kiro-cli"),
    ),
    Client(
        name="amp",
        title="Amp",
        user=lambda p: ((p.config / "amp" / "settings.json", p.config / "amp" / "settings.jsonc"),),
        project=((".amp/settings.json", ".amp/settings.jsonc"),),
        key=("amp.mcpServers", SERVER),
        entry=_standard,
        traces=lambda p: (p.config / "amp",),
        commands=("amp",),
    ),
    Client(
        name="jetbrains",
        title="JetBrains AI Assistant and Junie",
        user=lambda p: (
            (p.home / ".ai" / "mcp" / "mcp.json",),
            (p.home / ".junie" / "mcp" / "mcp.json",),
        ),
        project=((".ai/mcp/mcp.json",), (".junie/mcp/mcp.json",)),
        entry=_standard,
        traces=lambda p: (p.home / ".ai", p.home / ".junie", p.applications / "JetBrains"),
    ),
)
BY_NAME: Final = {client.name: client for client in CLIENTS}
