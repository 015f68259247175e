"""Copies a bank from one store to another, by its export, and proves that both are equal."""

import tempfile
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from store.engine import Engine, Progress
from store.errors import BankExists, BankNotFound, StorageFailed


async def copy_bank(
    source: Engine, target: Engine, name: str, progress: Progress
) -> dict[str, Any]:
    """Copy one bank. A bank of that name in the target must be empty, or an earlier copy of it.

    Vectors are computed again in the target, at its first search. Forgotten items, tombstones and
    backups stay behind.
    """
    quota = (await source.bank(name)).quota_bytes
    directory = await anyio.to_thread.run_sync(tempfile.mkdtemp, None, "recalld-")
    try:
        path, again = Path(directory) / "bank.jsonl", Path(directory) / "copy.jsonl"
        made = await source.export(name, path, progress=progress)
        try:
            await target.bank(name)
        except BankNotFound:
            await target.create_bank(name)
        else:
            await _refuse_other(target, name, path)
        taken = await target.import_file(name, path, progress=progress)
        if quota is not None:
            await target.set_quota(name, quota)
        copied = await target.export(name, again)
        if copied.digest != made.digest:
            raise StorageFailed(
                f"the copy of bank {name!r} differs from the original: do not use it"
            )
    finally:
        await anyio.to_thread.run_sync(_remove, Path(directory))
    return {
        "bank": name,
        "records": made.records,
        "created": taken.created,
        "known": taken.known,
        "digest": made.digest,
    }


async def _refuse_other(target: Engine, name: str, path: Path) -> None:
    """Refuse a bank that holds something else, before anything is written."""
    compared = await target.import_file(name, path, dry_run=True)
    if (await target.stats(name)).items > compared.known:
        raise BankExists(name)


def _remove(directory: Path) -> None:
    for file in directory.iterdir():
        file.unlink()
    directory.rmdir()
