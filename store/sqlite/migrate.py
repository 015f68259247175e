"""Schema migrations: numbered SQL files, forward only, one transaction each.

The version is SQLite's own `user_version`, which is part of the transaction that changes it. A
process that is killed at any moment leaves either the old schema or the new one. A database with
data is first copied to a file beside it. The next erase deletes that copy, because it may hold the
erased data. A database with a newer schema is refused.
"""

import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from store import log
from store.errors import SchemaTooNew, StorageDamaged, StorageForeign
from store.files import sync_directory, sync_file
from store.sqlite.connection import Connection, copy_database, run_on_file

MIGRATIONS: Final = Path(__file__).parent / "migrations"


class Migration(NamedTuple):
    version: int
    path: Path


def migrations(family: str, *, root: Path = MIGRATIONS) -> list[Migration]:
    """The steps of a family ("catalogue" or "bank"), in order: 0001_name.sql is version 1."""
    found = sorted((root / family).glob("[0-9][0-9][0-9][0-9]_*.sql"))
    steps = [Migration(int(path.name[:4]), path) for path in found]
    if [step.version for step in steps] != list(range(1, len(steps) + 1)):
        raise StorageDamaged(f"the {family} migrations of this installation are not complete")
    return steps


def migrate(connection: Connection, family: str, *, path: Path, root: Path = MIGRATIONS) -> None:
    """Bring the database at `path` to the newest schema, before anything else uses it."""
    steps = migrations(family, root=root)
    _refuse_programs(connection)
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found > len(steps):
        raise SchemaTooNew(found, len(steps))
    if 0 < found < len(steps):
        keep_copy(connection, backup_path(path, found))
    for step in steps[found:]:
        began = time.monotonic()
        apply(connection, step)
        if found:  # not for a new database
            ms = round((time.monotonic() - began) * 1000)
            log.info(
                "migration.applied",
                family=family,
                version=step.version,
                directory=path.parent.name,
                ms=ms,
            )


def _refuse_programs(connection: Connection) -> None:
    """Refuse a file with views or triggers: recalld has none, and they run code when they are read.

    A view in the place of a table can make a single read run for ever.
    """
    found = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE type IN ('view', 'trigger') LIMIT 1"
    ).fetchone()
    if found is not None:
        raise StorageForeign("the database has views or triggers, which recalld never creates")


def backup_path(path: Path, version: int) -> Path:
    """The path of the copy that is made before a migration away from `version`."""
    return path.with_name(f"{path.name}.before-v{version + 1}")


def apply(connection: Connection, step: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements(step.path.read_text(encoding="utf-8")):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {step.version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def statements(script: str) -> Iterator[str]:
    """The statements of a script, one by one (`executescript` would commit first)."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        raise StorageDamaged("a migration of this installation ends in the middle of a statement")


def keep_copy(connection: Connection, target: Path) -> None:
    """Write a complete, verified copy to `target`, unless an earlier attempt has left one."""
    if target.exists():
        return
    temporary = target.with_name(target.name + ".tmp")
    copy_database(connection, temporary)
    if run_on_file(temporary, _quick_check) != "ok":
        raise StorageDamaged("the copy taken before an upgrade is damaged; nothing was changed")
    sync_file(temporary)
    temporary.replace(target)
    sync_directory(target.parent)


def _quick_check(connection: Connection) -> str:
    (result,) = connection.execute("PRAGMA quick_check").fetchone()
    return str(result)
