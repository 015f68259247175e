"""Facts about a server for `recalld doctor`: version, rights, extension, connections, replica."""

from typing import Any

import psycopg
from msgspec import Struct

from store.postgres.catalogue import address
from store.postgres.connection import connect
from store.postgres.migrate import LEAST_VERSION


class ServerFacts(Struct, frozen=True, kw_only=True):
    """What a look at a server shows. Nothing is written."""

    version: str
    is_old: bool
    is_privileged: bool  # exempt from row-level security
    connections: int
    max_connections: int
    pgvector: str | None
    lag_seconds: float | None  # of a replica; None for a primary


def look(url: str, password: str | None) -> ServerFacts:
    """Connect once and ask; raises `psycopg.Error`. Blocks."""
    with connect(address(url, password), prepares=False) as server:
        number = server.info.server_version

        def one(query: bytes) -> Any:
            row = server.execute(query).fetchone()
            return None if row is None else row[0]

        return ServerFacts(
            version=f"PostgreSQL {number // 10_000}.{number % 10_000}",
            is_old=number < LEAST_VERSION,
            is_privileged=bool(
                one(b"SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
            ),
            connections=int(one(b"SELECT count(*) FROM pg_stat_activity") or 0),
            max_connections=int(one(b"SELECT current_setting('max_connections')::int") or 0),
            pgvector=one(b"SELECT extversion FROM pg_extension WHERE extname = 'vector'"),
            lag_seconds=_lag(server),
        )


def _lag(server: psycopg.Connection[Any]) -> float | None:
    row = server.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN coalesce(extract(epoch FROM"
        " now() - pg_last_xact_replay_timestamp())::float8, 0) END"
    ).fetchone()
    return None if row is None or row[0] is None else float(row[0])
