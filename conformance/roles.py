"""Roles: the tools of the server under test that cases may call.

Some cases need a tool that is slow, fails or reports progress. Each such behaviour is a role. A
tool is called only if somebody vouches for it:

- the user named it (`--tool NAME=JSON` or a roles file),
- the user said that the server is a test server (`--fixtures`), which vouches for the fixture names
in
  `KNOWN`, or
- the server marks it with `readOnlyHint: true`.

No tool is called because of its name alone: a tool called `echo` may send mail to every customer.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# role -> (tool name, arguments); the case supplies a value for each "{placeholder}".
KNOWN: dict[str, tuple[tuple[str, dict[str, Any]], ...]] = {
    "echo": (("echo", {"text": "{text}"}), ("echo", {"message": "{text}"})),
    "slow": (
        ("slow", {"seconds": "{seconds}", "steps": "{steps}"}),
        ("trigger-long-running-operation", {"duration": "{seconds}", "steps": "{steps}"}),
        ("longRunningOperation", {"duration": "{seconds}", "steps": "{steps}"}),
    ),
    "progress": (
        ("test_tool_with_progress", {}),
        ("slow", {"seconds": 0.2, "steps": 4}),
        ("trigger-long-running-operation", {"duration": 1, "steps": 4}),
        ("longRunningOperation", {"duration": 1, "steps": 4}),
    ),
    "fail": (("fail", {"message": "{text}"}), ("test_error_handling", {})),
    "crash": (("crash", {}),),
    "print": (("print", {"text": "{text}"}),),
    "big": (("big", {"bytes": "{bytes}"}),),
    "tally": (("tally", {}),),
    "structured": (
        ("structured", {"n": 7}),
        ("get-structured-content", {"location": "Chicago"}),
        ("structuredContent", {"location": "Chicago"}),
    ),
    "nonfinite": (("nonfinite", {}),),
    "simple": (("test_simple_text", {}), ("tally", {}), ("get-tiny-image", {})),
    "image": (("test_image_content", {}), ("get-tiny-image", {}), ("getTinyImage", {})),
    "audio": (("test_audio_content", {}),),
    "embedded": (
        ("test_embedded_resource", {}),
        ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
    ),
    "mixed": (("test_multiple_content_types", {}), ("get-resource-links", {"count": 2})),
    "logging": (("test_tool_with_logging", {}), ("test_logging_tool", {})),
    "request_logging": (("test_logging_tool", {}), ("test_tool_with_logging", {})),
    "sampling": (("test_sampling", {"prompt": "say something"}),),
    "elicitation": (("test_elicitation", {"message": "who are you?"}),),
    "missing_capability": (("test_missing_capability", {}),),
    "change_tools": (("test_trigger_tool_change", {}),),
    "change_prompts": (("test_trigger_prompt_change", {}),),
    "asks": (("test_input_required_result_elicitation", {}),),
    "asks_state": (("test_input_required_result_request_state", {}),),
    "asks_signed": (("test_input_required_result_tampered_state", {}),),
    "asks_capable": (("test_input_required_result_capabilities", {}),),
    "mirrored": (("test_mirrored_arguments", {"region": "{text}", "count": "{count}"}),),
    "reconnect": (("test_reconnection", {}),),
    "schema_2020": (("json_schema_2020_12_tool", {}),),
    "lasting": (("slow_compute", {"seconds": "{seconds}"}),),
    "lasting_fails": (("failing_job", {}),),
    "lasting_breaks": (("protocol_error_job", {}),),
    "lasting_asks": (("confirm_delete", {"filename": "nothing.txt"}),),
    "lasting_asks_twice": (("multi_input", {}),),
}


@dataclass(frozen=True)
class Role:
    """A tool that plays a role, and the template of its arguments."""

    tool: str
    template: Mapping[str, Any]

    def arguments(self, **values: Any) -> dict[str, Any]:
        """The arguments with placeholders filled in; those without a value are left out."""
        filled: dict[str, Any] = {}
        for name, value in self.template.items():
            if isinstance(value, str) and re.fullmatch(r"\{\w+\}", value):
                if values.get(value[1:-1]) is not None:
                    filled[name] = values[value[1:-1]]
            else:
                filled[name] = value
        return filled

    def plays(self) -> set[str]:
        """The roles of a tool named with `--tool`: its placeholders decide."""
        words = {value for value in self.template.values() if isinstance(value, str)}
        if "{text}" in words:
            return {"echo"}
        return {"slow"} if "{seconds}" in words else {"simple"}


def read_roles(path: Path) -> dict[str, Role]:
    """Read a roles file: `[role]` tables with `tool` and `arguments`."""
    table = tomllib.loads(path.read_text("utf-8"))
    roles: dict[str, Role] = {}
    for name, row in table.items():
        if name not in KNOWN:
            raise ValueError(f"{path}: unknown role {name!r}; roles are {', '.join(KNOWN)}")
        roles[name] = _read_role(f"{path}: role {name!r}", row)
    return roles


def _read_role(where: str, row: Any) -> Role:
    match row:
        case {"tool": str(tool), "arguments": dict(arguments)}:
            return Role(tool, arguments)
        case {"tool": str(tool)} if "arguments" not in row:
            return Role(tool, {})
    raise ValueError(f"{where} needs a string `tool` and an optional table `arguments`")


@dataclass(frozen=True)
class Vouched:
    """The tools that cases may call, apart from those that the server marks as read-only."""

    roles: Mapping[str, Role] = field(default_factory=dict)
    tools: tuple[Role, ...] = ()
    fixtures: bool = False

    def allows(self, tool: Mapping[str, Any]) -> bool:
        """Whether a case may call this listed tool."""
        name = tool.get("name")
        if is_read_only(tool) or any(role.tool == name for role in self.tools):
            return True
        if any(role.tool == name for role in self.roles.values()):
            return True
        return self.fixtures and any(name == known for row in KNOWN.values() for known, _ in row)


def is_read_only(tool: Mapping[str, Any]) -> bool:
    hints = tool.get("annotations")
    return isinstance(hints, dict) and hints.get("readOnlyHint") is True


def read_tool(text: str) -> Role:
    """Read `--tool NAME=JSON`: a tool that may be called, and its arguments."""
    name, equals, arguments = text.partition("=")
    try:
        template = json.loads(arguments) if equals else {}
    except ValueError as error:
        raise ValueError(f"--tool {name}: the arguments are not JSON ({error})") from error
    if not name or not isinstance(template, dict):
        raise ValueError(f"--tool needs NAME or NAME={{JSON object}}, not {text!r}")
    return Role(name, template)


def find(role: str, tools: Iterable[dict[str, Any]], vouched: Vouched) -> Role | None:
    """The tool that plays `role`, or None."""
    by_name = {tool.get("name"): tool for tool in tools if isinstance(tool, dict)}
    if role in vouched.roles:
        return vouched.roles[role] if vouched.roles[role].tool in by_name else None
    for given in vouched.tools:
        if given.tool in by_name and role in given.plays():
            return given
    for name, template in KNOWN[role]:
        tool = by_name.get(name)
        if tool is not None and vouched.allows(tool) and _fits(tool, template):
            return Role(name, template)
    guess = {"echo": _echo, "slow": _slow, "simple": _simple, "structured": _structured}.get(role)
    if guess is not None:
        for listed, tool in by_name.items():
            found = guess(tool) if vouched.allows(tool) else None
            if isinstance(listed, str) and found is not None:
                return Role(listed, found)
    return None


def calls(tools: Iterable[dict[str, Any]], vouched: Vouched) -> list[Role]:
    """One harmless call for each tool that cases may call and whose arguments are known."""
    found: dict[str, Role] = {}
    listed = [tool for tool in tools if isinstance(tool.get("name"), str) and vouched.allows(tool)]
    for tool in listed:
        name = str(tool["name"])
        given = [role for role in (*vouched.tools, *vouched.roles.values()) if role.tool == name]
        given += [
            Role(n, t) for row in KNOWN.values() for n, t in row if n == name and _fits(tool, t)
        ]
        if _simple(tool) is not None:
            given.append(Role(name, {}))
        if given:
            found[name] = given[0]
    return list(found.values())


def _properties(tool: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        return {}, []
    properties, required = schema.get("properties"), schema.get("required")
    return (
        properties if isinstance(properties, dict) else {},
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else [],
    )


def _fits(tool: Mapping[str, Any], template: Mapping[str, Any]) -> bool:
    """Whether the template has all required arguments of the tool and no unknown ones."""
    properties, required = _properties(tool)
    return set(required) <= set(template) and (not properties or set(template) <= set(properties))


def _type(properties: Mapping[str, Any], name: str) -> Any:
    schema = properties.get(name)
    return schema.get("type") if isinstance(schema, dict) else None


def _echo(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments for a tool named like echo that requires exactly one string, or None."""
    properties, required = _properties(tool)
    if "echo" not in str(tool.get("name", "")).lower() or len(required) != 1:
        return None
    if _type(properties, required[0]) != "string":
        return None
    return {required[0]: "{text}"}


def _slow(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """Arguments for a tool named like sleep that takes seconds, or None."""
    name = str(tool.get("name", "")).lower()
    properties, required = _properties(tool)
    if not re.search(r"slow|sleep|wait|delay|long.?running", name) or len(required) > 1:
        return None
    for parameter in ("seconds", "duration", "delay", "secs"):
        if _type(properties, parameter) in ("number", "integer") and set(required) <= {parameter}:
            return {parameter: "{seconds}"}
    return None


def _simple(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    """No arguments, for a tool that requires none."""
    return None if _properties(tool)[1] else {}


def _structured(tool: Mapping[str, Any]) -> dict[str, Any] | None:
    return _simple(tool) if isinstance(tool.get("outputSchema"), dict) else None
