"""Plans for hooks (`recalld setup --hooks`): commands that a client runs at events of a session.

Four clients have a JSON file with a list of commands for each event. Our elements are those that
run `recalld hook`; all others stay. OpenCode has no such list: it loads a plugin file, which is
ours.
"""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct

from daemon.setup.clients import Client, Places, Scope, Server
from daemon.setup.formats import jsonc
from daemon.setup.formats.syntax import SyntaxFault
from daemon.setup.formats.text_files import TextFile
from daemon.setup.ledger import Ledger, restored
from daemon.setup.plan import Plan, guarded, recorded


class Hooks(Struct, frozen=True, kw_only=True):
    """The hooks of one client: its files, and its event for each of ours."""

    user: str
    project: str
    events: Mapping[str, str]
    shape: Literal["nested", "flat", "plugin"] = "nested"
    #: The limit for one call, in the unit of the client.
    timeout: int = 5


_USUAL: Final = {
    "session-start": "SessionStart",
    "pre-compact": "PreCompact",
    "session-end": "SessionEnd",
}
#: `~` is the home directory, `C` the configuration directory.
HOOKS: Final = {
    "claude-code": Hooks(
        user="~/.claude/settings.json", project=".claude/settings.json", events=_USUAL
    ),
    "codex": Hooks(
        user="~/.codex/hooks.json",
        project=".codex/hooks.json",
        # Codex has no event for the end of a session; `Stop` is the end of a turn.
        events={**_USUAL, "session-end": "Stop"},
    ),
    "gemini-cli": Hooks(
        user="~/.gemini/settings.json",
        project=".gemini/settings.json",
        events={**_USUAL, "pre-compact": "PreCompress"},
        timeout=5000,
    ),
    "cursor": Hooks(
        user="~/.cursor/hooks.json",
        project=".cursor/hooks.json",
        events={
            "session-start": "sessionStart",
            "pre-compact": "preCompact",
            "session-end": "sessionEnd",
        },
        shape="flat",
    ),
    "opencode": Hooks(
        user="C/opencode/plugins/recalld.js",
        project=".opencode/plugins/recalld.js",
        events={},
        shape="plugin",
    ),
}
_OURS: Final = re.compile(r"recalld['\"]? hook (?:session|pre)-")


def hooks_file(client: Client, scope: Scope, places: Places) -> Path | None:
    hooks = HOOKS.get(client.name)
    if hooks is None:
        return None
    if scope == "project":
        return places.project / hooks.project
    if client.name == "claude-code":
        return places.variable("CLAUDE_CONFIG_DIR", places.home / ".claude") / "settings.json"
    if client.name == "codex":
        return places.variable("CODEX_HOME", places.home / ".codex") / "hooks.json"
    base = places.config if hooks.user.startswith("C/") else places.home
    return base / hooks.user[2:]


def plan_hooks(client: Client, path: Path, server: Server, ledger: Ledger) -> Plan:
    """Plan to add or update our hooks in a file."""
    hooks = HOOKS[client.name]

    def compute(file: TextFile) -> Plan:
        plan = Plan(client=client.name, part="hooks", path=path, status="current", file=file)
        if hooks.shape == "plugin":
            wanted = plugin_text(server)
            if file.exists and file.text != wanted and "recalld setup" not in file.text:
                plan.status = "conflict"
                plan.detail = "the plugin file has other contents"
                return plan
            text = wanted
            had_ours = file.exists
        else:
            elements = {
                name: _element(hooks, event, client.name, server)
                for event, name in hooks.events.items()
            }
            present = _ours(jsonc.read(file.text))
            if present == {name: [element] for name, element in elements.items()}:
                return plan
            had_ours = bool(present)
            text = _without(file.text) if had_ours else file.text
            if hooks.shape == "flat" and "version" not in jsonc.read(text):
                text = jsonc.put(text, ("version",), 1)
            for name, element in elements.items():
                text = jsonc.append(text, ("hooks", name), element)
            _verify(file.text, text)
        if text != file.text:
            plan.status = "update" if had_ours else "add"
            plan.text = text
            plan.record = recorded(file, text, "hooks", (), ledger.find(path, "hooks"))
        return plan

    return guarded(client.name, "hooks", path, compute)


def plan_hooks_removal(client: Client, path: Path, ledger: Ledger) -> Plan:
    """Plan to remove our hooks, and everything that we created for them."""
    hooks = HOOKS[client.name]

    def compute(file: TextFile) -> Plan:
        plan = Plan(client=client.name, part="hooks", path=path, status="absent", file=file)
        if hooks.shape == "plugin":
            if file.exists and "recalld setup" in file.text:
                plan.status = "remove"
            return plan
        if not _ours(jsonc.read(file.text)):
            return plan
        record = ledger.find(path, "hooks")
        exact = restored(file.text, record.undo) if record else None
        plan.status = "remove"
        plan.text = _without(file.text) if exact is None or _ours(jsonc.read(exact)) else exact
        _verify(file.text, plan.text)
        if record and record.created_file and not _content(plan.text):
            plan.text = None
        return plan

    return guarded(client.name, "hooks", path, compute)


