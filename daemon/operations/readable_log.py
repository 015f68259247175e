"""Log lines for people: time, level, event and fields instead of JSON. Standard library only."""

import json
from collections.abc import Mapping
from typing import Any, cast


def readable(line: str) -> str:
    """A line of the JSON log as text; any other line unchanged."""
    try:
        event: Any = json.loads(line)
    except ValueError:
        return line
    return render(cast("dict[str, Any]", event)) if isinstance(event, dict) else line


def render(event: Mapping[str, Any]) -> str:
    """`22:14:01 info     daemon.ready  pid=12 version=0.1.0`."""
    fields = dict(event)
    moment = str(fields.pop("timestamp", ""))[11:19]
    level = str(fields.pop("level", ""))
    name = str(fields.pop("event", ""))
    rest = " ".join(f"{key}={_value(value)}" for key, value in fields.items())
    return f"{moment:8} {level:8} {name}{'  ' if rest else ''}{rest}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if value and " " not in value else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False, default=str)
