"""Reads the name of the client from its first message, for the session that it resumes.

A legacy client names itself in `initialize`, a modern one in the metadata of every request. A name
that cannot be read is no error: the daemon then starts a new session. Standard library only.
"""

import json
from typing import Any, Final, cast

_LONGEST: Final = 200
_MODERN: Final = "io.modelcontextprotocol/clientInfo"


def client_name(line: bytes) -> str | None:
    """The client's name in a message; None if there is none."""
    try:
        message: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    params = _member(message, "params")
    about = _member(params, "clientInfo") or _member(_member(params, "_meta"), _MODERN)
    name: Any = about.get("name")
    is_usable = isinstance(name, str) and name.isprintable() and 0 < len(name) <= _LONGEST
    return name if is_usable else None


def _member(value: Any, name: str) -> dict[str, Any]:
    found = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
