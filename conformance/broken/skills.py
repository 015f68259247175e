"""The skills extension of the reference server: one skill with two files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from conformance.broken.errors import RpcError

if TYPE_CHECKING:
    from conformance.broken.reference import Call

EXTENSION = "io.modelcontextprotocol/skills"
ROOT = "skill://reference/greeting"
MATTER = {"name": "greeting", "description": "Greets people."}
FILES = {
    f"{ROOT}/SKILL.md": "---\nname: greeting\ndescription: Greets people.\n---\nSay hello.\n",
    f"{ROOT}/words.txt": "hello\n",
}


def entry() -> dict[str, Any]:
    files = [
        {
            "uri": uri,
            "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}",
            "size": len(text.encode()),
        }
        for uri, text in FILES.items()
    ]
    return {"uri": f"{ROOT}/SKILL.md", "frontmatter": dict(MATTER), "resources": files}


def listing(call: Call) -> None:
    call.answer({"result": {"skills": [entry()], "ttlMs": 60_000, "cacheScope": "private"}})


def get(call: Call) -> None:
    if call.params.get("uri") != f"{ROOT}/SKILL.md":
        raise RpcError(-32602, "no such skill", {"uri": call.params.get("uri")})
    call.answer({"result": {**entry(), "ttlMs": 60_000, "cacheScope": "private"}})


METHODS = {"skills/list": listing, "skills/get": get}
