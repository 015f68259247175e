"""The operations that erase items, in every engine.

An engine deletes the rows with `erasing.remove` and then removes the copies that it can reach.
"""

from collections.abc import Callable, Sequence

from store.arguments import bank_argument, texts
from store.model import Erased
from store.operations import erasing
from store.operations.transfers import Transfers
from store.rows import listing
from store.rows.transaction import WriteTransaction
from store.validate import check_labels, storable_text


class Erasure(Transfers):
    """Erases chosen items, or everything that was forgotten."""

    async def _erase(self, bank: str, work: Callable[[WriteTransaction], Erased]) -> Erased:
        """Run `work` in a transaction, then remove the copies that the engine can reach."""
        raise NotImplementedError

    async def erase(
        self,
        bank: str,
        ids: Sequence[str] = (),
        *,
        documents: Sequence[str] = (),
        reason: str = "asked for",
    ) -> Erased:
        bank, ids = bank_argument(bank), texts("ids", ids)
        documents, reason = texts("documents", documents), storable_text("reason", reason)
        check_labels(reason=reason)
        now = self._now()

        def work(changes: WriteTransaction) -> Erased:
            return erasing.remove(changes, ids, documents=documents, reason=reason, now=now)

        return await self._erase(bank, work)

    async def erase_forgotten(self, bank: str, *, reason: str = "asked for") -> Erased:
        bank, reason = bank_argument(bank), storable_text("reason", reason)
        check_labels(reason=reason)
        now = self._now()

        def work(changes: WriteTransaction) -> Erased:
            ids = listing.forgotten_ids(changes.connection)
            return erasing.remove(changes, ids, reason=reason, now=now)

        return await self._erase(bank, work)
