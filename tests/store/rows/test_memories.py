"""Writing items: retries and repetitions are recognised, also those of earlier versions."""

import pytest

from store.database import Connection
from store.errors import KeyReused
from store.model import NewMemory, Provenance
from store.sqlite.engine import EmbeddedEngine

pytestmark = pytest.mark.anyio
BOTH_ENGINES = True

# Earlier versions wrote 1e22 into the JSON columns, this one writes 1e+22.
MEMORY = NewMemory(
    text="apples", id="m1", title="t", tags=("a",), metadata={"big": 1e22, "n": [1, 2.5]},
    details={"x": 1e300}, confidence=0.5, provenance=Provenance(client="c"), occurred_at=7,
    idempotency_key="k",
)  # fmt: skip
HASH_OF_EARLIER_VERSIONS = bytes.fromhex("09bb80ee1ac22363de9b502817320e2a")


def stored_hash(connection: Connection) -> bytes:
    (value,) = connection.execute("SELECT sameness FROM put_keys").fetchone()
    return bytes(value)


async def test_the_hash_of_a_put_is_that_of_earlier_versions(engine: EmbeddedEngine) -> None:
    put = await engine.put("w", MEMORY)

    assert await engine._read("w", stored_hash) == HASH_OF_EARLIER_VERSIONS
    again = await engine.put("w", MEMORY)
    assert (again.id, again.duplicate) == (put.id, True)


async def test_a_key_with_other_content_is_refused(engine: EmbeddedEngine) -> None:
    await engine.put("w", MEMORY)

    with pytest.raises(KeyReused):
        await engine.put("w", NewMemory(text="pears", idempotency_key="k"))
