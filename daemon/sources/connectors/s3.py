"""The S3 connector: the objects of a bucket below a prefix, with obstore (`recalld[s3]`).

Credentials come from the environment (`AWS_ACCESS_KEY_ID` and so on), as in every S3 client.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

from daemon.sources.connectors.connector import (
    Entry,
    FileUnreadable,
    FileVanished,
    Listed,
    Skipped,
    SourceUnavailable,
)
from daemon.sources.connectors.ignore import Rules
from daemon.sources.definition import Definition
from daemon.sources.formats import format_of


async def open_bucket(definition: Definition) -> "Bucket":
    try:
        from obstore.store import S3Store
    except ImportError:
        raise SourceUnavailable("sources of kind s3 need the extra recalld[s3]") from None
    options: dict[str, Any] = {"region": definition.region}
    if definition.endpoint:
        options["endpoint"] = definition.endpoint
        options["client_options"] = {"allow_http": definition.endpoint.startswith("http://")}
    try:
        store = S3Store.from_url(definition.url, **options)
    except Exception as error:  # noqa: BLE001  (obstore raises classes of its own)
        raise SourceUnavailable(_reason(error)) from None
    return Bucket(definition, store)


class Bucket:
    """See `daemon.sources.connectors.connector.Connector`."""

    def __init__(self, definition: Definition, store: Any) -> None:
        self._definition = definition
        self._store = store
        self._rules = Rules(definition.include, definition.exclude)

    @property
    def place(self) -> str:
        return ""

    async def close(self) -> None:
        pass

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        try:
            async for page in self._store.list():
                for found in page:
                    entry = self._entry(found)
                    if entry is not None:
                        yield entry
        except Exception as error:  # noqa: BLE001  (obstore raises classes of its own)
            raise SourceUnavailable(_reason(error)) from None

    async def read(self, listed: Listed) -> bytes:
        try:
            got = await self._store.get_async(listed.source_id)
            return bytes(await got.bytes_async())
        except FileNotFoundError:
            raise FileVanished(listed.source_id) from None
        except Exception as error:  # noqa: BLE001  (obstore raises classes of its own)
            raise FileUnreadable(_reason(error)) from None

    def _entry(self, found: Any) -> Entry | None:
        path, size = str(found["path"]), int(found["size"])
        parents = path.split("/")[:-1]
        if any(
            self._rules.is_folder_excluded("/".join(parents[: depth + 1]))
            for depth in range(len(parents))
        ):
            return None
        reason = self._rules.reason(path)
        if reason == "secret":
            return Skipped(source_id=path, reason="looks like a secret")
        if reason is not None or (not self._rules.has_include and format_of(path) is None):
            return None
        if size > self._definition.max_bytes:
            limit = self._definition.max_bytes
            return Skipped(source_id=path, reason=f"has {size} bytes; the limit is {limit}")
        seconds = found["last_modified"].timestamp()
        tag = found.get("e_tag") or f"{size}:{seconds}"
        return Listed(
            source_id=path,
            version=f"{tag}",
            size=size,
            url=f"{self._definition.url.rstrip('/')}/{path}",
            updated_at=int(seconds * 1000),
        )


def _reason(error: Exception) -> str:
    """The first line of an error of obstore, which repeats the request below it."""
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0][:300]}"
