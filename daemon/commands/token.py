"""`recalld token`: make, list and revoke bearer tokens.

A token is shown once, alone on stdout, so that a script can take it; remarks go to stderr. What the
file keeps of it is a digest (`daemon/transports/http/edge/token_file.py`).
"""

import os
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from daemon.commands.output import say
from daemon.config import Settings
from daemon.exit_codes import CONFIG, OK, USAGE, Exit
from daemon.transports.http.edge.token_file import (
    EVERY_BANK,
    RESERVED,
    TokenEntry,
    add_entry,
    digest_of,
    read_entries,
    remove_entry,
)
from store.errors import InvalidInput
from store.validate import bank_name

#: Says what it is to whoever finds it where it should not be, secret scanners included.
PREFIX: Final = "recalld_"


def add(settings: Settings, name: str, banks: list[str], *, read_only: bool) -> int:
    """Make a token and print it, this once."""
    path = _path(settings)
    if not name.strip() or not name.isprintable() or name in RESERVED:
        raise Exit(USAGE, f"{name!r} cannot be the name of a token")
    for bank in banks:
        _check_bank(bank)
    token = PREFIX + secrets.token_urlsafe(32)
    entry = TokenEntry(
        name=name,
        sha256=digest_of(token).hex(),
        banks=banks or [EVERY_BANK],
        write=not read_only,
        created=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    if not add_entry(path, entry):
        raise Exit(USAGE, f"a token is called {name!r} already; revoke it first")
    say((token,))
    sys.stderr.write(f"recalld: this is shown once; {path} keeps its digest only\n")
    return OK


def show(settings: Settings) -> int:
    """A line a token: name, rights, banks, when it was made. Never the token."""
    path = _path(settings)
    entries = read_entries(path) if os.path.lexists(path) else []  # the first `add` makes it
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        rights = "read, write" if entry.write else "read"
        banks = "all banks" if EVERY_BANK in entry.banks else ", ".join(entry.banks)
        made = f"since {entry.created}" if entry.created else ""
        kept = "in clear" if entry.secret else ""
        parts = [f"{entry.name:{width}}", f"{rights:11}", banks, made, kept]
        say(("  ".join(part for part in parts if part),))
    if not entries:
        sys.stderr.write("recalld: there are no tokens; nobody gets in over HTTP\n")
    return OK


def revoke(settings: Settings, name: str) -> int:
    """Take a token back."""
    if not remove_entry(_path(settings), name):
        raise Exit(USAGE, f"there is no token called {name!r}")
    sys.stderr.write(f"recalld: {name} is revoked; a daemon that runs notices within a second\n")
    return OK


def _path(settings: Settings) -> Path:
    if settings.token_file is None:
        where = settings.directories.config.with_name("tokens.toml")
        raise Exit(
            CONFIG,
            f'no token file is set: put token_file = "{where}" under [server] in'
            f" {settings.directories.config}, or say --file",
        )
    return settings.token_file


def _check_bank(bank: str) -> None:
    if bank == EVERY_BANK:
        return
    try:
        bank_name(bank)
    except InvalidInput as error:
        raise Exit(USAGE, f"--bank {bank!r}: {error.rule}") from None
