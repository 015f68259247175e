"""Readers against data that the real programs wrote; `fixtures/README.md` says how."""

import gzip
import shutil
from pathlib import Path

from daemon.importing import detection
from daemon.importing.kinds import BY_NAME
from daemon.importing.record import Memory

FIXTURES = Path(__file__).parent / "fixtures"


def read(name: str, path: Path) -> list[Memory]:
    """The entries of a path, which must be detected as this kind and contain nothing else."""
    found = detection.detect(path)
    assert found is not None
    assert found.name == name
    entries = list(BY_NAME[name].read(path))
    assert all(isinstance(entry, Memory) for entry in entries)
    return [entry for entry in entries if isinstance(entry, Memory)]


def test_awareness_local_0_12_6(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "awareness", tmp_path / "project")
    entries = {
        entry.text.partition("\n")[0]: entry for entry in read("awareness", tmp_path / "project")
    }
    chosen = entries["We chose PostgreSQL because the ledger needs transactions."]
    old = entries["Release on Mondays."]

    assert len(entries) == 3
    assert chosen.original_id.startswith("mem_20261117_")
    assert chosen.tags == ("database", "decision")
    assert (chosen.session, chosen.role) == ("ses_20260503_a1", "builder_agent")
    assert chosen.event_type == "turn_summary"
    assert chosen.created_at is not None
    assert chosen.text.endswith("SQLite stays for tests.")
    assert (old.status, old.session) == ("superseded", None)
    assert 'Ana prefers tabs: "never" spaces; ünïcode — kept.' in entries


def test_claude_mem_13_25_3(tmp_path: Path) -> None:
    path = tmp_path / "claude-mem.db"
    path.write_bytes(gzip.decompress((FIXTURES / "claude-mem.db.gz").read_bytes()))
    entries = {entry.original_id: entry for entry in read("claude-mem", path)}
    bugfix, summary = entries["observation/2"], entries["summary/1"]

    assert set(entries) == {
        "observation/1", "observation/2", "summary/1", "prompt/1", "prompt/2",
    }  # fmt: skip
    assert entries["observation/1"].text == "Ana prefers tabs over spaces"
    assert entries["observation/1"].title == "Editor settings"
    assert bugfix.created_at == 1_777_802_700_000
    assert (bugfix.category, bugfix.tags, bugfix.session) == ("bugfix", ("rounding",), "m-1")
    assert "Totals were rounded in two places" in bugfix.text
    assert "Next steps: Add a test" in summary.text
    assert entries["prompt/2"].session == "c-1"
    assert (entries["prompt/1"].kind, entries["prompt/1"].actor) == ("event", "user")
