"""`recalld token`: creates, lists and revokes bearer tokens.

A new token is printed once, alone on stdout, so that a script can read it. Messages go to stderr.
The token file stores a digest only (`daemon/transports/http/edge/token_file.py`).
"""

import os
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from daemon.commands.output import print_lines
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

#: Makes a leaked token recognisable to people and secret scanners.
PREFIX: Final = "recalld_"


def add(settings: Settings, name: str, banks: list[str], *, read_only: bool) -> int:
    """Create a token and print it once."""
    path = _path(settings)
    if not name.strip() or not name.isprintable() or name in RESERVED:
        raise Exit(
            USAGE, f"{name!r} cannot be the name of a token: it is empty, reserved or not printable"
        )
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
    print_lines((token,))
    sys.stderr.write(f"recalld: the token is shown only once; {path} stores its digest\n")
    return OK


def show(settings: Settings) -> int:
    """Print one line per token: name, rights, banks, creation date; never the token itself."""
    path = _path(settings)
    entries = read_entries(path) if os.path.lexists(path) else []  # `add` creates the file
    width = max((len(entry.name) for entry in entries), default=0)
    for entry in entries:
        rights = "read, write" if entry.write else "read"
        banks = "all banks" if EVERY_BANK in entry.banks else ", ".join(entry.banks)
        made = f"since {entry.created}" if entry.created else ""
        storage = "stored in clear text" if entry.secret else ""
        parts = [f"{entry.name:{width}}", f"{rights:11}", banks, made, storage]
        print_lines(("  ".join(part for part in parts if part),))
    if not entries:
        sys.stderr.write("recalld: there are no tokens; every HTTP request is rejected\n")
    return OK


def revoke(settings: Settings, name: str) -> int:
    """Revoke a token."""
    if not remove_entry(_path(settings), name):
        raise Exit(USAGE, f"there is no token called {name!r}; `recalld token list` shows them")
    sys.stderr.write(f"recalld: {name} is revoked; a running daemon applies this within a second\n")
    return OK


def _path(settings: Settings) -> Path:
    if settings.token_file is None:
        where = settings.directories.config.with_name("tokens.toml")
        raise Exit(
            CONFIG,
            f'no token file is set: put token_file = "{where}" under [server] in'
            f" {settings.directories.config}, or use --file",
        )
    return settings.token_file


def _check_bank(bank: str) -> None:
    if bank == EVERY_BANK:
        return
    try:
        bank_name(bank)
    except InvalidInput as error:
        raise Exit(USAGE, f"--bank {bank!r}: {error.rule}") from None
