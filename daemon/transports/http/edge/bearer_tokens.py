"""Who an HTTP caller is: bearer tokens in memory, kept up with their file.

Only digests are held, and every one of them is compared, in constant time, whatever the first ones
said. The file is looked at again with every request (its name, not its content) and once a second
for the sake of streams that are open: a token that was revoked opens nothing from then on. A file
that has become wrong lets nobody in until it is right again; at the start it stops the daemon.
"""

import hmac
from pathlib import Path
from typing import Final

import structlog

from daemon.exit_codes import Exit
from daemon.tools.authority import Principal
from daemon.transports.http.edge.token_file import digest_of, read_entries

log: Final = structlog.get_logger()

#: What tells one state of the file from another.
Mark = tuple[int, int, int, int, int] | None


class Tokens:
    """The tokens we know. Without a file nobody needs one; with one, somebody without is nobody."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: list[tuple[bytes, Principal]] = []
        #: What each name could do, by the last file that was right.
        self._rights: dict[str, tuple[bytes, Principal]] = {}
        self._mark: Mark = None
        #: What is wrong with the file, while something is.
        self.trouble = ""
        if path is not None:
            self._mark = _mark(path)
            self._load(path)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def are_needed(self) -> bool:
        return self._path is not None

    def principal(self, authorization: str) -> Principal | None:
        """Whose token an Authorization header carries; None when it is nobody's."""
        scheme, _, secret = authorization.partition(" ")
        shown = digest_of(secret.strip(" "))
        found: Principal | None = None
        for digest, principal in self._entries:
            if hmac.compare_digest(digest, shown):
                found = principal
        return found if scheme.lower() == "bearer" else None

    def refresh(self) -> frozenset[str]:
        """Read the file again if it changed; the names whose rights are not what they were.

        From a file that is wrong nothing follows for those who are in: only the door is shut.
        """
        if self._path is None or _mark(self._path) == self._mark:
            return frozenset()
        before = self._rights
        self._mark = _mark(self._path)
        try:
            self._load(self._path)
        except Exit as exit:
            self._entries = []
            self.trouble = f"nobody gets in over HTTP: {exit.message}"
            log.warning("tokens.refused", reason=exit.message)
            return frozenset()
        self.trouble = ""
        log.info("tokens.read", tokens=len(self._entries))
        return frozenset(name for name, was in before.items() if self._rights.get(name) != was)

    def _load(self, path: Path) -> None:
        self._entries = [(entry.digest, entry.principal) for entry in read_entries(path)]
        self._rights = {entry[1].name: entry for entry in self._entries}


def _mark(path: Path) -> Mark:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode)
