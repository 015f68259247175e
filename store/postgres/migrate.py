"""The schema on the server: numbered SQL files, forward only, all of them in one transaction.

Several daemons may start at once. The one that gets the advisory lock brings the schema up to date,
and the others wait for it. The lock belongs to the transaction, so that a pooler cannot lose it. A
newer schema is refused before anything is written.
"""

import time
from pathlib import Path
from typing import Final

import psycopg

from store import log
from store.errors import SchemaTooNew, StorageBusy
from store.postgres.connection import Server
from store.postgres.server_errors import ServerRefused

MIGRATIONS: Final = Path(__file__).parent / "migrations"
LOCK: Final = 0x7265636C  # "recl"
LEAST_VERSION: Final = 140_000

_VERSION: Final = "SELECT to_regclass('recalld_schema') IS NOT NULL"


def migrate(server: Server, *, root: Path = MIGRATIONS) -> int:
    """Bring the schema to the newest version; returns the version."""
    _refuse_old(server)
    steps = sorted(root.glob("[0-9][0-9][0-9][0-9]_*.sql"))
    if _version(server) == len(steps):
        return len(steps)
    began = time.monotonic()
    try:
        with server.transaction():
            server.execute("SELECT set_config('lock_timeout', '10s', true)")
            server.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
            found = _version(server)
            if found > len(steps):
                raise SchemaTooNew(found, len(steps))
            for step in steps[found:]:
                server.execute(step.read_bytes())
            _write_version(server, len(steps), is_new=found == 0)
    except psycopg.errors.LockNotAvailable as error:
        raise StorageBusy("another process is changing the schema") from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise ServerRefused(
            "the database user may not create tables: grant it CREATE on the schema"
        ) from error
    if found:
        ms = round((time.monotonic() - began) * 1000)
        log.info("migration.applied", family="postgres", version=len(steps), ms=ms)
    return len(steps)


def _refuse_old(server: Server) -> None:
    version = server.info.server_version
    if version < LEAST_VERSION:
        raise ServerRefused(f"PostgreSQL {version // 10_000} is too old: 14 or newer is needed")
    encoding = server.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise ServerRefused(f"the database has the encoding {encoding}: UTF8 is needed")


def _version(server: Server) -> int:
    """The version of the schema; 0 if there is none."""
    row = server.execute(_VERSION).fetchone()
    if row is None or not row[0]:
        return 0
    row = server.execute("SELECT version FROM recalld_schema").fetchone()
    return 0 if row is None else int(row[0])


def _write_version(server: Server, version: int, *, is_new: bool) -> None:
    if is_new:
        server.execute("CREATE TABLE recalld_schema (version integer NOT NULL)")
        server.execute("INSERT INTO recalld_schema (version) VALUES ($1)", (version,))
    else:
        server.execute("UPDATE recalld_schema SET version = $1", (version,))
