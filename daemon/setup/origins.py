"""Recognises users of the four seed systems, so that setup serves the tools they know.

A server of one of these systems in the same file decides: its user keeps the tool names that their
prompts and rules files use. Everybody else gets the native tools.
"""

import json
from collections.abc import Mapping
from typing import Any, Final, cast

from daemon.setup.clients import SERVER
from daemon.setup.formats.syntax import Key, lookup, name_of

NATIVE: Final = "native"
#: Words in the name or the command of a server, and the dialect of that system.
_SIGNS: Final = (
    ("claude-recall", "recall"),
    ("claude_recall", "recall"),
    ("hindsight", "hindsight"),
    ("awareness", "awareness"),
    ("context-harness", "harness"),
)


def dialects_for(data: Any, key: Key) -> str:
    """The dialects for a client, from the other servers in its list."""
    servers = lookup(data, key[:-1])
    found: list[str] = []
    if isinstance(servers, Mapping):
        items = list(cast("Mapping[str, Any]", servers).items())
    elif isinstance(servers, list):
        items = [(name_of(each), each) for each in cast("list[Any]", servers)]
    else:
        items = []
    for name, entry in items:
        words = f"{name} {json.dumps(entry, default=str)}".lower()
        if name != SERVER:
            found += [dialect for sign, dialect in _SIGNS if sign in words]
    return ",".join(dict.fromkeys(found)) or NATIVE
