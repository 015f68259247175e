"""Other programs that answer the questions of the recall bench: the same texts, the same limit.

| name | what it is |
|---|---|
| bm25 | `rank-bm25` over lower-case words |
| chromadb | a vector database; it gets our vectors, because its own copy of the same model is downloaded |
| mcp-memory-service | its SQLite storage with its own embeddings |
| server-memory | the reference MCP server of a knowledge graph; it searches for the question as a substring |

A Python peer runs in an environment of its own (`scripts.kit.peer_packages`), as a child that reads
one JSON line and writes one. A peer that cannot be installed, or that needs a download at run time,
is reported with the reason and left out.
"""  # noqa: E501  (a table)

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from scripts.kit.peer_packages import Unavailable, node, npm_peer, python_peer
from scripts.kit.stdio_client import INITIALIZED, Child, WireFault, initialize, request

CHILD: Final = Path(__file__).resolve().parents[1] / "peers" / "retrieval_peer.py"
PYTHON: Final = ("bm25", "chromadb", "mcp-memory-service")
SECONDS: Final = 300.0

_missing: dict[str, str] = {}

#: The name of a peer, the places of the texts that it found for each question, and its seconds.
Answers = tuple[str, list[list[int]], float]


def missing() -> dict[str, str]:
    """The peers that could not be asked, with the reason."""
    return dict(_missing)


def answers(texts: Sequence[str], questions: Sequence[str], limit: int) -> Iterator[Answers]:
    """Let every peer store the texts and answer the questions."""
    for name in (*PYTHON, "server-memory"):
        if name in _missing:
            continue
        try:
            ask = _ask_server_memory if name == "server-memory" else _ask_python
            found, seconds = ask(name, texts, questions, limit)
        except (Unavailable, WireFault, subprocess.SubprocessError) as failure:
            _missing[name] = str(failure)[:300]
            print(f"{name}: left out: {_missing[name]}", file=sys.stderr, flush=True)
        else:
            yield name, found, seconds


def _ask_python(
    name: str, texts: Sequence[str], questions: Sequence[str], limit: int
) -> tuple[list[list[int]], float]:
    python = python_peer(f"recall-{name}")
    task: dict[str, Any] = {
        "name": name,
        "texts": list(texts),
        "questions": list(questions),
        "limit": limit,
    }
    if name == "chromadb":
        task |= {"text_vectors": _vectors(texts), "question_vectors": _vectors(questions)}
    with tempfile.TemporaryDirectory(prefix="recalld-peer-") as home:
        done = subprocess.run(
            [str(python), str(CHILD), home],
            input=json.dumps(task),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"found"')]
    if done.returncode != 0 or not lines:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        raise Unavailable(words[-1] if words else f"it exited with {done.returncode}")
    answer = json.loads(lines[-1])
    return answer["found"], answer["seconds"]


def _vectors(texts: Sequence[str]) -> list[list[float]]:
    from store.embedding.selection import choose_embedder

    found: list[list[float]] = choose_embedder().embed(texts).tolist()
    return found


def _ask_server_memory(
    name: str, texts: Sequence[str], questions: Sequence[str], limit: int
) -> tuple[list[list[int]], float]:
    script = npm_peer("server-memory") / "@modelcontextprotocol" / "server-memory" / "dist"
    with tempfile.TemporaryDirectory(prefix="recalld-peer-") as home:
        memory = {"MEMORY_FILE_PATH": str(Path(home) / "memory.json")}
        with Child([node(), str(script / "index.js")], env=memory) as child:
            child.ask(initialize(), 0)
            child.send(INITIALIZED)
            entities = [
                {"name": str(at), "entityType": "turn", "observations": [text]}
                for at, text in enumerate(texts)
            ]
            _call(child, 1, "create_entities", {"entities": entities})
            began = time.perf_counter()
            found = [
                _names(_call(child, number, "search_nodes", {"query": question}))[:limit]
                for number, question in enumerate(questions, 2)
            ]
            return found, time.perf_counter() - began


def _call(child: Child, identity: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    answer = child.ask(request(identity, "tools/call", params), identity, seconds=60.0)
    if "result" not in answer or answer["result"].get("isError"):
        raise WireFault(f"{tool} failed: {str(answer)[:200]}")
    result: dict[str, Any] = answer["result"]
    return result


def _names(result: dict[str, Any]) -> list[int]:
    graph = msgspec.json.decode(result["content"][0]["text"].encode())
    return [int(entity["name"]) for entity in graph["entities"]]
