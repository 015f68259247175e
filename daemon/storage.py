"""Opens the engine that the settings choose: the embedded one, or the one on a server.

Only this module names an engine. The driver of the server is optional and imported late.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import structlog

from daemon.config.settings import Storage
from daemon.exit_codes import CANNOT_CREATE, CONFIG, UNAVAILABLE, Exit
from daemon.operations import directories
from daemon.operations.locks import owned
from store.embedding.embedder import Embedder
from store.engine import Engine
from store.errors import SchemaTooNew, StorageBusy, StoreError
from store.search.hybrid import HybridRanking
from store.sqlite.engine import open_engine

log: Final = structlog.get_logger()

SCHEMES: Final = ("postgresql", "postgres")
DRIVER: Final = "needs the package psycopg: install recalld[postgres]"


@asynccontextmanager
async def open_storage(
    data: Path, storage: Storage, embedder: Embedder | None = None
) -> AsyncGenerator[Engine]:
    """The engine of a data directory, or of the server that the settings name."""
    async with AsyncExitStack() as stack:
        try:
            if storage.url:
                engine: Engine = await stack.enter_async_context(_open_server(storage, embedder))
            else:
                engine = await stack.enter_async_context(
                    open_engine(data, ranking=lambda group: HybridRanking(group, embedder))
                )
        except (StoreError, ExceptionGroup) as failure:
            raise _not_opened(_first(failure), storage) from None
        yield engine


@asynccontextmanager
async def open_address(address: str, embedder: Embedder | None = None) -> AsyncGenerator[Engine]:
    """The engine at an address: `postgresql://…`, or a data directory that no daemon uses."""
    if is_server(address):
        async with open_storage(Path(), Storage(url=address), embedder) as engine:
            yield engine
        return
    data = _directory(address)
    directories.keep_private(data)
    with owned(data / "daemon.lock", "recalld bank move"):
        async with open_storage(data, Storage(), embedder) as engine:
            yield engine


def _directory(address: str) -> Path:
    path = unquote(urlsplit(address).path) if address.startswith("file://") else address
    return Path(path).expanduser().absolute()


def is_server(address: str) -> bool:
    return address.partition("://")[0] in SCHEMES


def without_password(address: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(address)
    if parts.password is None:
        return address
    return address.replace(f":{parts.password}@", ":…@", 1)


@asynccontextmanager
async def _open_server(storage: Storage, embedder: Embedder | None) -> AsyncGenerator[Engine]:
    try:
        from store.postgres.catalogue import ServerCatalogue
        from store.postgres.engine import open_postgres_engine
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise Exit(CONFIG, f"storage.url {DRIVER}") from None
    catalogue = await ServerCatalogue.open(
        storage.url,
        read_url=storage.read_url or None,
        password=storage.password(),
        prepares=not storage.pooler,
    )
    log.warning("storage.preview", storage=catalogue.version)
    try:
        async with open_postgres_engine(
            catalogue,
            ranking=lambda group: HybridRanking(group, embedder),
            vector_bytes=storage.vector_bytes,
        ) as engine:
            yield engine
    finally:
        await catalogue.close()


def _not_opened(failure: StoreError, storage: Storage) -> Exit:
    if not storage.url:
        return Exit(CANNOT_CREATE, f"the store cannot be opened: {failure}")
    if isinstance(failure, StorageBusy):
        return Exit(UNAVAILABLE, f"storage.url: {failure}")
    if isinstance(failure, SchemaTooNew) or type(failure).__name__ == "ServerRefused":
        return Exit(CONFIG, f"storage.url: {failure}")
    return Exit(CANNOT_CREATE, f"storage.url: {failure}")


def _first(failure: StoreError | ExceptionGroup[Exception]) -> StoreError:
    """The `StoreError` inside a task group's exception; any other exception is raised again."""
    if isinstance(failure, StoreError):
        return failure
    inner = failure.exceptions[0]
    if isinstance(inner, StoreError):
        return inner
    raise failure
