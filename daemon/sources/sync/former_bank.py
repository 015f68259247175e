"""Deletes a source's documents from a bank: after a change of its `bank`, and when it is removed.

The documents of a source follow its definition to another bank. The former bank is cleared after a
complete run has filled the new one. If the new bank then holds far fewer documents, the source may
have been unreachable at that moment, so the former ones stay until the next run.
"""

from typing import Final

from daemon.sources.sync.deletion_guard import judge
from store.engine import Engine
from store.errors import BankNotFound
from store.model import SourceBatch

DELETED_AT_ONCE: Final = 200


async def leave_bank(engine: Engine, source: str, *, former: str, present: str) -> bool:
    """Clear the former bank; False if the present one lacks too many of its documents."""
    before, after = await _count(engine, former, source), await _count(engine, present, source)
    verdict = judge(
        deletions=max(0, before - after),
        documents=before,
        is_same_place=True,
        is_same_definition=True,
        allowed=0,
    )
    if verdict.withheld:
        return False
    await clear_bank(engine, source, former)
    return True


async def clear_bank(engine: Engine, source: str, bank: str) -> int:
    """Delete what syncs of a source have stored in a bank; returns the number of documents."""
    try:
        files = await engine.source_files(bank, source)
    except BankNotFound:
        return 0
    for start in range(0, len(files), DELETED_AT_ONCE):
        gone = tuple(file.source_id for file in files[start : start + DELETED_AT_ONCE])
        await engine.sync_documents(bank, SourceBatch(source=source, removed=gone))
    return sum(file.document is not None for file in files)


async def _count(engine: Engine, bank: str, source: str) -> int:
    try:
        return await engine.count_synced(bank, source)
    except BankNotFound:
        return 0
