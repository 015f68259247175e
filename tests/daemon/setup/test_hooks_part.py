"""Hooks are added beside the hooks of others, updated, and removed without a trace."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from daemon.setup.clients import BY_NAME, Server
from daemon.setup.formats import jsonc
from daemon.setup.hooks_part import (
    HOOKS,
    hooks_file,
    plan_hooks,
    plan_hooks_removal,
    plugin_text,
)
from daemon.setup.ledger import Ledger
from daemon.setup.plan import Plan, carry_out
from tests.daemon.setup.states import places

SERVER = Server(
    command="/opt/my tools/recalld",
    args=("stdio", "--bank", "work"),
    env={"RECALLD_HOME": "/data"},
)
JSON_CLIENTS = [name for name, hooks in HOOKS.items() if hooks.shape != "plugin"]
THEIRS = """{
  // mine
  "model": "x",
  "hooks": {
    "SessionStart": [
      { "hooks": [{ "type": "command", "command": "echo hi" }] } // kept
    ]
  }
}
"""


class Case:
    def __init__(self, name: str, root: Path, text: str | None) -> None:
        self.client = BY_NAME[name]
        path = hooks_file(self.client, "user", places(root))
        assert path is not None
        self.path = path
        self.ledger = Ledger(root / "setup.json")
        if text is not None:
            path.parent.mkdir(parents=True)
            path.write_text(text)

    def add(self, server: Server = SERVER) -> Plan:
        return carry_out(plan_hooks(self.client, self.path, server, self.ledger), self.ledger)

    def remove(self) -> Plan:
        return carry_out(plan_hooks_removal(self.client, self.path, self.ledger), self.ledger)


@pytest.mark.parametrize("name", HOOKS)
@pytest.mark.parametrize("text", [None, THEIRS, "{}", ""], ids=["missing", "theirs", "{}", "empty"])
def test_add_repeat_change_and_remove(name: str, text: str | None, tmp_path: Path) -> None:
    if name == "opencode" and text is not None:
        pytest.skip("the plugin file is ours alone")
    case = Case(name, tmp_path, text)
    assert case.add().status == "add"
    added = case.path.read_text()
    assert case.add().status == "current"
    assert case.path.read_text() == added
    assert case.add(Server(command="/other/recalld", args=("stdio",))).status == "update"
    assert "/opt/my tools" not in case.path.read_text()
    assert case.remove().status == "remove"
    assert (case.path.read_text() if case.path.exists() else None) == text
    assert case.remove().status == "absent"


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_every_event_runs_our_command_with_the_bank(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path, THEIRS)
    case.add()
    data = jsonc.read(case.path.read_text())
    for event, theirs in HOOKS[name].events.items():
        shown = json.dumps(data["hooks"][theirs][-1])
        expected = (
            "env RECALLD_HOME=/data '/opt/my tools/recalld' hook"
            f" {event} --client {name} --bank work"
        )
        assert expected in shown
    assert data["hooks"]["SessionStart"][0] == {
        "hooks": [{"type": "command", "command": "echo hi"}]
    }
    assert "// kept" in case.path.read_text()


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_removal_keeps_hooks_that_others_added_later(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path, None)
    case.add()
    event = HOOKS[name].events["session-end"]
    text = jsonc.append(case.path.read_text(), ("hooks", event), {"command": "theirs"})
    case.path.write_text(text)
    assert case.remove().status == "remove"
    assert jsonc.read(case.path.read_text())["hooks"] == {event: [{"command": "theirs"}]}


@pytest.mark.parametrize("name", JSON_CLIENTS)
def test_a_broken_file_is_refused(name: str, tmp_path: Path) -> None:
    case = Case(name, tmp_path, '{"hooks": ')
    plan = case.add()
    assert (plan.status, plan.detail[:17]) == ("refused", "line 1, column 11")
    assert case.path.read_text() == '{"hooks": '


def test_a_foreign_plugin_file_is_a_conflict(tmp_path: Path) -> None:
    case = Case("opencode", tmp_path, "export const x = 1\n")
    assert case.add().status == "conflict"
    assert case.remove().status == "absent"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_opencode_plugin_passes_the_briefing_and_the_messages(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = tmp_path / "recalld"
    program.write_text(f'#!/bin/sh\necho "$2" >> {log}; cat >> {log}; echo >> {log}; echo brief\n')
    program.chmod(0o755)
    (tmp_path / "plugin.mjs").write_text(plugin_text(Server(command=str(program))))
    (tmp_path / "main.mjs").write_text(
        """
import { Recalld } from "./plugin.mjs"
const parts = [{ type: "text", text: "hello" }, { type: "tool" }]
const data = [{ info: { role: "user" }, parts }]
const client = { session: { messages: async () => ({ data }) } }
const hooks = await Recalld({ client, directory: "/src/x" })
const output = { system: [] }
await hooks["experimental.chat.system.transform"]({}, output)
await hooks["experimental.session.compacting"]({ sessionID: "s" })
await hooks.event({ event: { type: "session.idle", properties: { sessionID: "s" } } })
console.log(JSON.stringify(output))
"""
    )
    done = subprocess.run(
        ["node", str(tmp_path / "main.mjs")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert json.loads(done.stdout) == {"system": ["brief\n"]}
    events = log.read_text().splitlines()
    assert events[::2] == ["session-start", "pre-compact", "session-end"]
    assert json.loads(events[3]) == {
        "cwd": "/src/x",
        "session_id": "s",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
    }
