"""A ranking by words alone, until the store's own is merged; then this module goes."""

from anyio.abc import TaskGroup

from store.banks import OpenBank
from store.database import Connection
from store.items import SELECT, item_of, where
from store.lexical import index_text, match_expression, query_terms, snippet
from store.model import Found, Hit, Query


class KeywordRanking:
    embedder = None

    def __init__(self, _tasks: TaskGroup) -> None:
        pass

    async def search(self, bank: OpenBank, query: Query) -> Found:
        def read(connection: Connection) -> Found:
            words = query.keywords or query.text
            expression = match_expression(words)
            if expression is None:
                return Found(mode="keyword")
            condition, values = where(query.filters, query.kinds)
            rows = connection.execute(
                f"{SELECT} JOIN words ON words.rowid = items.id"
                f" WHERE words MATCH ? AND {condition} ORDER BY bm25(words), items.id LIMIT 200",
                (expression, *values),
            ).fetchall()
            terms = list(query_terms(words))
            total = sum(term.weight for term in terms) or 1.0
            hits: list[Hit] = []
            for row in rows:
                item = item_of(row)
                padded = (
                    f" {index_text(item.title + ' ' + item.text + ' ' + (item.context or ''))} "
                )
                share = sum(t.weight for t in terms if f" {t.text} " in padded) / total
                found = snippet(item.text, words)
                hits.append(
                    Hit(
                        item=item,
                        score=round(0.45 + 0.5 * share, 4),
                        snippet=found.text,
                        matches=found.matches,
                    )
                )
            hits.sort(key=lambda hit: -hit.score)
            kept = [hit for hit in hits if hit.score >= query.min_score]
            return Found(
                hits=tuple(kept[: query.limit]), below=len(hits) - len(kept), mode="keyword"
            )

        return await bank.database.read(read)

    async def written(self, bank: OpenBank) -> None:
        return

    async def reset(self, bank: OpenBank) -> None:
        return

    async def leave(self, bank: OpenBank) -> None:
        return

    def degraded(self) -> tuple[str, ...]:
        return ()
