"""Settings of scripts: `[tools]`, `[tools.script.NAME]` and `[agents.…]`."""

from pathlib import Path

import pytest

from daemon.config import load
from daemon.config.scripts import NAME_RULE, InlineAgent, ScriptEntry, Scripts
from daemon.exit_codes import CONFIG, Exit


def scripts(home: Path, text: str) -> Scripts:
    (home / "config.toml").write_text(text)
    return load({}, {"RECALLD_HOME": str(home)}).scripts


def test_scripts_are_off_by_default(tmp_path: Path) -> None:
    assert not scripts(tmp_path, "").are_used


def test_a_relative_folder_starts_at_the_config_file(tmp_path: Path) -> None:
    found = scripts(
        tmp_path, "[tools]\ndir = 'tools'\n[tools.script.a]\n[tools.script.b]\npath = 'x.lua'"
    )
    assert found.dir == tmp_path / "tools"
    assert [found.path_of(entry) for entry in found.tools] == [
        tmp_path / "tools" / "a.lua",
        tmp_path / "x.lua",
    ]


def test_a_script_has_rights_and_a_configuration(tmp_path: Path) -> None:
    text = """
[tools.script.ticket]
path = "/x/ticket.lua"
timeout = 2
allow_hosts = ["example.com"]
env = ["KEY"]
[tools.script.ticket.config]
project = "OPS"
[agents.script.guide]
path = "/x/guide.lua"
[agents.inline.reviewer]
system_prompt = "Review."
description = "Reviews"
tools = ["search"]
"""
    found = scripts(tmp_path, text)
    assert found.tools == (
        ScriptEntry(
            name="ticket",
            path="/x/ticket.lua",
            seconds=2.0,
            hosts=("example.com",),
            environment=("KEY",),
            config={"project": "OPS"},
        ),
    )
    assert found.agents == (ScriptEntry(name="guide", path="/x/guide.lua"),)
    assert found.inline_agents == (InlineAgent("reviewer", "Reviews", "Review.", ("search",)),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tools.script.a]\npath = 'x'\ntimout = 1",
            "line 3: tools.script.a.timout: is not a key of this table; did you mean timeout?",
        ),
        ("[tools]\nscript = 3", "line 2: tools.script: must be a table; write [tools.script.NAME]"),
        ("[tools.script]\na = 3", "line 2: tools.script.a: must be a table"),
        ("[tools.script.'a b']", f"line 1: tools.script.a b: {NAME_RULE}"),
        (
            "\n[tools.script.a]\ntimeout = 'x'",
            "line 3: tools.script.a.timeout: 'x' is not a number from 0.01 to 3600",
        ),
        ("[tools.script.a]\nconfig = 1", "line 2: tools.script.a.config: must be a table"),
        ("[agents.inline.a]\ntools = []", "line 1: agents.inline.a: system_prompt is required"),
        ("[tools]\nmemory_mb = 1", "tools.memory_mb: 1 is not a whole number from 8 to 8192"),
    ],
)
def test_a_mistake_names_file_line_key_and_rule(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Exit) as caught:
        scripts(tmp_path, text)
    assert caught.value.code == CONFIG
    assert str(tmp_path / "config.toml") in caught.value.message
    assert caught.value.message.endswith(message)
