"""server-memory, the knowledge graph of the MCP reference servers: one JSON object per line.

Each observation of an entity is a memory. The relations of an entity become one memory each, so
that they are found too.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.record import ForeignKind, Found, Memory, Rejected
from daemon.importing.values import list_of, object_of, short_id, text_of


def missing(path: Path) -> str | None:
    if not path.is_file():
        return "it is not a file"
    first = object_of(foreign_files.first_line(path))
    if first.get("type") == "entity" and {"name", "observations"} <= first.keys():
        return None
    if first.get("type") == "relation" and {"from", "to", "relationType"} <= first.keys():
        return None
    return 'its first line is not an object of the type "entity" or "relation"'


def read(path: Path) -> Iterator[Found]:
    for number, value in foreign_files.json_lines(path):
        line = object_of(value)
        if line.get("type") == "entity":
            yield from _entity(line, number)
        elif line.get("type") == "relation":
            yield _relation(line, number)
        else:
            yield Rejected(where=f"line {number}", reason="is neither an entity nor a relation")


def _entity(line: dict[str, Any], number: int) -> Iterator[Found]:
    name, sort = text_of(line.get("name")), text_of(line.get("entityType"))
    observations = line.get("observations")
    if name is None or not isinstance(observations, list):
        yield Rejected(where=f"line {number}", reason="has no name or no observations")
        return
    texts = [text for each in list_of(observations) if (text := text_of(each)) is not None]
    for text in texts or [f"{name} ({sort})" if sort else name]:
        yield Memory(
            original_id=short_id(f"{name}/{text}"),
            text=text,
            title=name,
            category=sort,
            tags=(sort,) if sort else (),
            metadata={"entity": name},
        )


def _relation(line: dict[str, Any], number: int) -> Found:
    start, verb, end = (text_of(line.get(key)) for key in ("from", "relationType", "to"))
    if start is None or verb is None or end is None:
        return Rejected(where=f"line {number}", reason="has no from, relationType or to")
    return Memory(
        original_id=short_id(f"{start}>{verb}>{end}"),
        text=f"{start} {verb.replace('_', ' ')} {end}",
        title=start,
        category="relation",
        metadata={"relation": {"from": start, "type": verb, "to": end}},
    )


KIND: Final = ForeignKind(
    name="server-memory",
    title="server-memory",
    missing=missing,
    read=read,
    variables=(("MEMORY_FILE_PATH", ""),),
)
