"""The server as a whole: its connections, its version, and the tables beside the banks."""

import time
from collections.abc import Callable
from typing import Final

import anyio
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from store import log
from store.clock import wall_clock
from store.errors import StorageBusy
from store.operations.sessions import Sessions
from store.postgres.connection import connect
from store.postgres.database import Pools, ServerDatabase
from store.postgres.migrate import migrate
from store.postgres.pool import Pool
from store.postgres.server_errors import UNREACHABLE, ServerRefused, is_lost

READERS: Final = 4
WRITERS: Final = 4
LOOK_SECONDS: Final = 2.0  # between two looks at the server, for `health`


class ServerCatalogue:
    """Implements `store.bank.Catalogue`."""

    def __init__(self, pools: Pools, version: str, now: Callable[[], int]) -> None:
        self.pools = pools
        self.version = version
        self.now = now
        self.database = ServerDatabase(pools)
        self.sessions = Sessions(self.database, now)
        self._is_unreachable = False

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        read_url: str | None = None,
        password: str | None = None,
        readers: int = READERS,
        writers: int = WRITERS,
        prepares: bool = True,
        now: Callable[[], int] = wall_clock,
    ) -> "ServerCatalogue":
        """Connect, and bring the schema up to date."""
        try:
            url = address(url, password)
            read_url = None if read_url is None else address(read_url, password)
        except psycopg.ProgrammingError as error:
            raise ServerRefused("is not a PostgreSQL address") from error
        version = await anyio.to_thread.run_sync(prepare, url)
        replica = None
        if read_url is not None:
            replica = Pool(read_url, readers, name="store-replica", prepares=prepares)
        pools = Pools(
            writers=Pool(url, writers, name="store-writer", prepares=prepares),
            readers=Pool(url, readers, name="store-reader", prepares=prepares),
            replica=replica,
        )
        return cls(pools, version, now)

    async def watch(self) -> None:
        """Look at the server again and again, so that `health` needs no connection."""
        while True:
            began = time.monotonic()
            try:
                await self.database.read(lambda connection: connection.execute("SELECT 1"))
            except StorageBusy:
                self._note(is_unreachable=True)
            else:
                self._note(is_unreachable=False)
            await anyio.sleep(max(0.1, LOOK_SECONDS - (time.monotonic() - began)))

    def degraded(self) -> set[str]:
        found = {"storage-unreachable"} if self._is_unreachable else set[str]()
        if self.database.is_full:
            found.add("storage-full")
        return found

    async def close(self) -> None:
        self.database.close()
        for pool in self.pools:
            if pool is not None:
                await pool.close()

    def _note(self, *, is_unreachable: bool) -> None:
        if is_unreachable != self._is_unreachable:
            log.warning("server.lost" if is_unreachable else "server.back")
        self._is_unreachable = is_unreachable


def address(url: str, password: str | None) -> str:
    """The address as libpq reads it; the password may be given apart from it."""
    options = conninfo_to_dict(url)
    if password is not None:
        options["password"] = password
    return make_conninfo("", **{name: str(value) for name, value in options.items()})


def prepare(url: str) -> str:
    """Refuse a server that cannot be used, migrate it, and return its version. Blocks."""
    try:
        server = connect(url, prepares=False)
    except psycopg.OperationalError as error:
        raise _not_connected(error) from error
    with server:
        try:
            migrate(server)
        except psycopg.Error as error:
            if is_lost(error):
                raise StorageBusy(UNREACHABLE) from error
            code = error.sqlstate
            raise ServerRefused(f"the server refused the schema (code {code})") from error
        number = server.info.server_version
        return f"postgresql {number // 10_000}.{number % 10_000}"


def _not_connected(error: psycopg.OperationalError) -> ServerRefused | StorageBusy:
    """The server's own words without the address, which may contain a password."""
    words = str(error).casefold()
    if "password authentication failed" in words or "no password supplied" in words:
        return ServerRefused("the server refused the user or the password")
    if "does not exist" in words:
        return ServerRefused("the server has no such database or user")
    if "no pg_hba.conf entry" in words or "not permitted to log in" in words:
        return ServerRefused("the server does not admit this user from here")
    return StorageBusy(UNREACHABLE)
