"""Every client, in every state of its file: add, repeat, change and remove an entry.

`golden/` has the files that setup creates for each client. After an intended change of an entry,
write them again: python -m tests.daemon.setup.test_golden
"""

import json
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from daemon.setup.clients import CLIENTS, Client, Places, Server
from daemon.setup.entry_part import plan_entry, plan_removal
from daemon.setup.formats.syntax import lookup, without
from daemon.setup.ledger import Ledger
from daemon.setup.plan import Editor, Plan, carry_out
from tests.daemon.setup.states import (
    CHANGED,
    SERVER,
    STATES,
    WRITABLE,
    entry,
    file_of,
    places,
    prepare,
)

GOLDEN = Path(__file__).parent / "golden"
ALL = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


class Case:
    """One client with its file in one state."""

    def __init__(self, client: Client, state: str, root: Path) -> None:
        self.client = client
        self.path = file_of(client, root)
        self.ledger = Ledger(root / "state" / "setup.json")
        self.original = prepare(client, state, self.path)
        if state == "ours":
            self.add(Server(command="/older/recalld", args=("stdio",)))
            self.path.parent.joinpath(self.path.name + ".recalld-20260101.bak").unlink()

    def add(self, server: Server = SERVER, *, force: bool = False) -> Plan:
        plan = plan_entry(
            self.client, self.path, entry(self.client, server), self.ledger, force=force
        )
        return carry_out(plan, self.ledger, lambda: "20260101")

    def remove(self, *, force: bool = False) -> Plan:
        plan = plan_removal(self.client, self.path, self.ledger, force=force)
        return carry_out(plan, self.ledger, lambda: "20260101")

    @property
    def text(self) -> str | None:
        return self.path.read_bytes().decode() if self.path.exists() else None

    def data(self, text: str | None) -> object:
        return Editor(self.client.format).read((text or "").removeprefix("\ufeff"))

    def others(self, text: str | None) -> object:
        data = without(self.data(text), self.client.key)
        if isinstance(data, dict) and not self.original:
            for name in ("name", "version", "schema"):  # of a new file for Continue
                data.pop(name, None)
        return data

    def backups(self) -> list[Path]:
        return sorted(self.path.resolve().parent.glob("*.bak"))


def is_subsequence(part: str, whole: str) -> bool:
    rest = iter(whole)
    return all(char in rest for char in part)


@ALL
@pytest.mark.parametrize("state", WRITABLE)
def test_add_repeat_change_and_remove_leave_all_other_bytes_alone(
    client: Client, state: str, tmp_path: Path
) -> None:
    case = Case(client, state, tmp_path)
    original = case.original

    assert case.add().status == ("update" if state == "ours" else "add")
    added = case.text
    assert added is not None
    assert lookup(case.data(added), client.key) == entry(client)
    assert case.others(added) == case.others(original)
    assert is_subsequence(original or "", added)
    if state == "ours":
        assert len(case.backups()) == 1
    else:
        kept = [path.read_bytes().decode() for path in case.backups()]
        assert kept == ([] if original is None else [original])

    assert case.add().status == "current"
    assert case.text == added

    assert case.add(CHANGED).status == "update"
    changed = case.text
    assert changed is not None
    assert lookup(case.data(changed), client.key) == entry(client, CHANGED)
    assert case.others(changed) == case.others(original)
    assert is_subsequence(original or "", changed)

    assert case.remove().status == "remove"
    assert case.text == original
    assert case.remove().status == "absent"
    assert case.text == original


@ALL
@pytest.mark.parametrize("state", WRITABLE)
def test_removal_after_a_change_by_others_keeps_that_change(
    client: Client, state: str, tmp_path: Path
) -> None:
    case = Case(client, state, tmp_path)
    case.add()
    text = case.text
    assert text is not None
    comment = "\n// mine\n" if client.format == "json" else "\n# mine\n"
    case.path.write_bytes((text + comment).encode())

    assert case.remove().status == "remove"

    left = case.text
    assert left is not None
    assert left.endswith(comment)
    assert case.others(left) == case.others(case.original)
    assert is_subsequence("".join((case.original or "").split()), left)


