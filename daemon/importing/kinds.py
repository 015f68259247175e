"""The kinds of foreign data, most specific first: detection takes the first that fits."""

from typing import Final

from daemon.importing.conversations import chatgpt, claude, claude_code, codex, gemini_cli
from daemon.importing.files import csv, jsonl, markdown
from daemon.importing.record import ForeignKind
from daemon.importing.systems import (
    awareness,
    basic_memory,
    claude_mem,
    claude_recall,
    context_harness,
    hindsight,
    mcp_memory_service,
    mem0,
    mempalace,
    server_memory,
)

KINDS: Final[tuple[ForeignKind, ...]] = (
    claude_recall.KIND,
    hindsight.KIND,
    awareness.KIND,
    context_harness.KIND,
    mcp_memory_service.KIND,
    server_memory.KIND,
    claude_mem.KIND,
    mempalace.KIND,
    basic_memory.KIND,
    chatgpt.KIND,
    claude.KIND,
    codex.KIND,
    gemini_cli.KIND,
    claude_code.KIND,
    mem0.KIND,
    jsonl.KIND,
    csv.KIND,
    markdown.KIND,
)
BY_NAME: Final = {kind.name: kind for kind in KINDS}
