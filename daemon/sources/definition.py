"""The definition of one source, typed, and the digest that identifies it."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

Kind = Literal["filesystem", "git", "s3", "script"]

#: The keys that do not change which files a source holds.
_NOT_IDENTITY: Final = (
    "bank",
    "watch",
    "interval",
    "timeout",
    "allow_hosts",
    "env",
    "is_from_file",
)


class Definition(Struct, frozen=True, kw_only=True):
    """A source as `daemon.config.sources` accepts it. Keys of other kinds are empty."""

    name: str
    kind: Kind
    root: str = ""
    url: str = ""
    branch: str = ""
    endpoint: str = ""
    region: str = ""
    path: str = ""
    timeout: int = 300
    config: Mapping[str, Any] = {}
    allow_hosts: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = 16 * 1024 * 1024
    follow_symlinks: bool = False
    bank: str = ""
    watch: bool = False
    interval: int = 0
    #: Whether the configuration file defines it, so that no command can change it.
    is_from_file: bool = False

    @property
    def ledger(self) -> str:
        """A digest of everything that decides which files the source holds.

        A ledger of another definition is not trusted: its files may lie elsewhere.
        """
        fields = msgspec.to_builtins(self)
        for name in _NOT_IDENTITY:
            del fields[name]
        return blake2b(msgspec.json.encode(fields, order="sorted"), digest_size=16).hexdigest()


def make_definition(name: str, checked: Mapping[str, Any], *, is_from_file: bool) -> Definition:
    """A definition from the values that `daemon.config.sources.check_definition` returned."""
    return msgspec.convert({**checked, "name": name, "is_from_file": is_from_file}, Definition)
