"""A minimal ranking for tests: keyword search only, with placeholder vectors.

Store tests use it where the real ranking (model, graph, fusion) would only cost time. Like the real
one it stores a vector for every pending item and keeps no state after a reset.
"""

from collections.abc import Sequence
from hashlib import blake2b
from itertools import cycle, islice

from anyio.abc import TaskGroup

from store.model import Found, Hit, Query
from store.ranking.tokenizer import match_expression
from store.sqlite.database import Connection
from store.sqlite.open_bank import OpenBank
from store.sqlite.rows.items import SELECT, item_of, where
from store.sqlite.rows.transaction import counted

DIMS = 8


class PlainRanking:
    """Keyword search in FTS5's order, and eight-dimensional vectors from a hash."""

    def __init__(self, background: TaskGroup | None = None) -> None:
        self.resets = 0
        self.left: list[str] = []
        self.embedder: str | None = "plain"

    async def vectors(self, texts: Sequence[str]) -> None:
        return None

    async def search(self, bank: OpenBank, query: Query) -> Found:
        def select(connection: Connection) -> Found:
            expression = match_expression(query.keywords or query.text)
            if expression is None:
                return Found()
            condition, values = where(query.filters, query.kinds)
            rows = connection.execute(
                f"{SELECT} JOIN words ON words.rowid = items.id WHERE words MATCH ? AND {condition}"
                " ORDER BY bm25(words), items.id LIMIT ?",
                [expression, *values, query.limit],
            )
            return Found(hits=tuple(Hit(item=item_of(row), score=0.5) for row in rows))

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


def embed_pending(connection: Connection) -> None:
    pending = connection.execute(
        "SELECT item, tokens FROM vectors JOIN words ON words.rowid = item WHERE bytes IS NULL"
    ).fetchall()
    if not pending:
        return
    connection.execute(
        "INSERT OR IGNORE INTO models (name, revision, dims) VALUES ('plain', '1', ?)", (DIMS,)
    )
    (model,) = connection.execute("SELECT id FROM models WHERE name = 'plain'").fetchone()
    with counted(connection) as changes:
        for item, tokens in pending:
            content = vector(tokens)
            connection.execute(
                "UPDATE vectors SET model = ?, bytes = ?, change = ? WHERE item = ?",
                (model, content, changes.next(), item),
            )


def vector(tokens: str) -> bytes:
    """Half-precision floats from a hash, with the upper exponent bits cleared to exclude NaN."""
    hashed = islice(cycle(blake2b(tokens.encode(), digest_size=16).digest()), DIMS * 2)
    return bytes(byte & 0x3F for byte in hashed)
