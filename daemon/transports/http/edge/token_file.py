"""The token file: bearer tokens and their rights, readable by its owner only.

TOML, mode 0600, a regular file owned by the user of the daemon, not a symbolic link:

    [[token]]
    name = "laptop"            # its name in logs
    sha256 = "…"               # of the token, in hex; or the token itself as `secret`
    banks = ["alice", "team"]  # or ["*"]; the default is all
    write = false              # whether it may write; the default is true
    created = "2026-11-16"     # for information only

`recalld token` stores digests only. A token is 32 random bytes, so an unsalted digest reveals
nothing, and a stolen copy of the file is useless. An invalid file, a short secret or a mode that
lets others read the file rejects the whole file, because a mistake must not grant access. Writing
replaces the file atomically, under a lock on its directory, and preserves comments.
"""

import fcntl
import hashlib
import json
import os
import re
import stat
import tomllib
import unicodedata
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from daemon.exit_codes import CANNOT_CREATE, CONFIG, Exit
from daemon.tools.authority import Principal
from protocol.lifecycle import explain
from store.files import create_private, replace_file

SHORTEST_SECRET: Final = 32
LARGEST_FILE: Final = 1024 * 1024
EVERY_BANK: Final = "*"
#: Names that logs use for callers without a token; no token may have them.
RESERVED: Final = ("owner", "nobody")

_PLACE: Final = re.compile(r"\(at line \d+, column \d+\)|\(at end of document\)")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
#: The header of a token's table, with the comment lines directly above it.
_TABLE: Final = re.compile(r"(?m)^(?:[ \t]*#[^\n]*\n)*[ \t]*\[\[[ \t]*token[ \t]*\]\]")
_NONE: Final = re.compile(r"(?m)^[ \t]*token[ \t]*=[ \t]*\[[ \t]*\][ \t]*(?:\n|$)")
_HEAD: Final = "# Bearer tokens for HTTP; `recalld token` adds, lists and revokes them.\n"


class TokenEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One token of the file."""

    name: str
    secret: str = ""
    sha256: str = ""
    banks: list[str] = field(default_factory=lambda: [EVERY_BANK])
    write: bool = True
    created: str = ""

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.sha256) if self.sha256 else digest_of(self.secret.strip())

    @property
    def principal(self) -> Principal:
        every = EVERY_BANK in self.banks
        banks = None if every else frozenset(unicodedata.normalize("NFC", b) for b in self.banks)
        return Principal(name=self.name, banks=banks, can_write=self.write)


class TokenFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    token: list[TokenEntry]


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).digest()


# --- reading ---------------------------------------------------------------------------------


def read_entries(path: Path) -> list[TokenEntry]:
    """The tokens of a file; raises `Exit` if it is invalid."""
    with _named(path):
        return parse(_read(path))


@contextmanager
def _named(path: Path) -> Generator[None]:
    """Add the path of the file to every error."""
    try:
        yield
    except Exit as exit:
        named = exit.message.replace("token file", f"token file {path}", 1)
        raise Exit(exit.code, named) from None


def parse(content: bytes) -> list[TokenEntry]:
    try:
        entries = msgspec.convert(tomllib.loads(content.decode()), TokenFile).token
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # Only the position: the rest of the message may quote a secret.
        place = _PLACE.search(str(error))
        raise Exit(CONFIG, f"token file: is not TOML{' ' + place[0] if place else ''}") from None
    except msgspec.ValidationError as error:
        raise Exit(CONFIG, f"token file: {explain(error)}") from None
    names = [entry.name for entry in entries]
    if len(set(names)) != len(names):
        raise Exit(CONFIG, "token file: each token needs a name of its own")
    for entry in entries:
        check(entry)
    return entries


def check(entry: TokenEntry) -> None:
    """Raise `Exit` unless the entry is a valid token."""
    name = entry.name
    if not name.strip() or not name.isprintable() or name in RESERVED:
        raise Exit(CONFIG, f"token file: {name!r} cannot be the name of a token")
    if bool(entry.secret) == bool(entry.sha256):
        raise Exit(CONFIG, f"token file: {name!r} needs a sha256 or a secret, one of them")
    if entry.sha256 and not _DIGEST.fullmatch(entry.sha256):
        raise Exit(CONFIG, f"token file: the sha256 of {name!r} must be 64 lower-case hex digits")
    if entry.secret and (len(entry.secret.strip()) < SHORTEST_SECRET or not entry.secret.isascii()):
        rule = f"must have at least {SHORTEST_SECRET} ASCII characters"
        raise Exit(CONFIG, f"token file: the secret of {name!r} {rule}")
    if not entry.banks:
        raise Exit(CONFIG, f"token file: the banks of {name!r} must list at least one bank")


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Exit(CONFIG, f"token file: cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise Exit(CONFIG, "token file: must be a regular file of the user recalld runs as")
        if found.st_mode & 0o077:
            raise Exit(CONFIG, "token file: must be readable by its owner only (chmod 600)")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(LARGEST_FILE + 1)
    finally:
        os.close(descriptor)
    if len(content) > LARGEST_FILE:
        raise Exit(CONFIG, f"token file: is larger than {LARGEST_FILE} bytes")
    return content


# --- writing ---------------------------------------------------------------------------------


def add_entry(path: Path, entry: TokenEntry) -> bool:
    """Add a token and create the file if needed; False if the name is taken."""
    check(entry)
    is_new = True

    def change(text: str, entries: list[TokenEntry]) -> tuple[str, list[TokenEntry]]:
        nonlocal is_new
        is_new = all(known.name != entry.name for known in entries)
        if not is_new:
            return text, entries
        text = _NONE.sub("", text)
        end = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        return text + end + _table(entry), [*entries, entry]

    _rewrite(path, change, may_create=True)
    return is_new


def remove_entry(path: Path, name: str) -> bool:
    """Remove a token; False if there is none of that name."""
    was_there = False

    def change(text: str, entries: list[TokenEntry]) -> tuple[str, list[TokenEntry]]:
        nonlocal was_there
        left = [entry for entry in entries if entry.name != name]
        was_there = len(left) < len(entries)
        return _without(text, name), left

    _rewrite(path, change, may_create=False)
    return was_there


def _rewrite(
    path: Path,
    change: Callable[[str, list[TokenEntry]], tuple[str, list[TokenEntry]]],
    *,
    may_create: bool,
) -> None:
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise Exit(CANNOT_CREATE, f"{path.parent}: {error.strerror}") from None
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)  # serialises concurrent commands
        try:
            if may_create and not os.path.lexists(path) and create_private(path):
                replace_file(path, (_HEAD + "token = []\n").encode())
            with _named(path):
                content = _read(path)
                entries = parse(content)
            text, wanted = change(content.decode(), entries)
            if wanted != entries:
                replace_file(path, _as_wanted(text, wanted))
        except OSError as error:
            raise Exit(CANNOT_CREATE, f"{path}: cannot be written: {error.strerror}") from None
    finally:
        os.close(directory)


def _as_wanted(text: str, wanted: list[TokenEntry]) -> bytes:
    """The edited text if it parses to the wanted tokens, else a newly written file."""
    try:
        if parse(text.encode()) == wanted:
            return text.encode()
    except Exit:
        pass  # the file uses another TOML syntax, such as an inline array, and is rewritten
    written = "\n".join(_table(entry) for entry in wanted) if wanted else "token = []\n"
    return (_HEAD + "\n" * bool(wanted) + written).encode()


def _without(text: str, name: str) -> str:
    """The text without the table of this name and the comment directly above it."""
    starts = [found.start() for found in _TABLE.finditer(text)]
    kept = text[: starts[0]] if starts else text
    for start, end in pairwise([*starts, len(text)]):
        try:
            named = tomllib.loads(text[start:end])["token"][0].get("name")
        except (tomllib.TOMLDecodeError, KeyError):
            named = None
        if named != name:
            kept += text[start:end]
    return kept if _TABLE.search(kept) else kept.rstrip("\n") + "\n" * bool(kept) + "token = []\n"


def _table(entry: TokenEntry) -> str:
    members: dict[str, Any] = msgspec.to_builtins(entry)
    lines = [f"{name} = {_value(value)}" for name, value in members.items()]
    return "\n".join(["[[token]]", *lines]) + "\n"


def _value(value: str | bool | Sequence[str]) -> str:
    """A value as TOML. For these types that is JSON, except for the escape of DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
