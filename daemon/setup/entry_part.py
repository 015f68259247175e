"""Plans for the entry of recalld in the server list of a client.

An entry that equals ours is current, whatever the client or the user added to it (`disabled`,
`autoApprove`, further variables). An entry that we wrote and nobody changed is updated. Any other
entry of our name is a conflict, which `--force` replaces.
"""

import json
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Final, cast

from daemon.setup.clients import Client
from daemon.setup.formats.syntax import MISSING, Key, lookup
from daemon.setup.formats.text_files import TextFile
from daemon.setup.ledger import Ledger, Record, restored
from daemon.setup.plan import Editor, Plan, guarded, recorded

#: Members that decide what is started. One of them in an entry beside ours makes another entry.
_TARGET: Final = frozenset({"command", "cmd", "args", "url", "uri", "serverUrl", "httpUrl"})


def plan_entry(
    client: Client, path: Path, entry: dict[str, Any], ledger: Ledger, *, force: bool
) -> Plan:
    """Plan to add or update our entry in a file."""

    def compute(file: TextFile) -> Plan:
        editor = Editor(client.format)
        data = editor.read(file.text)
        key = client.key_in(data)
        present = lookup(data, key)
        record = ledger.find(path, "entry")
        plan = Plan(client=client.name, part="entry", path=path, status="current", file=file)
        if _agrees(present, entry):
            return plan
        is_known = record is not None and _agrees(present, record.value)
        if present is not MISSING and not force and not is_known:
            plan.status = "conflict"
            plan.detail = f"has another entry: {_shown(present)}; --force replaces it"
            return plan
        text = file.text if file.exists and file.text.strip() else file.text + client.skeleton
        plan.text = _written(editor, text, key, present, entry)
        plan.status = "add" if present is MISSING else "update"
        plan.record = recorded(
            file, plan.text, entry, _missing(data, key), record if is_known else None
        )
        return plan

    return guarded(client.name, "entry", path, compute)


def plan_removal(client: Client, path: Path, ledger: Ledger, *, force: bool) -> Plan:
    """Plan to remove our entry, and the file or objects that we created for it."""

    def compute(file: TextFile) -> Plan:
        editor = Editor(client.format)
        data = editor.read(file.text)
        key = client.key_in(data)
        present = lookup(data, key)
        record = ledger.find(path, "entry")
        plan = Plan(client=client.name, part="entry", path=path, status="absent", file=file)
        if present is MISSING:
            return plan
        is_ours = _agrees(present, record.value) if record else starts_recalld(present)
        if not is_ours and not force:
            plan.status = "conflict"
            plan.detail = f"has another entry: {_shown(present)}; --force removes it"
            return plan
        plan.status = "remove"
        plan.text = _removed(editor, file.text, client, key, record)
        if record and record.created_file and not _content(plan.text, client):
            plan.text = None
        return plan

    return guarded(client.name, "entry", path, compute)


def starts_recalld(entry: Any) -> bool:
    """Whether an entry starts recalld, judged by its command, for files without a record."""
    if not isinstance(entry, Mapping):
        return False
    members = cast("Mapping[str, Any]", entry)
    command: Any = members.get("command", members.get("cmd"))
    args: Any = members.get("args", [])
    if isinstance(command, list):
        command, *args = cast("list[Any]", command) or [""]
    return PurePath(str(command)).name == "recalld" and list(args)[:1] == ["stdio"]


def _agrees(present: Any, entry: Any) -> bool:
    """Whether an entry has all members of ours, and none that starts something else."""
    if not isinstance(present, Mapping) or not isinstance(entry, Mapping):
        return False
    found = cast("Mapping[str, Any]", present)
    ours = cast("Mapping[str, Any]", entry)
    if any(name in found and name not in ours for name in _TARGET):
        return False
    return all(
        found.get(name) == value
        or (isinstance(value, Mapping) and _includes(found.get(name, {}), cast("Any", value)))
        for name, value in ours.items()
    )


def _includes(found: Any, ours: Mapping[str, Any]) -> bool:
    if not isinstance(found, Mapping):
        return False
    return all(cast("Mapping[str, Any]", found).get(name) == ours[name] for name in ours)


def _written(editor: Editor, text: str, key: Key, present: Any, entry: dict[str, Any]) -> str:
    """The text with our entry. Members that others added to an entry of the same kind stay."""
    if not isinstance(present, Mapping) or (_TARGET & present.keys()) != (_TARGET & entry.keys()):
        return editor.put(text, key, entry)
    found = cast("Mapping[str, Any]", present)
    for name, value in entry.items():
        merged = value
        if isinstance(value, dict) and isinstance(found.get(name), Mapping):
            merged = {**found[name], **cast("dict[str, Any]", value)}
        if found.get(name, MISSING) != merged:
            text = editor.put(text, (*key, name), merged)
    return text


def _missing(data: Any, key: Key) -> Key:
    """The outermost object on the way to our entry that does not exist yet."""
    for depth in range(1, len(key)):
        if lookup(data, key[:depth]) is MISSING:
            return key[:depth]
    return ()


def _removed(editor: Editor, text: str, client: Client, key: Key, record: Record | None) -> str:
    exact = restored(text, record.undo) if record else None
    if exact is not None and lookup(editor.read(exact), key) is MISSING:
        return exact
    text = editor.drop(text, key)
    if record is None or not record.created:
        return text
    for depth in range(len(key) - 1, len(record.created) - 1, -1):
        if not lookup(editor.read(text), key[:depth]):  # empty, and created by us
            text = editor.drop(text, key[:depth])
    return text


def _content(text: str, client: Client) -> str:
    """The text of a file without the parts that a new file of ours has."""
    rest = text.removeprefix(client.skeleton).strip()
    return "" if rest == "{}" else rest


def _shown(entry: Any) -> str:
    text = json.dumps(entry, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."
