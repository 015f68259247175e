"""The filesystem connector: the files below a folder.

A symbolic link is another name of a file. A link to a place inside the root is not followed,
because the file is listed under its own path. A link that leaves the root is followed only with
`follow_symlinks`; each folder and file is then listed once, so loops end.
"""

import errno
import os
import stat
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import anyio

from daemon.sources.connectors.connector import (
    Entry,
    FileUnreadable,
    FileVanished,
    Listed,
    Skipped,
    SourceUnavailable,
    Unlisted,
)
from daemon.sources.connectors.ignore import IGNORE_FILES, IgnoreFiles, Rules
from daemon.sources.definition import Definition
from daemon.sources.formats import format_of

#: Entries listed in one visit of the worker thread.
PAGE: Final = 512
IGNORE_FILE_BYTES: Final = 1024 * 1024
#: A file that changed so shortly before its listing may change again within the same clock tick,
#: so its version is not trusted.
RACY_NS: Final = 2_000_000_000
DEEPEST: Final = 256


async def open_folder(definition: Definition) -> "Folder":
    root = Path(definition.root)
    try:
        found = await anyio.to_thread.run_sync(_look_at, root)
    except OSError as error:
        raise SourceUnavailable(f"{root}: {_reason(error)}") from None
    if not stat.S_ISDIR(found.st_mode):
        raise SourceUnavailable(f"{root}: is not a folder")
    return Folder(definition, found)


def _look_at(root: Path) -> os.stat_result:
    found = root.stat()
    os.scandir(root).close()  # an unreadable folder is reported now
    return found


