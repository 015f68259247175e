"""Objects of a bucket as a source, with obstore's store in memory."""

import pytest

from daemon.exit_codes import Exit
from daemon.sources.connectors.factories import Connectors
from daemon.sources.connectors.s3 import Bucket
from daemon.sources.definition import Definition
from tests.daemon.sources.kit import Bench

obstore_store = pytest.importorskip("obstore.store")


async def test_objects_are_stored_changed_and_deleted(docs: Bench) -> None:
    store = obstore_store.MemoryStore()

    async def factory(definition: Definition) -> Bucket:
        return Bucket(definition, store)

    for number in range(15):
        store.put(f"docs/{number}.md", f"# Title {number}\n\ntext {number}".encode())
    store.put("docs/.env", b"SECRET=1")
    store.put("image.png", b"\x89PNG")
    docs.use(kind="s3", url="s3://bucket/prefix")
    docs.sources._connectors = Connectors(docs.directory, {"s3": factory})

    first = await docs.sync()
    assert (first.added, first.skipped) == (15, 1)
    found = (await docs.documents())["docs/3.md"]
    assert (found.title, found.url) == ("Title 3", "s3://bucket/prefix/docs/3.md")
    assert (await docs.sync()).unchanged == 15

    store.put("docs/3.md", b"# Title 3\n\nother text")
    store.delete("docs/4.md")
    second = await docs.sync()
    assert (second.changed, second.deleted, second.unchanged) == (1, 1, 13)


async def test_a_bucket_that_cannot_be_reached_is_reported(docs: Bench) -> None:
    docs.use(kind="s3", url="s3://bucket", endpoint="http://127.0.0.1:9")

    class Broken:
        def list(self) -> None:
            raise OSError("connection refused\nwith details")

    async def factory(definition: Definition) -> Bucket:
        return Bucket(definition, Broken())

    docs.sources._connectors = Connectors(docs.directory, {"s3": factory})
    with pytest.raises(Exit, match=r"connection refused$"):
        await docs.sync()
