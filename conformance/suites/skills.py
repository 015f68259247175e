"""E: the skills extension (SEP-2640), for servers that declare it.

The text of the extension is not part of the specification yet, so its rules are *ours* here.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from conformance.check import NotApplicable, case, need
from conformance.client.frames import show
from conformance.client.results import result_of
from conformance.context import Context

EXTENSION = "io.modelcontextprotocol/skills"
UNKNOWN = "skill://mcp-conform/no-such-skill/SKILL.md"
FILE = "/SKILL.md"
READ = 20
"""The number of files that are read to compare their digests."""


def _declared(ctx: Context) -> None:
    extensions = ctx.facts.capabilities.get("extensions")
    if not isinstance(extensions, dict) or EXTENSION not in extensions:
        raise NotApplicable("the server does not declare the skills extension")


def _listed(ctx: Context) -> list[dict[str, Any]]:
    """The entries of the first page of skills/list."""
    _declared(ctx)
    found = result_of(ctx.peer.call("skills/list", {}), "skills/list").get("skills")
    need(isinstance(found, list), f"skills/list gives the skills {found!r}")
    entries = [entry for entry in found or [] if isinstance(entry, dict)]
    need(len(entries) == len(found or []), "skills/list has an entry that is not an object")
    if not entries:
        raise NotApplicable("the server lists no skills")
    return entries


@case("E20a")
def _resources_too(ctx: Context) -> None:
    _declared(ctx)
    need(ctx.offers("resources"), "the server declares skills, but not resources")


@case("E20b")
def _complete(ctx: Context) -> None:
    for entry in _listed(ctx):
        uri, matter = entry.get("uri"), entry.get("frontmatter")
        need(isinstance(uri, str) and uri.endswith(FILE), f"the uri of a skill is {uri!r}")
        for name in ("name", "description"):
            value = matter.get(name) if isinstance(matter, dict) else None
            need(isinstance(value, str) and value, f"{uri}: frontmatter.{name} is {value!r}")
        files = entry.get("resources")
        need(files == "dynamic" or isinstance(files, list), f"{uri}: resources is {files!r}")


@case("E20c")
def _named_by_folder(ctx: Context) -> None:
    for entry in _listed(ctx):
        folder = str(entry.get("uri")).removesuffix(FILE).rpartition("/")[2]
        name = (entry.get("frontmatter") or {}).get("name")
        need(folder == name, f"the skill {name!r} is in the folder {folder!r}")


@case("E20d")
def _got(ctx: Context) -> None:
    entry = _listed(ctx)[0]
    frame = ctx.peer.call("skills/get", {"uri": entry.get("uri")})
    result = result_of(frame, "skills/get")
    told = result.get("skill", result)
    for name in ("uri", "frontmatter"):
        same = isinstance(told, dict) and told.get(name) == entry.get(name)
        need(same, f"skills/get gives another {name}: {show(frame.raw)}")


@case("E20e")
def _unknown(ctx: Context) -> None:
    _declared(ctx)
    frame = ctx.peer.call("skills/get", {"uri": UNKNOWN})
    need(frame.kind == "error", f"a skill that does not exist: {show(frame.raw)}")
    need(frame.code == -32602, f"a skill that does not exist gave {frame.code!r}")


@case("E20f")
def _digests(ctx: Context) -> None:
    files = [
        (row, entry.get("uri"))
        for entry in _listed(ctx)
        if isinstance(entry.get("resources"), list)
        for row in entry["resources"]
    ]
    if not files:
        raise NotApplicable("no skill lists its files")
    for row, skill in files[:READ]:
        uri = row.get("uri") if isinstance(row, dict) else None
        need(isinstance(uri, str), f"{skill}: a file without a uri: {row!r}")
        read = result_of(ctx.peer.call("resources/read", {"uri": uri}), "resources/read")
        body = _bytes(read)
        need(row.get("size") == len(body), f"{uri}: size is {row.get('size')}, it has {len(body)}")
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        need(row.get("digest") == digest, f"{uri}: the digest is {row.get('digest')!r}")


def _bytes(read: dict[str, Any]) -> bytes:
    contents = read.get("contents")
    first = contents[0] if isinstance(contents, list) and contents else {}
    if isinstance(first.get("blob"), str):
        return base64.b64decode(first["blob"])
    return str(first.get("text", "")).encode()