class Folder:
    """See `daemon.sources.connectors.connector.Connector`."""

    def __init__(self, definition: Definition, found: os.stat_result) -> None:
        self._root = os.path.realpath(definition.root)
        self._rules = Rules(definition.include, definition.exclude)
        self._max_bytes = definition.max_bytes
        self._follows = definition.follow_symlinks
        self._place = f"{found.st_dev}:{found.st_ino}"
        #: Device and inode of every folder and file that was reached through a link.
        self._linked: set[tuple[int, int]] = set()

    @property
    def place(self) -> str:
        return self._place

    async def close(self) -> None:
        pass

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        walk = self._walk_all(tuple(under))
        while True:
            page = await anyio.to_thread.run_sync(lambda: list(islice(walk, PAGE)))
            for entry in page:
                yield entry
            if len(page) < PAGE:
                return

    async def read(self, listed: Listed) -> bytes:
        return await anyio.to_thread.run_sync(self._read, listed.source_id)

    # --- on a worker thread ---------------------------------------------------------------

    def _walk_all(self, under: tuple[str, ...]) -> Iterator[Entry]:
        try:
            found = os.stat(self._root)
        except OSError as error:
            raise SourceUnavailable(f"{self._root}: {_reason(error)}") from None
        if f"{found.st_dev}:{found.st_ino}" != self._place:
            raise SourceUnavailable(f"{self._root}: was replaced during the run")
        if not under or "" in under:
            yield from self._walk("", IgnoreFiles(), 0)
            return
        for path in under:
            yield from self._walk_part(path)

    def _walk_part(self, path: str) -> Iterator[Entry]:
        """The file or folder at a path, if no rule leaves it out."""
        rules = IgnoreFiles()
        folder = ""
        *parents, name = path.split("/")
        for parent in parents:
            rules = self._with_ignore_files(folder, rules)
            folder = f"{folder}/{parent}" if folder else parent
            if self._is_excluded(folder, rules) or self._is_link(folder):
                return
        rules = self._with_ignore_files(folder, rules)
        try:
            with os.scandir(self._full(folder)) as listing:
                for child in listing:
                    if child.name == name:
                        yield from self._visit(child, folder, rules, len(parents))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            yield Unlisted(source_id=folder or ".", reason=_reason(error))

    def _walk(self, folder: str, above: IgnoreFiles, depth: int) -> Iterator[Entry]:
        if depth > DEEPEST:
            yield Unlisted(source_id=folder, reason=f"lies deeper than {DEEPEST} folders")
            return
        rules = self._with_ignore_files(folder, above)
        try:
            with os.scandir(self._full(folder)) as listing:
                children = sorted(listing, key=lambda child: child.name)
        except FileNotFoundError:
            if not folder:
                raise SourceUnavailable(f"{self._root}: No such file or directory") from None
            return  # deleted meanwhile
        except OSError as error:
            if not folder:
                raise SourceUnavailable(f"{self._root}: {_reason(error)}") from None
            yield Unlisted(source_id=_shown(folder), reason=_reason(error))
            return
        for child in children:
            yield from self._visit(child, folder, rules, depth)

    def _visit(
        self, child: "os.DirEntry[str]", folder: str, rules: IgnoreFiles, depth: int
    ) -> Iterator[Entry]:
        path = f"{folder}/{child.name}" if folder else child.name
        try:
            path.encode()
        except UnicodeEncodeError:
            yield Skipped(source_id=_shown(path), reason="its name is not UTF-8")
            return
        try:
            if child.is_symlink() and not self._is_new_target(child):
                return
            if child.is_dir():
                if not self._is_excluded(path, rules):
                    yield from self._walk(path, rules, depth + 1)
            elif child.is_file() and not rules.is_ignored(path):
                entry = self._file(path, child)
                if entry is not None:
                    yield entry
        except FileNotFoundError:
            return  # deleted meanwhile
        except OSError as error:
            yield Unlisted(source_id=path, reason=_reason(error))

    def _file(self, path: str, child: "os.DirEntry[str]") -> Entry | None:
        reason = self._rules.reason(path)
        if reason == "secret":
            return Skipped(source_id=path, reason="looks like a secret")
        if reason is not None or (not self._rules.has_include and format_of(path) is None):
            return None
        found = child.stat()
        if found.st_size > self._max_bytes:
            return Skipped(
                source_id=path, reason=f"has {found.st_size} bytes; the limit is {self._max_bytes}"
            )
        is_racy = time.time_ns() - found.st_mtime_ns < RACY_NS
        return Listed(
            source_id=path,
            version="" if is_racy else f"{found.st_size}:{found.st_mtime_ns}:{found.st_ino}",
            size=found.st_size,
            url=Path(self._full(path)).as_uri(),
            updated_at=max(0, found.st_mtime_ns // 1_000_000),
        )

    def _is_new_target(self, link: "os.DirEntry[str]") -> bool:
        """Whether a link leads out of the root, may be followed, and is the first to its target."""
        if not self._follows:
            return False
        target = os.path.realpath(link.path)
        if target == self._root or target.startswith(self._root + "/"):
            return False
        found = os.stat(target)
        key = (found.st_dev, found.st_ino)
        is_new = key not in self._linked
        self._linked.add(key)
        return is_new

    def _is_link(self, folder: str) -> bool:
        return not self._follows and os.path.islink(self._full(folder))

    def _is_excluded(self, folder: str, rules: IgnoreFiles) -> bool:
        return self._rules.is_folder_excluded(folder) or rules.is_ignored(f"{folder}/")

    def _with_ignore_files(self, folder: str, rules: IgnoreFiles) -> IgnoreFiles:
        contents: list[str] = []
        for name in IGNORE_FILES:
            try:
                with open(os.path.join(self._full(folder), name), "rb") as file:
                    contents.append(file.read(IGNORE_FILE_BYTES).decode("utf-8", "replace"))
            except OSError:
                continue
        return rules.below(folder, contents)

    def _read(self, path: str) -> bytes:
        full = self._full(path)
        try:
            # O_NONBLOCK: opening a pipe that took the place of a file must not wait.
            handle = os.open(full, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise FileUnreadable("is no longer a regular file")
                if not self._follows and not self._is_inside(handle, full):
                    raise FileUnreadable("a link took its place that leaves the root")
                content = file.read(self._max_bytes + 1)
        except (FileNotFoundError, NotADirectoryError):
            raise FileVanished(path) from None
        except OSError as error:
            raise FileUnreadable(_reason(error)) from None
        if len(content) > self._max_bytes:
            raise FileUnreadable(f"has more than {self._max_bytes} bytes")
        return content

    def _is_inside(self, handle: int, full: str) -> bool:
        """Whether an open file lies below the root, wherever the links on its path lead."""
        target = path_of(handle, full)
        return target.startswith(self._root.rstrip("/") + "/")

    def _full(self, path: str) -> str:
        return os.path.join(self._root, path) if path else self._root


def path_of(handle: int, opened: str, descriptors: str = "/proc/self/fd") -> str:
    """The path of an open file, without links; empty if it cannot be determined.

    Without procfs the opened name is resolved again, and counts only if it still leads to the same
    file.
    """
    try:
        return os.readlink(f"{descriptors}/{handle}").removesuffix(" (deleted)")
    except OSError:
        resolved = os.path.realpath(opened)
        is_same = os.path.samestat(os.fstat(handle), os.stat(resolved))
        return resolved if is_same else ""


def _reason(error: OSError) -> str:
    return os.strerror(error.errno or errno.EIO)


def _shown(path: str) -> str:
    """A name that may not be UTF-8, for a message."""
    return path.encode("utf-8", "replace").decode()