def hook_command(event: str, client: str, server: Server) -> str:
    """The shell command of one hook."""
    words = [f"{name}={value}" for name, value in server.env.items()]
    words = ["env", *words] if words else []
    words += [server.command, "hook", event, "--client", client]
    if "--bank" in server.args:
        words += ["--bank", server.args[server.args.index("--bank") + 1]]
    return shlex.join(words)


def plugin_text(server: Server) -> str:
    """The OpenCode plugin: it calls the same command and passes the messages of the session."""
    command = hook_command("EVENT", "opencode", server)
    return _PLUGIN.replace("COMMAND", json.dumps(shlex.split(command)))


def _element(hooks: Hooks, event: str, client: str, server: Server) -> dict[str, Any]:
    command = hook_command(event, client, server)
    if hooks.shape == "flat":
        return {"command": command, "timeout": hooks.timeout}
    return {"hooks": [{"type": "command", "command": command, "timeout": hooks.timeout}]}


def _lists(data: Any) -> dict[str, list[Any]]:
    hooks: Any = cast("dict[str, Any]", data).get("hooks") if isinstance(data, dict) else None
    if not isinstance(hooks, dict):
        return {}
    items = cast("dict[str, Any]", hooks).items()
    return {name: cast("list[Any]", each) for name, each in items if isinstance(each, list)}


def _is_ours(element: Any) -> bool:
    return _OURS.search(json.dumps(element).replace('\\"', '"')) is not None


def _ours(data: Any) -> dict[str, list[Any]]:
    found = {name: [each for each in lst if _is_ours(each)] for name, lst in _lists(data).items()}
    return {name: elements for name, elements in found.items() if elements}


def _without(text: str) -> str:
    """The text without our elements, and without lists that they leave empty."""
    for name, elements in _lists(jsonc.read(text)).items():
        places = [index for index, each in enumerate(elements) if _is_ours(each)]
        if len(places) == len(elements) and places:
            text = jsonc.drop(text, ("hooks", name))
            continue
        for index in reversed(places):
            text = jsonc.discard(text, ("hooks", name), index)
    if jsonc.read(text).get("hooks") == {}:
        text = jsonc.drop(text, ("hooks",))
    return text


def _verify(before: str, after: str) -> None:
    """Refuse a change that would touch anything but our own elements."""
    if _others(before) != _others(after):
        raise SyntaxFault("the structure of the file does not permit a safe change", 1, 1)


def _others(text: str) -> dict[str, Any]:
    data = dict(cast("dict[str, Any]", jsonc.read(text)))
    hooks: Any = data.pop("hooks", None)
    data.pop("version", None)
    if isinstance(hooks, dict):
        kept = {
            name: [item for item in cast("list[Any]", each) if not _is_ours(item)]
            if isinstance(each, list)
            else each
            for name, each in cast("dict[str, Any]", hooks).items()
        }
        data["hooks"] = {name: each for name, each in kept.items() if each != []}
    return {name: value for name, value in data.items() if value != {}}


def _content(text: str) -> dict[str, Any]:
    return {name: each for name, each in jsonc.read(text).items() if name != "version" and each}


_PLUGIN: Final = """\
// Written by recalld setup. `recalld setup opencode --remove` deletes this file.
import { spawn } from "node:child_process"

const command = COMMAND

const run = (event, payload) =>
  new Promise((resolve) => {
    try {
      const words = command.map((word) => (word === "EVENT" ? event : word))
      const child = spawn(words[0], words.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
      let output = ""
      child.on("error", () => resolve(""))
      child.stdin.on("error", () => {})
      child.stdout.on("data", (chunk) => (output += chunk))
      child.on("close", () => resolve(output))
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })

export const Recalld = async ({ client, directory }) => {
  const briefing = await run("session-start", { cwd: directory })
  const capture = async (event, id) => {
    try {
      const found = await client.session.messages({ path: { id } })
      const messages = (found.data ?? []).map(({ info, parts }) => ({
        role: info.role,
        content: parts.filter((part) => part.type === "text" && !part.synthetic),
      }))
      await run(event, { cwd: directory, session_id: id, messages })
    } catch {
      // A hook must not disturb the session.
    }
  }
  return {
    "experimental.chat.system.transform": async (_input, output) => {
      if (briefing) output.system.push(briefing)
    },
    "experimental.session.compacting": async (input) => {
      await capture("pre-compact", input.sessionID)
    },
    event: async ({ event }) => {
      if (event.type === "session.idle") await capture("session-end", event.properties.sessionID)
    },
  }
}
"""
