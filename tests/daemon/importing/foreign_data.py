"""Small samples of foreign data, one per kind, each with one entry whose content tests know."""

import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

FIXTURES: Final = Path(__file__).parent / "fixtures"
#: 2024-05-01T10:00:00Z
MOMENT: Final = 1_714_557_600_000
ISO: Final = "2024-05-01T10:00:00Z"


def _database(path: Path, *statements: tuple[str, tuple[Any, ...]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        for statement, values in statements:
            connection.execute(statement, values)
        connection.commit()
    return path


def _text(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _json(path: Path, value: Any) -> Path:
    return _text(path, json.dumps(value))


def _lines(path: Path, *values: Any) -> Path:
    return _text(path, "".join(f"{json.dumps(value)}\n" for value in values))


def claude_recall(folder: Path) -> Path:
    value = json.dumps({"content": "Ana prefers tabs", "sessionId": "s1", "mood": "calm"})
    return _database(
        folder / "claude-recall.db",
        (
            "CREATE TABLE memories (id INTEGER PRIMARY KEY, key TEXT UNIQUE, value TEXT, type TEXT,"
            " project_id TEXT, file_path TEXT, timestamp INTEGER, access_count INTEGER,"
            " is_active INTEGER, superseded_by TEXT, superseded_at INTEGER, confidence_score REAL)",
            (),
        ),
        (
            "INSERT INTO memories VALUES (1, 'memory_1_a', ?, 'preference', '/p', NULL, ?, 2, 1,"
            " NULL, NULL, 0.9)",
            (value, MOMENT),
        ),
        (
            "INSERT INTO memories VALUES (2, 'memory_0_b', '\"Ana prefers spaces\"', 'preference',"
            " '/p', NULL, ?, 0, 0, 'memory_1_a', ?, NULL)",
            (MOMENT - 1000, MOMENT),
        ),
    )


def hindsight(folder: Path) -> Path:
    path = folder / "bank.zip"
    document = {
        "id": "d1", "original_text": "Ana wrote: tabs, always.", "tags": ["style"],
        "created_at": ISO,
        "facts": [{"text": "Ana prefers tabs", "fact_type": "world", "event_date": ISO,
                   "tags": ["style"], "entities": ["Ana"], "metadata": {"mood": "calm"}}],
    }  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        manifest = {"schema_version": 1, "source_bank_id": "work", "archive_type": "bank"}
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("documents/000000.json", json.dumps(document))
    return path


def awareness(folder: Path) -> Path:
    root = folder / ".awareness"
    _text(
        root / "knowledge" / "decision" / "kc_1.md",
        f"---\nid: kc_1\ntype: knowledge_card\ntitle: Indentation\nsession_id: s1\ntags:\n"
        f"  - style\nconfidence: 0.8\ncreated_at: {ISO}\nupdated_at: {ISO}\n---\n\n"
        "Ana prefers tabs\n",
    )
    _text(
        root / "tasks" / "done" / "task_1.md",
        "---\nid: task_1\ntitle: Convert the files\nstatus: done\npriority: high\n---\n\nall\n",
    )
    return folder


def context_harness(folder: Path) -> Path:
    return _database(
        folder / "ctx.sqlite",
        (
            "CREATE TABLE documents (id TEXT PRIMARY KEY, source TEXT, source_id TEXT, source_url"
            " TEXT, title TEXT, author TEXT, created_at INTEGER, updated_at INTEGER, content_type"
            " TEXT, body TEXT, metadata_json TEXT, raw_json TEXT, dedup_hash TEXT)",
            (),
        ),
        (
            "INSERT INTO documents VALUES ('u-1', 'filesystem', 'style.md', NULL, 'Style', 'Ana',"
            " ?, ?, 'text/markdown', 'Ana prefers tabs', '{}', NULL, 'x')",
            (MOMENT // 1000, MOMENT // 1000),
        ),
    )


def mcp_memory_service(folder: Path) -> Path:
    return _database(
        folder / "sqlite_vec.db",
        (
            "CREATE TABLE memories (id INTEGER PRIMARY KEY AUTOINCREMENT, content_hash TEXT UNIQUE,"
            " content TEXT NOT NULL, tags TEXT, memory_type TEXT, metadata TEXT, created_at REAL,"
            " updated_at REAL, created_at_iso TEXT, updated_at_iso TEXT, deleted_at REAL)",
            (),
        ),
        (
            "INSERT INTO memories VALUES (1, 'hash1', 'Ana prefers tabs', 'style,ana',"
            " 'preference', '{\"mood\": \"calm\"}', ?, ?, ?, ?, NULL)",
            (MOMENT / 1000, MOMENT / 1000, ISO, ISO),
        ),
        (
            "INSERT INTO memories VALUES (2, 'hash2', 'deleted', '', '', '{}', ?, ?, ?, ?, 5.0)",
            (MOMENT / 1000, MOMENT / 1000, ISO, ISO),
        ),
    )


def server_memory(folder: Path) -> Path:
    path = folder / "memory.jsonl"
    path.write_bytes((FIXTURES / "server-memory.jsonl").read_bytes())
    return path


def claude_mem(folder: Path) -> Path:
    return _database(
        folder / "claude-mem.db",
        (
            "CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project"
            " TEXT, text TEXT, type TEXT, title TEXT, subtitle TEXT, facts TEXT, narrative TEXT,"
            " concepts TEXT, files_read TEXT, files_modified TEXT, prompt_number INTEGER,"
            " created_at TEXT, created_at_epoch INTEGER)",
            (),
        ),
        (
            "INSERT INTO observations VALUES (1, 's1', 'p', NULL, 'decision', 'Indentation', NULL,"
            " '[\"tabs it is\"]', 'Ana prefers tabs', '[\"style\"]', '[]', '[\"a.py\"]', 1, ?, ?)",
            (ISO, MOMENT),
        ),
        ("CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, prompt_text TEXT)", ()),
        ("INSERT INTO user_prompts VALUES (1, 'use tabs')", ()),
    )


def basic_memory(folder: Path) -> Path:
    _text(
        folder / "notes" / "Style.md",
        f"---\ntitle: Style\ntype: note\npermalink: notes/style\ntags:\n- style\ncreated: {ISO}\n"
        "---\n\n# Style\n\n- [preference] Ana prefers tabs #indent\n- part_of [[Guide]]\n",
    )
    return folder


def markdown(folder: Path) -> Path:
    _text(folder / "Style.md", f"---\ndate: {ISO}\ntags: [style]\n---\nAna prefers tabs #indent\n")
    _text(folder / ".obsidian" / "hidden.md", "not a note")
    _text(folder / "long.md", "# Long\n\n" + "Ana types a tab and a word. " * 300)
    return folder


def mem0(folder: Path) -> Path:
    memory = {
        "id": "m-1", "memory": "Ana prefers tabs", "hash": "h", "metadata": {"mood": "calm"},
        "categories": ["style"], "user_id": "ana", "run_id": "s1", "created_at": ISO,
    }  # fmt: skip
    return _json(folder / "mem0.json", {"results": [memory]})


def mempalace(folder: Path) -> Path:
    _text(folder / "index.md", "# Palace Export — 2024-05-02\n\n| Wing | Rooms | Drawers |\n")
    _text(
        folder / "ana" / "style.md",
        "# ana / style\n\n## drawer_1\n\n> Ana prefers tabs\n> ## and no spaces\n\n"
        "| Field | Value |\n|-------|-------|\n| Source | notes.txt |\n"
        f"| Filed | {ISO} |\n| Added by | unknown |\n\n---\n\n",
    )
    return folder


def claude_code(folder: Path) -> Path:
    about = {"sessionId": "s1", "cwd": "/p", "timestamp": ISO, "gitBranch": "main"}
    tool = {"type": "tool_result", "content": "noise"}
    _lines(
        folder / "projects" / "-p" / "s1.jsonl",
        {"type": "summary", "summary": "A talk about tabs", "leafUuid": "l1"},
        {**about, "type": "user", "uuid": "u1", "message": {"content": "Ana prefers tabs"}},
        {**about, "type": "user", "uuid": "u2", "message": {"content": [tool]}},
        {**about, "type": "assistant", "uuid": "u3",
         "message": {"content": [{"type": "text", "text": "Noted."}]}},
    )  # fmt: skip
    _text(folder / "CLAUDE.md", "Use tabs.")
    return folder


def codex(folder: Path) -> Path:
    def item(role: str, text: str) -> dict[str, Any]:
        content = [{"type": "input_text", "text": text}]
        payload = {"type": "message", "role": role, "content": content}
        return {"timestamp": ISO, "type": "response_item", "payload": payload}

    _lines(
        folder / "2024" / "05" / "01" / "rollout-1.jsonl",
        {"timestamp": ISO, "type": "session_meta", "payload": {"id": "s1", "cwd": "/p"}},
        item("user", "<environment_context>noise</environment_context>"),
        item("user", "Ana prefers tabs"),
        {"timestamp": ISO, "type": "event_msg", "payload": {"type": "user_message"}},
    )
    return folder


def gemini_cli(folder: Path) -> Path:
    messages = [
        {"id": "g1", "type": "user", "content": "Ana prefers tabs", "timestamp": ISO},
        {"id": "g2", "type": "info", "content": "noise", "timestamp": ISO},
    ]
    whole = {"sessionId": "s1", "projectHash": "h", "startTime": ISO, "messages": messages}
    _json(folder / "tmp" / "h" / "chats" / "session-1.json", whole)
    return folder


def chatgpt(folder: Path) -> Path:
    message = {
        "id": "c1", "author": {"role": "user"}, "create_time": MOMENT / 1000,
        "content": {"content_type": "text", "parts": ["Ana prefers tabs"]},
    }  # fmt: skip
    mapping = {"root": {"message": None}, "c1": {"message": message, "parent": "root"}}
    conversation = {"title": "Style", "conversation_id": "s1", "mapping": mapping}
    path = folder / "export.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("conversations.json", json.dumps([conversation]))
    return path


def claude(folder: Path) -> Path:
    message = {"uuid": "a1", "sender": "human", "text": "Ana prefers tabs", "created_at": ISO}
    conversation = {"uuid": "s1", "name": "Style", "chat_messages": [message]}
    return _json(folder / "conversations.json", [conversation])


def jsonl(folder: Path) -> Path:
    return _lines(
        folder / "notes.jsonl",
        {"id": 7, "text": "Ana prefers tabs", "tags": ["style"], "created_at": ISO, "mood": "calm",
         "session_id": "s1"},
        {"colour": "red"},
    )  # fmt: skip


def csv(folder: Path) -> Path:
    return _text(
        folder / "notes.csv", f'id,Text,tags,created_at\n7,Ana prefers tabs,"style,ana",{ISO}\n'
    )


SAMPLES: Final[dict[str, Callable[[Path], Path]]] = {
    "claude-recall": claude_recall,
    "hindsight": hindsight,
    "awareness": awareness,
    "context-harness": context_harness,
    "mcp-memory-service": mcp_memory_service,
    "server-memory": server_memory,
    "claude-mem": claude_mem,
    "basic-memory": basic_memory,
    "markdown": markdown,
    "mem0": mem0,
    "mempalace": mempalace,
    "claude-code": claude_code,
    "codex": codex,
    "gemini-cli": gemini_cli,
    "chatgpt": chatgpt,
    "claude": claude,
    "jsonl": jsonl,
    "csv": csv,
}
