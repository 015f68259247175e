"""Bearer tokens in memory, reloaded when their file changes.

Only digests are held. A lookup compares all of them in constant time. Every request checks whether
the file has changed (by `lstat`, without reading it), and a timer does so once a second for open
streams; a revoked token is rejected from then on. While the file is invalid, every token is
rejected; at start-up an invalid file stops the daemon.
"""

import hmac
from pathlib import Path
from typing import Final

import structlog

from daemon.exit_codes import Exit
from daemon.tools.authority import Principal
from daemon.transports.http.edge.token_file import digest_of, read_entries

log: Final = structlog.get_logger()

#: The identity of one state of the file: inode, times, size, mode.
FileState = tuple[int, int, int, int, int] | None


class Tokens:
    """The known tokens. With a token file, requests without a token are unauthenticated."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._entries: list[tuple[bytes, Principal]] = []
        #: The digest and rights of each name, from the last valid file.
        self._rights: dict[str, tuple[bytes, Principal]] = {}
        self._file_state: FileState = None
        #: The problem that health reports while the file is invalid.
        self.trouble = ""
        if path is not None:
            self._file_state = _file_state(path)
            self._load(path)

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def are_needed(self) -> bool:
        return self._path is not None

    def principal(self, authorization: str) -> Principal | None:
        """The principal of an Authorization header; None for an unknown token."""
        scheme, _, secret = authorization.partition(" ")
        shown = digest_of(secret.strip(" "))
        found: Principal | None = None
        for digest, principal in self._entries:
            if hmac.compare_digest(digest, shown):
                found = principal
        return found if scheme.lower() == "bearer" else None

    def refresh(self) -> frozenset[str]:
        """Reload the file if it changed; gives the names whose rights changed.

        An invalid file rejects new requests, but does not end those that are running: it may be
        half edited. A file that was deleted revokes every token.
        """
        if self._path is None or _file_state(self._path) == self._file_state:
            return frozenset()
        before = self._rights
        self._file_state = _file_state(self._path)
        try:
            self._load(self._path)
        except Exit as exit:
            self._entries = []
            self.trouble = f"nobody gets in over HTTP: {exit.message}"
            log.warning("tokens.refused", reason=exit.message)
            if self._file_state is not None:
                return frozenset()
            self._rights = {}
            return frozenset(before)
        self.trouble = ""
        log.info("tokens.read", tokens=len(self._entries))
        return frozenset(name for name, was in before.items() if self._rights.get(name) != was)

    def _load(self, path: Path) -> None:
        self._entries = [(entry.digest, entry.principal) for entry in read_entries(path)]
        self._rights = {entry[1].name: entry for entry in self._entries}


def _file_state(path: Path) -> FileState:
    try:
        found = path.lstat()
    except OSError:
        return None
    return (found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode)