@ALL
def test_a_link_stays_and_its_target_keeps_its_mode(client: Client, tmp_path: Path) -> None:
    case = Case(client, "symlink", tmp_path)
    case.add()
    assert case.path.is_symlink()
    assert stat.S_IMODE(case.path.stat().st_mode) == 0o640
    case.remove()
    assert case.path.is_symlink()


@ALL
@pytest.mark.parametrize("state", [state for state in STATES if state not in WRITABLE])
def test_a_read_only_or_broken_file_is_not_touched(
    client: Client, state: str, tmp_path: Path
) -> None:
    case = Case(client, state, tmp_path)
    for plan in (case.add(), case.add(force=True), case.remove(force=True)):
        if state == "read-only":
            assert plan.status in ("failed", "absent")
        else:
            assert plan.status == "refused"
            assert plan.detail.startswith("line ")
            assert "column" in plan.detail
    assert "read-only" in case.add().detail or state == "broken"
    assert case.text == case.original
    assert case.backups() == []


@ALL
def test_an_entry_of_another_origin_is_a_conflict_until_it_is_forced(
    client: Client, tmp_path: Path
) -> None:
    case = Case(client, "others", tmp_path)
    foreign = {**entry(client, Server(command="/their/server", args=("x",))), "extra": True}
    editor = Editor(client.format)
    case.path.write_text(editor.put(case.path.read_text(), client.key, foreign))
    before = case.text

    conflict = case.add()
    assert conflict.status == "conflict"
    assert "/their/server" in conflict.detail
    assert case.remove().status == "conflict"
    assert case.text == before

    assert case.add(force=True).status == "update"
    assert lookup(case.data(case.text), client.key) == {**foreign, **entry(client)}


@ALL
def test_members_that_a_client_adds_to_our_entry_stay(client: Client, tmp_path: Path) -> None:
    case = Case(client, "others", tmp_path)
    case.add()
    editor = Editor(client.format)
    text = case.path.read_text()
    case.path.write_text(editor.put(text, (*client.key, "autoApprove"), ["recall"]))

    assert case.add().status == "current"
    assert case.add(CHANGED).status == "update"

    expected = {**entry(client, CHANGED), "autoApprove": ["recall"]}
    assert lookup(case.data(case.text), client.key) == expected
    assert case.remove().status == "remove"
    assert case.others(case.text) == case.others(case.original)


def shown(client: Client) -> str:
    """The files that setup creates for one client: for the user by stdio and HTTP, in a project."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        where: Places = places(root)
        parts: list[str] = []
        http = Server(url="http://127.0.0.1:7331/mcp")
        for scope, server in (("user", SERVER), ("user", http), ("project", SERVER)):
            assert scope in ("user", "project")
            for path in client.files(scope, where):  # type: ignore[arg-type]
                value = client.entry(server, scope)  # type: ignore[arg-type]
                label = f"== {scope}, {'http' if server.url else 'stdio'}: {path.relative_to(root)}"
                if value is None:
                    parts.append(f"{label}\n(not possible)\n")
                    continue
                ledger = Ledger(root / "setup.json")
                carry_out(plan_entry(client, path, value, ledger, force=False), ledger)
                parts.append(f"{label}\n{path.read_text()}")
                path.unlink()
        return "".join(parts)


@ALL
def test_the_file_of_each_client_is_the_golden_one(client: Client) -> None:
    assert shown(client) == (GOLDEN / f"{client.name}.txt").read_text()


def test_the_sixteen_clients_have_the_agreed_names() -> None:
    assert " ".join(client.name for client in CLIENTS) == (
        "claude-code claude-desktop cursor vscode copilot-cli windsurf cline codex gemini-cli"
        " opencode zed continue goose kiro amp jetbrains"
    )
    assert len(STATES) == 11
    assert json.dumps([path.stem for path in sorted(GOLDEN.iterdir())]) == json.dumps(
        sorted(client.name for client in CLIENTS)
    )


if __name__ == "__main__":
    for each in CLIENTS:
        (GOLDEN / f"{each.name}.txt").write_text(shown(each))
    sys.exit(0)
