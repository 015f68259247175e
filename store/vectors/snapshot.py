"""The snapshot file: a vector graph on disk, with a checksum.

usearch saves a graph by truncating the file in place, without a checksum or an fsync, and loading
a graph with one wrong byte can crash the process. So the snapshot has its own format: a magic
number, a header that describes the contents, the graph, and a BLAKE2b digest over everything
before it. The digest is verified before usearch sees a byte. The file is a cache. If anything is
wrong with it, it is set aside and built again from the bank.

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

from store.files import PRIVATE_FILE, sync_directory

MAGIC: Final = b"RCLDVEC2"
_DIGEST: Final = 32
_CHUNK: Final = 1 << 22
_MOST_HEADER: Final = 1 << 24
_SUFFIX: Final = ".damaged"

T = TypeVar("T")


class SnapshotBroken(Exception):
    """The file is not an intact snapshot of this bank. `why` is a stable name for the reason."""

    def __init__(self, why: str) -> None:
        super().__init__(f"vector snapshot: {why}")
        self.why = why


class SnapshotHeader(Struct, frozen=True, kw_only=True):
    """Which graph a snapshot holds, and up to which change of the bank."""

    bank: str
    model: str
    dims: int
    library: str
    metric: str
    dtype: str
    change: int
    count: int
    strays: tuple[int, ...]  # keys in the graph that no search reaches
    graph_bytes: int


def write_snapshot(
    path: Path, header: SnapshotHeader, graph: bytes | bytearray | memoryview
) -> None:
    """Replace the snapshot at `path`; after a crash the old or the new one is there, complete."""
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


def read_snapshot(path: Path, use: Callable[[SnapshotHeader, memoryview], T]) -> T | None:
    """Call `use` with the header and graph of an intact snapshot, and return its result.

    Returns None if there is no file and raises `SnapshotBroken` if it is not intact. `use` must
    copy the bytes of the graph.
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
            header, at = _verified(view)
            with view[at : at + header.graph_bytes] as graph:
                return use(header, graph)


def set_aside(path: Path) -> None:
    """Rename a broken snapshot for later study; an earlier one is replaced."""
    with suppress(FileNotFoundError):
        path.replace(path.with_name(path.name + _SUFFIX))


def _verified(view: memoryview) -> tuple[SnapshotHeader, int]:
    """The header and the offset of the graph, after the digest has been verified."""
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
        header = msgspec.json.decode(view[len(MAGIC) + 4 : at], type=SnapshotHeader)
    except msgspec.DecodeError as error:
        raise SnapshotBroken("header of another format") from error
    if at + header.graph_bytes + _DIGEST != len(view):
        raise SnapshotBroken("graph of another length")
    return header, at
