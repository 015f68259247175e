"""The git connector: the files of a branch, read from a bare clone without a checkout.

The clone is complete in commits and trees and fetches file contents on demand (blobless, never
shallow: a shallow clone knows no dates). The commit is not part of a document's identity, so a push
changes only the documents whose content or date it changes. A branch that was rewritten is
followed like any other: the tree of its head is compared with the ledger.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Final

import anyio
import msgspec
from anyio import EndOfStream, IncompleteRead
from msgspec import Struct

from daemon.sources.connectors.connector import (
    Entry,
    FileUnreadable,
    Listed,
    Skipped,
    SourceUnavailable,
)
from daemon.sources.connectors.git_command import (
    BatchReader,
    git,
    open_batch,
    without_credentials,
)
from daemon.sources.connectors.ignore import IgnoreFiles, Rules
from daemon.sources.definition import Definition
from daemon.sources.formats import format_of

HEAD: Final = "refs/recalld/head"
#: The ignore files that apply to files in a repository; `.gitignore` does not, they are tracked.
_IGNORE: Final = (".ignore", ".recalldignore")
_WEB: Final = re.compile(r"(?:https?://|git@|ssh://git@)((?:www\.)?(?:github|gitlab)\.com)[:/](.+?)"
                         r"(?:\.git)?/?")  # fmt: skip


class Dates(Struct, frozen=True):
    """The last change of every path, as of a commit: unix seconds and author."""

    commit: str
    paths: dict[str, tuple[int, str]]


async def open_repository(definition: Definition, cache: Path) -> "Repository":
    """Fetch the branch into the clone, which is created if necessary."""
    directory = cache / f"git-{definition.ledger}"
    if not (directory / "HEAD").is_file():
        await anyio.to_thread.run_sync(lambda: directory.mkdir(0o700, parents=True, exist_ok=True))
        await git(str(directory), "init", "--quiet", "--bare", str(directory))
        await git(str(directory), "config", "remote.origin.promisor", "true")
        await git(str(directory), "config", "remote.origin.partialclonefilter", "blob:none")
    await git(str(directory), "config", "remote.origin.url", definition.url)
    wanted = f"refs/heads/{definition.branch}" if definition.branch else "HEAD"
    await git(
        str(directory), "fetch", "--quiet", "--force", "--no-tags", "--no-write-fetch-head",
        "--filter=blob:none", "origin", f"+{wanted}:{HEAD}",
    )  # fmt: skip
    commit = (await git(str(directory), "rev-parse", f"{HEAD}^{{commit}}")).decode().strip()
    return Repository(definition, directory, commit)


class Repository:
    """See `daemon.sources.connectors.connector.Connector`."""

    def __init__(self, definition: Definition, directory: Path, commit: str) -> None:
        self._definition = definition
        self._directory = directory
        self._commit = commit
        self._rules = Rules(definition.include, definition.exclude)
        self._blobs: dict[str, str] = {}
        self._reader: BatchReader | None = None
        self._has_fetched = False

    @property
    def place(self) -> str:
        return ""

    async def close(self) -> None:
        if self._reader is not None:
            await self._reader.close()

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        listing = await self._git("ls-tree", "-r", "-z", "--full-tree", self._commit)
        dates = await self._dates()
        files = [_entry(row) for row in listing.decode("utf-8", "replace").split("\0") if row]
        ignored = await self._ignore_files(files)
        prefix = f"{self._definition.root}/" if self._definition.root else ""
        for mode, blob, path in files:
            if mode not in ("100644", "100755") or not path.startswith(prefix):
                continue  # links and submodules are other names, not files
            reason = self._reason(path, ignored)
            if reason == "secret":
                yield Skipped(source_id=path, reason="looks like a secret")
            elif reason is None:
                self._blobs[path] = blob
                seconds, author = dates.get(path, (None, None))
                yield Listed(
                    source_id=path,
                    version=f"{blob}:{seconds}",
                    author=author,
                    url=self._url(path),
                    updated_at=None if seconds is None else seconds * 1000,
                    is_dated=True,
                )

    async def read(self, listed: Listed) -> bytes:
        blob = self._blobs[listed.source_id]
        try:
            if self._reader is None:
                await self._fetch_missing()
                self._reader = await open_batch(str(self._directory))
            content = await self._reader.read(blob, self._definition.max_bytes)
        except (OSError, EndOfStream, IncompleteRead, anyio.BrokenResourceError):
            raise SourceUnavailable("git ended while it read a file") from None
        if content is None:
            limit = self._definition.max_bytes
            raise FileUnreadable(f"has more than {limit} bytes, or is missing in the repository")
        return content

    async def _git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return await git(str(self._directory), *arguments, stdin=stdin)

    def _reason(self, path: str, ignored: IgnoreFiles) -> str | None:
        parents = path.split("/")[:-1]
        for depth in range(len(parents)):
            folder = "/".join(parents[: depth + 1])
            if self._rules.is_folder_excluded(folder) or ignored.is_ignored(f"{folder}/"):
                return "excluded"
        if ignored.is_ignored(path):
            return "excluded"
        reason = self._rules.reason(path)
        if reason is None and not self._rules.has_include and format_of(path) is None:
            return "excluded"
        return reason

    async def _ignore_files(self, files: Sequence[tuple[str, str, str]]) -> IgnoreFiles:
        found = IgnoreFiles()
        for _, blob, path in sorted(files, key=lambda file: file[2].count("/")):
            folder, _, name = path.rpartition("/")
            if name in _IGNORE:
                content = await self._git("cat-file", "blob", blob)
                found = found.below(folder, [content.decode("utf-8", "replace")])
        return found

    async def _fetch_missing(self) -> None:
        """Fetch all contents that are missing in one request, not one by one."""
        tree = f"{self._commit}^{{tree}}"
        listed = await self._git("rev-list", "--objects", "--missing=print", tree)
        missing = {line[1:] for line in listed.decode().split("\n") if line.startswith("?")}
        wanted = missing & set(self._blobs.values())
        if wanted:
            await self._git(
                "-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags",
                "--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin",
                stdin="".join(f"{id}\n" for id in wanted).encode(),
            )  # fmt: skip

    async def _dates(self) -> dict[str, tuple[int, str]]:
        """The last change of every path, from one pass over the history, kept for the next run."""
        file = self._directory / "recalld-dates"
        known = await anyio.to_thread.run_sync(_read_dates, file)
        if known is not None and known.commit == self._commit:
            return known.paths
        span = self._commit
        paths: dict[str, tuple[int, str]] = {}
        if known is not None and await self._is_ancestor(known.commit):
            span, paths = f"{known.commit}..{self._commit}", dict(known.paths)
        history = await self._git(
            "log", "-c", "-z", "--name-only", "--no-renames", "--format=%x01%ct%x02%an", span
        )
        paths |= _last_changes(history.decode("utf-8", "replace"))
        await anyio.to_thread.run_sync(_write_dates, file, Dates(self._commit, paths))
        return paths

    async def _is_ancestor(self, commit: str) -> bool:
        try:
            await self._git("merge-base", "--is-ancestor", commit, self._commit)
        except SourceUnavailable:
            return False
        return True

    def _url(self, path: str) -> str | None:
        web = _WEB.fullmatch(without_credentials(self._definition.url))
        if web is None:
            return None
        branch = self._definition.branch or "HEAD"
        return f"https://{web.group(1)}/{web.group(2)}/blob/{branch}/{path}"


def _entry(row: str) -> tuple[str, str, str]:
    """Mode, object id and path of a row of `git ls-tree -z`."""
    head, _, path = row.partition("\t")
    mode, _, blob = head.split(" ")
    return mode, blob, path


def _last_changes(history: str) -> dict[str, tuple[int, str]]:
    """The first mention of each path in a history that begins with the newest commit."""
    found: dict[str, tuple[int, str]] = {}
    for part in history.split("\x01")[1:]:
        head, *paths = part.split("\0")
        seconds, _, author = head.partition("\x02")
        change = (int(seconds), author)
        for path in paths:
            name = path.lstrip("\n")
            if name:
                found.setdefault(name, change)
    return found


def _read_dates(file: Path) -> Dates | None:
    try:
        return msgspec.msgpack.decode(file.read_bytes(), type=Dates)
    except (OSError, msgspec.MsgspecError):
        return None


def _write_dates(file: Path, dates: Dates) -> None:
    temporary = file.with_suffix(".tmp")
    temporary.write_bytes(msgspec.msgpack.encode(dates))
    temporary.replace(file)
