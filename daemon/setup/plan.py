"""One planned change of one file, and its execution.

A plan is computed from the present contents of the file and changes nothing. `carry_out` writes
it. Entries, rules blocks and hooks compute their plans in modules of their own.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from daemon.setup.clients import Format
from daemon.setup.formats import jsonc, text_files
from daemon.setup.formats.syntax import Key, SyntaxFault, lookup, without
from daemon.setup.formats.text_files import FileFault, TextFile
from daemon.setup.ledger import Ledger, Record, restored, undo_of

#: `conflict`: the file holds something else in our place; `refused`: the file cannot be changed
#: safely; `failed`: it cannot be read or written.
Status = Literal[
    "add", "update", "remove", "current", "absent", "conflict", "refused", "failed", "unsupported"
]
Part = Literal["entry", "rules", "hooks"]
CHANGES: Final = ("add", "update", "remove")
DONE: Final = {"add": "added", "update": "updated", "remove": "removed"}


class Plan(Struct, kw_only=True):
    client: str
    part: Part
    path: Path
    status: Status
    #: The reason for a status that is not a change, or the value that is replaced.
    detail: str = ""
    file: TextFile | None = None
    #: The new text; None to delete the file.
    text: str | None = None
    record: Record | None = None
    backup: Path | None = None

    @property
    def is_change(self) -> bool:
        return self.status in CHANGES


class Editor:
    """The functions of one file format; the libraries for TOML and YAML are imported on demand."""

    def __init__(self, name: Format) -> None:
        if name == "toml":
            from daemon.setup.formats import toml_editor

            self.read, self._put, self._drop = toml_editor.read, toml_editor.put, toml_editor.drop
        elif name == "yaml":
            from daemon.setup.formats import yaml_editor

            self.read, self._put, self._drop = yaml_editor.read, yaml_editor.put, yaml_editor.drop
        else:
            self.read, self._put, self._drop = jsonc.read, jsonc.put, jsonc.drop

    def put(self, text: str, key: Key, value: Any) -> str:
        """Set a value; raises SyntaxFault if any other value would change."""
        return self._verified(text, self._put(text, key, value), key, value)

    def drop(self, text: str, key: Key) -> str:
        return self._verified(text, self._drop(text, key), key, None)

    def _verified(self, before: str, after: str, key: Key, value: Any) -> str:
        old, new = self.read(before), self.read(after)
        is_set = value is None or lookup(new, key) == value
        if not is_set or without(old, key) != without(new, key):
            raise SyntaxFault("the structure of the file does not permit a safe change", 1, 1)
        return after


def guarded(client: str, part: Part, path: Path, compute: Callable[[TextFile], Plan]) -> Plan:
    """Compute a plan; a file that cannot be read or parsed is a refused or failed plan."""
    try:
        file = text_files.load(path)
        return compute(file)
    except SyntaxFault as fault:
        status: Status = "refused"
        reason = f"{fault}; the file was not changed"
    except FileFault as fault:
        status, reason = ("refused" if fault.is_refusal else "failed"), fault.reason
    return Plan(client=client, part=part, path=path, status=status, detail=reason)


def carry_out(plan: Plan, ledger: Ledger, today: Callable[[], str] = text_files.utc_day) -> Plan:
    """Write a planned change and record it."""
    if not plan.is_change or plan.file is None:
        return plan
    try:
        if plan.text is None:
            plan.file.remove()
        else:
            plan.backup = plan.file.save(plan.text, today)
    except FileFault as fault:
        plan.status = "refused" if fault.is_refusal else "failed"
        plan.detail = fault.reason
        return plan
    if plan.record is None:
        ledger.forget(plan.path, plan.part)
    else:
        ledger.keep(plan.path, plan.part, replace(plan.record, client=plan.client))
    return plan


def recorded(file: TextFile, text: str, value: Any, created: Key, earlier: Record | None) -> Record:
    """The record of a change; a second change keeps the origin of the first."""
    undo = undo_of(file.text, text)
    if earlier is None:
        return Record(value=value, created_file=not file.exists, created=created, undo=undo)
    original = restored(file.text, earlier.undo)
    return Record(
        value=value,
        created_file=earlier.created_file,
        created=earlier.created,
        undo=None if original is None else undo_of(original, text),
    )
