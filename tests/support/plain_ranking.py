"""A minimal ranking for tests: keyword search only, with placeholder vectors.

Store tests use it where the real ranking (model, graph, fusion) would only cost time. Like the real
one it stores a vector for every pending item and keeps no state after a reset.
"""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from itertools import cycle, islice

from anyio.abc import TaskGroup

from store.bank import OpenBank
from store.database import Connection
from store.embedding.embedder import Identity
from store.model import Found, Hit, Query
from store.ranking.tokenizer import query_terms
from store.rows.items import fetch, item_of, where
from store.rows.transaction import counted
from store.vectors.indexing import model_number

DIMS = 8
MOST = 10_000


class PlainRanking:
    """Keyword search by the number of words, and eight-dimensional vectors from a hash."""

    def __init__(self, background: TaskGroup | None = None) -> None:
        self.resets = 0
        self.left: list[str] = []
        self.embedder: str | None = "plain"

    async def vectors(self, texts: Sequence[str]) -> None:
        return None

    async def search(self, bank: OpenBank, query: Query) -> Found:
        def select(connection: Connection) -> Found:
            terms = [term.text for term in query_terms(query.keywords or query.text)]
            among = where(connection.dialect, query.filters, query.kinds)
            found: Counter[int] = Counter()
            for ids in connection.words.postings(terms, MOST, among).values():
                found.update(ids)
            best = sorted(found, key=lambda id: (-found[id], id))[: query.limit]
            rows = {row[0]: row for row in fetch(connection, best)}
            return Found(hits=tuple(Hit(item=item_of(rows[id]), score=0.5) for id in best))

        return await bank.database.read(select)

    async def written(self, bank: OpenBank) -> None:
        await bank.database.write(embed_pending)

    async def reset(self, bank: OpenBank) -> None:
        self.resets += 1

    async def settle(self, bank: OpenBank, watch: object = None) -> None:
        await self.written(bank)

    async def close(self) -> None:
        pass

    async def leave(self, bank: OpenBank) -> None:
        self.left.append(bank.name)

    def degraded(self) -> tuple[str, ...]:
        return ()

    def cached_bytes(self, bank: OpenBank) -> int:
        return 0


def embed_pending(connection: Connection) -> None:
    rows = connection.execute("SELECT item FROM vectors WHERE bytes IS NULL").fetchall()
    if not rows:
        return
    model = model_number(connection, Identity(name="plain", revision="1", dims=DIMS))
    with counted(connection) as changes:
        for item, tokens in connection.words.tokens([item for (item,) in rows]):
            content = vector(tokens)
            connection.execute(
                "UPDATE vectors SET model = ?, bytes = ?, change = ? WHERE item = ?",
                (model, content, changes.next(), item),
            )


def vector(tokens: str) -> bytes:
    """Half-precision floats from a hash, with the upper exponent bits cleared to exclude NaN."""
    hashed = islice(cycle(blake2b(tokens.encode(), digest_size=16).digest()), DIMS * 2)
    return bytes(byte & 0x3F for byte in hashed)
