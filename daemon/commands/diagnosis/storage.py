"""The checks of `recalld doctor` that concern a database server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from daemon.config import Settings
from daemon.exit_codes import Exit

if TYPE_CHECKING:
    from store.postgres.diagnosis import ServerFacts

Result = tuple[str, str, str]  # level, message, remedy
LAG_SECONDS: Final = 30.0
MOST_CONNECTIONS: Final = 0.9


def server_findings(settings: Settings) -> Iterator[Result]:
    """Level, message and remedy of each finding; none without `storage.url`."""
    storage = settings.storage
    if not storage.url:
        return
    try:
        from psycopg import Error

        from store.postgres.diagnosis import look
    except ModuleNotFoundError:
        yield "problem", "storage.url needs the package psycopg", "install recalld[postgres]"
        return
    for key, url in (("storage.url", storage.url), ("storage.read_url", storage.read_url)):
        if not url:
            continue
        try:
            facts = look(url, storage.password())
        except Error:
            # Not the server's own words: they can contain the address.
            yield "problem", f"{key}: the server cannot be used", "check address, user and password"
        except Exit as refused:
            yield "problem", refused.message, "name a file that can be read"
        else:
            yield from _judge(key, facts, is_replica=key == "storage.read_url")


def _judge(key: str, facts: "ServerFacts", *, is_replica: bool) -> Iterator[Result]:
    vector = f", pgvector {facts.pgvector}" if facts.pgvector else ""
    used = f"{facts.connections} of {facts.max_connections} connections"
    yield "ok", f"{key}: {facts.version}{vector}, {used}", ""
    if facts.is_old:
        yield "problem", f"{key}: the server is too old", "use PostgreSQL 14 or newer"
    if facts.is_privileged:
        yield (
            "warning",
            f"{key}: the user is exempt from row-level security",
            "use a user that is not a superuser and has no BYPASSRLS",
        )
    if facts.connections > MOST_CONNECTIONS * facts.max_connections:
        yield "warning", f"{key}: {used} are used", "raise max_connections, or use a pooler"
    if is_replica and facts.lag_seconds is None:
        yield "warning", f"{key}: is no replica", "name a replica, or leave it out"
    elif not is_replica and facts.lag_seconds is not None:
        yield "problem", f"{key}: is a replica and cannot be written", "name the primary"
    elif facts.lag_seconds is not None and facts.lag_seconds > LAG_SECONDS:
        seconds = round(facts.lag_seconds)
        yield "warning", f"{key}: is {seconds} s behind, or idle", "check the replication"
