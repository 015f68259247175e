"""What every dialect is built on: the engine and the clock, handed down from `daemon.app`."""

from msgspec import Struct


class House(Struct, frozen=True, kw_only=True, eq=False):
    """The engine behind the tools (it joins with the dialects)."""
