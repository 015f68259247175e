"""Unique ids that cannot be guessed.

The first 48 bits are the time in milliseconds, so that ids created together are adjacent in an
index and a write touches few of its pages. The other 80 bits are random.
"""

import os


def fresh_id(prefix: str, now: int) -> str:
    """A new id, `prefix_` and 32 hexadecimal digits; `now` is unix milliseconds."""
    return f"{prefix}_{now & 0xFFFFFFFFFFFF:012x}{os.urandom(10).hex()}"
