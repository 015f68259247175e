"""The file `conversations.json` of a data export: alone, in a folder or in a ZIP file."""

from pathlib import Path
from typing import Any, Final

from daemon.importing import foreign_files
from daemon.importing.record import WrongKind
from daemon.importing.values import objects_of

NAME: Final = "conversations.json"


def listed(path: Path, name: str = NAME) -> list[dict[str, Any]]:
    """The objects of the list in this file; empty if the export has no such file."""
    if path.is_dir() or foreign_files.head(path, 2) == b"PK":
        with foreign_files.archive(path) as archive:
            found = archive.find(name)
            raw = None if found is None else archive.read(found)
        return [] if raw is None else objects_of(foreign_files.decode(raw))
    return objects_of(foreign_files.load(path)) if name == NAME else []


def lack(path: Path, member: str) -> str | None:
    """What an export lacks to have conversations with this member."""
    try:
        found = listed(path)
    except WrongKind as wrong:
        return str(wrong)
    if not found:
        return f"it has no {NAME} with a list of conversations"
    if not any(member in conversation for conversation in found[:3]):
        return f"its conversations have no `{member}`"
    return None
