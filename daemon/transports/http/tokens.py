"""Bearer tokens: who an HTTP caller is.

A file that only its owner can read, 0600, in TOML:

    [[token]]
    name = "laptop"            # what logs call it
    secret = "…"               # at least 32 characters
    banks = ["alice", "team"]  # or ["*"]; the default is all
    write = false              # may it change anything? the default is yes

An empty or short secret, a file others can read, or one that is not understood stops the daemon
from starting: a mistake here must not open the door. Only digests are kept in memory, and every
one of them is compared, in constant time, whatever the first ones said.
"""

import hmac
import os
import stat
import tomllib
import unicodedata
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field

from daemon.authority import Principal
from daemon.exits import CONFIG, Exit
from protocol.lifecycle import explain

SHORTEST_SECRET: Final = 32
LARGEST_FILE: Final = 1024 * 1024
EVERY_BANK: Final = "*"


class TokenEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    secret: str
    banks: list[str] = field(default_factory=lambda: [EVERY_BANK])
    write: bool = True


class TokenFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: list[TokenEntry]


class Tokens:
    """The tokens we know; none of them means that nobody needs one."""

    def __init__(self, entries: list[tuple[bytes, Principal]]) -> None:
        self._entries = entries

    def __len__(self) -> int:
        return len(self._entries)

    def principal(self, authorization: str) -> Principal | None:
        """Whose token an Authorization header carries; None when it is nobody's."""
        scheme, _, secret = authorization.partition(" ")
        shown = _digest(secret.strip(" "))
        found: Principal | None = None
        for digest, principal in self._entries:
            if hmac.compare_digest(digest, shown):
                found = principal
        return found if scheme.lower() == "bearer" else None


def read_tokens(path: Path | None) -> Tokens:
    """The tokens of a file; `Exit` says what is wrong with it."""
    if path is None:
        return Tokens([])
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise Exit(CONFIG, f"token file cannot be read: {error.strerror}") from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise Exit(CONFIG, "token file: must be a regular file of the user recalld runs as")
        if found.st_mode & 0o077:
            raise Exit(CONFIG, "token file: must be readable by its owner only (chmod 600)")
        content = file.read(LARGEST_FILE)
    return Tokens([_entry(entry) for entry in _parse(content)])


def _parse(content: bytes) -> list[TokenEntry]:
    try:
        entries = msgspec.convert(tomllib.loads(content.decode()), TokenFile).token
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        raise Exit(CONFIG, "token file: is not TOML") from None
    except msgspec.ValidationError as error:
        raise Exit(CONFIG, f"token file: {explain(error)}") from None
    names = [entry.name for entry in entries]
    if not entries or len(set(names)) != len(names):
        raise Exit(CONFIG, "token file: at least one token is needed, each with its own name")
    return entries


def _entry(entry: TokenEntry) -> tuple[bytes, Principal]:
    if not entry.name.strip() or entry.name == "owner":
        raise Exit(CONFIG, f"token file: {entry.name!r} cannot be the name of a token")
    if len(entry.secret.strip()) < SHORTEST_SECRET or not entry.secret.isascii():
        raise Exit(
            CONFIG,
            f"token file: the secret of {entry.name!r} must have at least {SHORTEST_SECRET}"
            " ASCII characters",
        )
    if not entry.banks:
        raise Exit(CONFIG, f"token file: {entry.name!r} opens no bank at all")
    every = EVERY_BANK in entry.banks
    banks = None if every else frozenset(unicodedata.normalize("NFC", b) for b in entry.banks)
    principal = Principal(name=entry.name, banks=banks, can_write=entry.write)
    return _digest(entry.secret.strip()), principal


def _digest(secret: str) -> bytes:
    return blake2b(secret.encode("utf-8", "surrogateescape"), digest_size=32).digest()
