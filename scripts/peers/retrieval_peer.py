"""One retrieval peer of the recall bench, run by the interpreter of its own environment.

Reads a JSON object (name, texts, questions, limit) from stdin and writes one line with the places
of the texts found for each question. The argument is a directory for its files.
"""

import asyncio
import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any

Ask = Callable[[str, int], list[int]]

WORD = re.compile(r"\w+")


def bm25(task: dict[str, Any], home: str) -> Ask:
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([WORD.findall(text.lower()) for text in task["texts"]])

    def ask(question: str, _at: int) -> list[int]:
        scores = index.get_scores(WORD.findall(question.lower()))
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        return order[: task["limit"]]

    return ask


def chromadb(task: dict[str, Any], home: str) -> Ask:
    import chromadb

    collection = chromadb.PersistentClient(path=home).create_collection(
        "turns", embedding_function=None, metadata={"hnsw:space": "cosine"}
    )
    for start in range(0, len(task["texts"]), 500):
        places = range(start, min(start + 500, len(task["texts"])))
        collection.add(
            ids=[str(place) for place in places],
            documents=[task["texts"][place] for place in places],
            embeddings=[task["text_vectors"][place] for place in places],
        )

    def ask(_question: str, at: int) -> list[int]:
        found = collection.query(
            query_embeddings=[task["question_vectors"][at]], n_results=task["limit"]
        )
        return [int(place) for place in found["ids"][0]]

    return ask


def mcp_memory_service(task: dict[str, Any], home: str) -> Ask:
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    loop = asyncio.new_event_loop()
    storage = SqliteVecMemoryStorage(f"{home}/memory.db")
    loop.run_until_complete(storage.initialize())
    places: dict[str, int] = {}
    for place, text in enumerate(task["texts"]):
        digest = generate_content_hash(text)
        places.setdefault(digest, place)
        memory = Memory(content=text, content_hash=digest, tags=["turn"])
        done, reason = loop.run_until_complete(storage.store(memory))
        if not done and "uplicate" not in reason:
            raise RuntimeError(reason)

    def ask(question: str, _at: int) -> list[int]:
        found = loop.run_until_complete(storage.retrieve(question, n_results=task["limit"]))
        return [places[each.memory.content_hash] for each in found]

    return ask


PEERS: dict[str, Callable[[dict[str, Any], str], Ask]] = {
    "bm25": bm25,
    "chromadb": chromadb,
    "mcp-memory-service": mcp_memory_service,
}

if __name__ == "__main__":
    task = json.load(sys.stdin)
    ask = PEERS[task["name"]](task, sys.argv[1])
    began = time.perf_counter()
    found = [ask(question, at) for at, question in enumerate(task["questions"])]
    print(json.dumps({"found": found, "seconds": time.perf_counter() - began}), flush=True)
