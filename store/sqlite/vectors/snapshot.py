"""A vector graph on disk: written whole, read only when every byte is the one that was written.

usearch saves by truncating in place, without a checksum or an fsync, and a graph with one wrong
byte can end the process. So the file is ours: a magic word, a header that says what is inside,
the graph, and a BLAKE2b digest over all of it that is checked before usearch sees a byte. The
file is a cache: whatever is wrong with it, it is set aside and made again from the bank.

    magic (8) | length of header (4, little endian) | header (JSON) | graph | digest (32)
"""

import hashlib
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from store.sqlite.files import PRIVATE_FILE, sync_directory

MAGIC: Final = b"RCLDVEC2"
_DIGEST: Final = 32
_CHUNK: Final = 1 << 22
_MOST_HEADER: Final = 1 << 24
_SUFFIX: Final = ".damaged"

T = TypeVar("T")


class SnapshotBroken(Exception):
    """The file is not a snapshot of this bank that can be trusted. `why` is a stable name."""

    def __init__(self, why: str) -> None:
        super().__init__(f"vector snapshot: {why}")
        self.why = why


class Header(Struct, frozen=True, kw_only=True):
    """What a snapshot holds and up to which change of the bank."""

    bank: str
    model: str
    dims: int
    library: str
    metric: str
    dtype: str
    change: int
    count: int
    strays: tuple[int, ...]  # keys the graph holds and does not lead to
    graph_bytes: int


def write_snapshot(path: Path, header: Header, graph: bytes | bytearray | memoryview) -> None:
    """Put a snapshot at `path`: after a crash the old one is there or the new one, whole."""
    encoded = msgspec.json.encode(header)
    start = MAGIC + len(encoded).to_bytes(4, "little") + encoded
    temporary = path.with_name(path.name + ".tmp")
    temporary.unlink(missing_ok=True)
    flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, PRIVATE_FILE), "wb") as file:
            digest = hashlib.blake2b(start, digest_size=_DIGEST)
            digest.update(graph)
            file.write(start)
            file.write(graph)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def read_snapshot(path: Path, use: Callable[[Header, memoryview], T]) -> T | None:
    """What `use` makes of a sound snapshot; None when there is none; else `SnapshotBroken`.

    `use` gets the graph's bytes only after all of the file was checked, and must copy them.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotBroken("unreadable") from error
    with file:
        size = os.fstat(file.fileno()).st_size
        if size < len(MAGIC) + 4 + _DIGEST:
            raise SnapshotBroken("too short")
        with (
            mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped,
            memoryview(mapped) as view,
        ):
            header, at = _checked(view)
            with view[at : at + header.graph_bytes] as graph:
                return use(header, graph)


def set_aside(path: Path) -> None:
    """Move a broken snapshot out of the way, in the place of an earlier one; keep it for study."""
    with suppress(FileNotFoundError):
        path.replace(path.with_name(path.name + _SUFFIX))


def remove_snapshot(path: Path) -> int:
    """Delete a snapshot and every copy this module may have left; how many there were."""
    removed = 0
    for name in (path.name, path.name + ".tmp", path.name + _SUFFIX):
        with suppress(FileNotFoundError):
            path.with_name(name).unlink()
            removed += 1
    if removed:
        sync_directory(path.parent)
    return removed


def _checked(view: memoryview) -> tuple[Header, int]:
    """The header and where the graph starts, after checking every byte."""
    if bytes(view[: len(MAGIC)]) != MAGIC:
        raise SnapshotBroken("not a snapshot")
    length = int.from_bytes(view[len(MAGIC) : len(MAGIC) + 4], "little")
    at = len(MAGIC) + 4 + length
    if length > _MOST_HEADER or at + _DIGEST > len(view):
        raise SnapshotBroken("header out of bounds")
    digest = hashlib.blake2b(digest_size=_DIGEST)
    for start in range(0, len(view) - _DIGEST, _CHUNK):
        digest.update(view[start : min(start + _CHUNK, len(view) - _DIGEST)])
    if digest.digest() != bytes(view[-_DIGEST:]):
        raise SnapshotBroken("digest differs")
    try:
        header = msgspec.json.decode(view[len(MAGIC) + 4 : at], type=Header)
    except msgspec.DecodeError as error:
        raise SnapshotBroken("header of another format") from error
    if at + header.graph_bytes + _DIGEST != len(view):
        raise SnapshotBroken("graph of another length")
    return header, at
