"""Every kind is recognised, read without a trace, and keeps dates, tags, sessions and ids."""

import json
from pathlib import Path

import pytest

from daemon.importing import detection
from daemon.importing.kinds import BY_NAME, KINDS
from daemon.importing.record import ForeignDocument, Found, Memory, Rejected
from tests.daemon.importing.foreign_data import MOMENT, SAMPLES

ISSUE_KINDS = {
    "claude-recall", "hindsight", "awareness", "context-harness", "mcp-memory-service",
    "server-memory", "claude-mem", "basic-memory", "markdown", "mem0", "mempalace", "claude-code",
    "codex", "gemini-cli", "chatgpt", "claude", "jsonl", "csv",
}  # fmt: skip


def read(name: str, folder: Path) -> list[Found]:
    return list(BY_NAME[name].read(SAMPLES[name](folder)))


def memories(name: str, folder: Path) -> list[Memory]:
    return [entry for entry in read(name, folder) if isinstance(entry, Memory)]


def test_the_documented_kinds_exist_and_no_others() -> None:
    assert set(BY_NAME) == ISSUE_KINDS == set(SAMPLES)
    assert len(KINDS) == len(BY_NAME)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_detected_as_its_own_kind(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)
    found = detection.detect(path)
    assert found is not None
    assert found.name == name
    assert detection.refusal(BY_NAME[name], path) is None


@pytest.mark.parametrize("name", SAMPLES)
def test_reading_leaves_the_foreign_files_as_they_were(name: str, tmp_path: Path) -> None:
    path = SAMPLES[name](tmp_path)

    def state() -> dict[str, tuple[bytes, int]]:
        files = [each for each in tmp_path.rglob("*") if each.is_file()]
        return {str(each): (each.read_bytes(), each.stat().st_mtime_ns) for each in files}

    before = state()
    assert detection.detect(path) is not None
    list(BY_NAME[name].read(path))
    assert state() == before


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - {"server-memory", "context-harness"}))
def test_text_and_date_of_an_entry_are_kept(name: str, tmp_path: Path) -> None:
    (entry, *_) = [each for each in memories(name, tmp_path) if "Ana prefers tabs" in each.text]
    assert entry.created_at == MOMENT


@pytest.mark.parametrize(
    ("name", "id", "session", "tags"),
    [
        ("claude-recall", "memory_1_a", "s1", ("preference",)),
        ("awareness", "kc_1", "s1", ("style",)),
        ("mcp-memory-service", "hash1", None, ("style", "ana")),
        ("claude-mem", "observation/1", "s1", ("style",)),
        ("basic-memory", "notes/style", None, ("style", "indent")),
        ("markdown", "Style.md", None, ("style", "indent")),
        ("mem0", "m-1", "s1", ("style",)),
        ("mempalace", "drawer_1", None, ("ana", "style")),
        ("claude-code", "u1", "s1", ()),
        ("codex", "s1:3", "s1", ()),
        ("gemini-cli", "g1", "s1", ()),
        ("chatgpt", "c1", "s1", ()),
        ("claude", "a1", "s1", ()),
        ("jsonl", "7", "s1", ("style",)),
        ("csv", "7", None, ("style", "ana")),
    ],
)
def test_id_session_and_tags_of_an_entry_are_kept(
    name: str, id: str, session: str | None, tags: tuple[str, ...], tmp_path: Path
) -> None:
    (entry, *_) = [each for each in memories(name, tmp_path) if "Ana prefers tabs" in each.text]
    assert (entry.original_id, entry.session, entry.tags) == (id, session, tags)


def test_observations_and_relations_of_a_real_server_memory_file_become_memories(
    tmp_path: Path,
) -> None:
    found = {entry.original_id: entry for entry in memories("server-memory", tmp_path)}
    assert len(found) == 6
    assert found["Ana Novak/lives in Brno"].title == "Ana Novak"
    assert found["Ana Novak/lives in Brno"].category == "person"
    assert found["Ana Novak>works_on>recalld"].text == "Ana Novak works on recalld"


def test_a_superseded_memory_of_claude_recall_names_its_successor(tmp_path: Path) -> None:
    (old,) = [each for each in memories("claude-recall", tmp_path) if "spaces" in each.text]
    assert (old.status, old.replaced_by) == ("superseded", "memory_1_a")


def test_sessions_of_claude_recall_become_events_with_their_dates(tmp_path: Path) -> None:
    path = tmp_path / "sessions.json"
    session = {"id": "s9", "startTime": MOMENT, "lastActivity": MOMENT + 5, "toolCalls": 3}
    path.write_text(json.dumps([["s9", session]]))
    kind = detection.detect(path)
    assert kind is BY_NAME["claude-recall"]
    (event,) = [entry for entry in kind.read(path) if isinstance(entry, Memory)]
    assert (event.kind, event.session, event.created_at) == ("event", "s9", MOMENT)


def test_documents_keep_their_id_source_and_date(tmp_path: Path) -> None:
    (document,) = read("context-harness", tmp_path)
    assert isinstance(document, ForeignDocument)
    assert (document.original_id, document.source, document.source_id) == (
        "u-1", "filesystem", "style.md",
    )  # fmt: skip
    assert (document.body, document.updated_at) == ("Ana prefers tabs", MOMENT)


def test_a_fact_of_hindsight_keeps_its_document_beside_it(tmp_path: Path) -> None:
    document, fact = read("hindsight", tmp_path)
    assert isinstance(document, ForeignDocument)
    assert isinstance(fact, Memory)
    assert fact.metadata == {"mood": "calm", "entities": ["Ana"], "document": "d1"}


def test_a_done_task_of_awareness_is_completed(tmp_path: Path) -> None:
    (task,) = [each for each in memories("awareness", tmp_path) if each.kind == "task"]
    assert (task.original_id, task.status, task.level) == ("task_1", "completed", "high")


def test_a_long_note_becomes_a_document_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    note, document = read("markdown", tmp_path)
    assert isinstance(note, Memory)
    assert isinstance(document, ForeignDocument)
    assert document.title == "Long"


def test_a_deleted_memory_is_not_imported(tmp_path: Path) -> None:
    assert [each.text for each in memories("mcp-memory-service", tmp_path)] == ["Ana prefers tabs"]


def test_tool_results_and_added_instructions_are_left_out(tmp_path: Path) -> None:
    texts = [each.text for each in memories("claude-code", tmp_path / "a")]
    assert texts == ["A talk about tabs", "Ana prefers tabs", "Noted.", "Use tabs."]
    assert [each.text for each in memories("codex", tmp_path / "b")] == ["Ana prefers tabs"]


def test_a_heading_inside_a_quoted_drawer_does_not_split_it(tmp_path: Path) -> None:
    (drawer,) = memories("mempalace", tmp_path)
    assert drawer.text == "Ana prefers tabs\n## and no spaces"


def test_a_line_without_text_is_rejected_with_its_number(tmp_path: Path) -> None:
    (rejected,) = [each for each in read("jsonl", tmp_path) if isinstance(each, Rejected)]
    assert rejected.where == "line 2"
    assert "has none of the fields text" in rejected.reason
