"""The transcripts of all clients with hooks are understood."""

import json
from pathlib import Path
from typing import Any

import pytest

from daemon.commands.clients.transcript import mark_stored, new_part

CODEX = [
    {"type": "session_meta", "payload": {"id": "x"}},
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Fix the bug"}],
        },
    },
    {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Fixed."}],
        },
    },
    {"type": "response_item", "payload": {"type": "function_call", "name": "shell"}},
]
CLAUDE = [
    {"type": "user", "message": {"role": "user", "content": "Fix the bug"}},
    {"type": "user", "isMeta": True, "message": {"role": "user", "content": "hidden"}},
    {"type": "assistant", "message": {"content": [{"type": "text", "text": "Fixed."}]}},
]
GEMINI = {
    "messages": [
        {"type": "user", "content": [{"text": "Fix the bug"}]},
        {"type": "gemini", "content": "Fixed."},
    ]
}
CURSOR = [
    {"role": "user", "message": {"content": [{"type": "text", "text": "Fix the bug"}]}},
    {"role": "assistant", "message": {"content": [{"type": "text", "text": "Fixed."}]}},
]


def lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


@pytest.mark.parametrize(
    "text",
    [lines(CODEX), lines(CLAUDE), json.dumps(GEMINI), lines(CURSOR)],
    ids=["codex", "claude-code", "gemini-cli", "cursor"],
)
def test_requests_and_the_last_answer_are_found(text: str, tmp_path: Path) -> None:
    path = tmp_path / "transcript"
    path.write_text(text)
    part = new_part({"transcript_path": str(path)}, "x", tmp_path / "captures.json")
    assert part is not None
    assert part.text.splitlines()[1:] == ["- Fix the bug", "Last answer: Fixed."]


def test_secrets_are_not_captured_even_where_a_text_is_cut(tmp_path: Path) -> None:
    key = "sk-ant-" + "a1B2" * 10
    token = "ghp_" + "x1Y2" * 9
    messages = [
        {"role": "user", "content": f"Use {key} for the API"},
        {"role": "user", "content": "word " * 55 + f"and then {token} is the token"},
        {"role": "assistant", "content": "Connected to https://me:S3cret!x@example.com/db."},
    ]
    part = new_part({"messages": messages}, "claude-code", tmp_path / "captures.json")
    assert part is not None
    assert "Use [redacted: Anthropic key] for the API" in part.text
    assert "https://me:[redacted: password in a URL]@example.com/db" in part.text
    for secret in ("sk-ant", "a1B2", "ghp_", "S3cret"):
        assert secret not in part.text


def test_a_part_counts_as_stored_only_after_it_was_marked(tmp_path: Path) -> None:
    captures = tmp_path / "state" / "captures.json"
    payload = {"session_id": "s", "messages": [{"role": "user", "content": "hello"}]}
    first = new_part(payload, "opencode", captures)
    assert first == new_part(payload, "opencode", captures)
    assert first is not None
    mark_stored(first, captures)
    assert new_part(payload, "opencode", captures) is None
    assert captures.stat().st_mode & 0o777 == 0o600
