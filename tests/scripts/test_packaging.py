"""The packaging files agree with the code: versions, commands, tools and hook events."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from daemon.commands.clients.hook import EVENTS
from daemon.dialects.registry import build
from daemon.version import VERSION
from tests.support.toolkit import any_toolkit

ROOT = Path(__file__).parents[2]


def read(name: str) -> Any:
    return json.loads((ROOT / name).read_text())


def test_every_manifest_has_the_version_of_the_code() -> None:
    server = read("server.json")
    assert server["version"] == server["packages"][0]["version"] == VERSION
    assert read("scripts/packaging/mcpb/manifest.json")["version"] == VERSION
    assert read(".claude-plugin/plugin.json")["version"] == VERSION


def test_the_registry_limits_of_server_json_are_kept() -> None:
    server = read("server.json")
    assert len(server["description"]) <= 100
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])


def test_the_bundle_lists_the_native_tools() -> None:
    listed = {tool["name"] for tool in read("scripts/packaging/mcpb/manifest.json")["tools"]}
    assert listed == {spec.name for spec in build(["native"], any_toolkit()).specs()}


def test_the_plugin_starts_the_checkout_and_uses_known_events() -> None:
    plugin = read(".claude-plugin/plugin.json")
    command = plugin["mcpServers"]["recalld"]["command"]
    assert (ROOT / command.removeprefix("${CLAUDE_PLUGIN_ROOT}/")).is_file()
    commands = json.dumps(plugin["hooks"])
    assert set(re.findall(r" hook ([a-z-]+) ", commands)) == set(EVENTS)


def test_the_dockerfile_passes_the_linter() -> None:
    linter = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    if linter is None:
        pytest.skip("hadolint has no package for this machine")
    done = subprocess.run(
        [linter, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_the_variables_of_the_dockerfile_are_settings() -> None:
    from daemon.config import unknown_variables

    names = re.findall(r"(RECALLD_\w+)=", (ROOT / "Dockerfile").read_text())
    assert names
    assert list(unknown_variables(dict.fromkeys(names, "x"))) == []
