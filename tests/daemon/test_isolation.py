"""The content of a bank never appears in answers, errors or files of another bank, or in logs."""

import json
from pathlib import Path

import anyio

from store.model import NewMemory
from store.sqlite.engine import open_engine
from tests.support.processes import child
from tests.support.wire import initialize, request

CANARIES = [f"qz{number:03d}kestrel" for number in range(500)]


async def fill(directory: Path) -> None:
    async with open_engine(directory) as engine:
        new = [NewMemory(text=f"{canary} sings", session="shared") for canary in CANARIES]
        await engine.put_many("theirs", new)
        await engine.put("ours", NewMemory(text="a thrush sings", session="shared"))


def test_five_hundred_unique_words_stay_in_their_bank(tmp_path: Path) -> None:
    anyio.run(fill, tmp_path / "data")
    asked = [
        ("hindsight_search", {"bank_id": "ours", "query": "who sings?"}),
        ("hindsight_search", {"bank_id": "ours", "query": "kestrel"}),
        ("hindsight_search", {"bank_id": "none", "query": "sings"}),
        ("hindsight_put", {"bank_id": "ours", "content": "a lark sings", "context": "here"}),
        ("hindsight_put", {"bank_id": "ours"}),
        ("awareness_recall", {"memory_id": "ours", "semantic_query": "sings"}),
        ("awareness_lookup", {"memory_id": "ours", "type": "context"}),
        ("awareness_lookup", {"memory_id": "ours", "type": "nothing"}),
        ("search", {"query": "sings"}),
        ("get", {"id": "doc_unknown"}),
        ("sources", {}),
        ("get_stats", {}),
        ("mcp__claude-recall__search", {"query": "sings"}),
    ]
    variables = {"RECALLD_LOG_LEVEL": "debug", "RECALLD_BANK": "ours"}
    with child(tmp_path, "stdio", "--embedded", variables=variables) as started:
        started.send(initialize())
        seen = [json.dumps(started.line())]
        for id, (tool, arguments) in enumerate(asked, 1):
            started.send(request(id, "tools/call", name=tool, arguments=arguments))
            seen.append(json.dumps(started.line()))
        started.close_input()
        assert started.wait() == 0
        log = started.errors()
    said = "\n".join(seen)
    assert "thrush" in said and "lark" not in log and "call.done" in log

    places = [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    holding = [path for path in places if b"kestrel" in path.read_bytes()]
    assert {path.parent.name for path in holding} == {bank_of(places, b"kestrel")}
    for text in (said, log):
        assert [canary for canary in CANARIES if canary in text] == []


def bank_of(places: list[Path], word: bytes) -> str:
    """Return the directory of the bank whose database contains the word."""
    (found,) = {p.parent.name for p in places if p.name == "bank.db" and word in p.read_bytes()}
    return found
