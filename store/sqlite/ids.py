"""Ids nobody can guess and nobody gets twice.

The first 48 bits are the time in milliseconds, so that ids of one moment lie side by side in an
index and a write touches few of its pages; the other 80 are random.
"""

import os


def fresh_id(prefix: str, now: int) -> str:
    """A new id, `prefix_` and 32 hexadecimal digits; `now` is unix milliseconds."""
    return f"{prefix}_{now & 0xFFFFFFFFFFFF:012x}{os.urandom(10).hex()}"
