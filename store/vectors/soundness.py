"""Which stored vectors cannot be right, and starting over with all of them."""

from collections.abc import Iterator
from typing import Final

from store.database import Connection
from store.rows.transaction import counted

#: The size of one stored token of a turn (`tokens.py`), in 128 dimensions.
TOKEN_BYTES: Final = 64

_FINITE: Final = bytes(byte for byte in range(256) if byte & 0x7C != 0x7C)


def wrong_vectors(connection: Connection) -> Iterator[int]:
    """The items whose vector has the wrong length or contains NaN or infinity.

    The tokens of a turn belong to its vector: their length must be a number of whole tokens.

    A vector consists of little-endian half floats. If all exponent bits of one are set, it is NaN
    or infinite, and these bits are in its second byte. So it is enough to look at every second
    byte, and NumPy need not be loaded.
    """
    rows = connection.execute(
        "SELECT vectors.item, vectors.bytes, models.dims FROM vectors"
        " LEFT JOIN models ON models.id = vectors.model WHERE vectors.bytes IS NOT NULL"
    )
    for item, vector, dims in rows:
        if dims is None or len(vector) != 2 * dims or vector[1::2].translate(None, _FINITE):
            yield item
    for (item,) in connection.execute(
        "SELECT turns.item FROM turns JOIN vectors ON vectors.item = turns.item"
        " WHERE vectors.bytes IS NOT NULL"
        " AND (length(turns.tokens) % ? <> 0 OR length(turns.tokens) = 0)",
        (TOKEN_BYTES,),
    ):
        yield item


def forget_vectors(connection: Connection) -> int:
    """Mark every vector as pending."""
    connection.execute("DELETE FROM turns")
    with counted(connection) as changes:
        return connection.execute(
            "UPDATE vectors SET model = NULL, bytes = NULL, change = ?", (changes.next(),)
        ).rowcount
