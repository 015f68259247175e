"""An in-memory FUSE file system that loses unsynced writes on a simulated power cut.

    python -m tests.faults.lossy_filesystem MOUNTPOINT OUTCOME

A write is durable after fsync of its file; a name is durable after fsync of its directory.
Creating `/.cut-SEED` cuts the power: the durable content is written to the directory OUTCOME and
the process exits. Seed 0 drops every unsynced write. Another seed keeps a random part of them, torn
at 512 bytes, like a disk that reorders its cache. Needs mfusepy and FUSE 3.
"""

import errno
import os
import random
import stat
import sys
import time
from pathlib import Path
from typing import Any

import mfusepy

SECTOR = 512


class Node:
    """A file: its current content, its durable content, and the unsynced writes in order."""

    def __init__(self, mode: int) -> None:
        self.mode = mode
        self.live = bytearray()
        self.durable = b""
        self.unsynced: list[
            tuple[int, bytes]
        ] = []  # offset and bytes; offset -1 marks a truncation

    def write(self, offset: int, data: bytes) -> None:
        if len(self.live) < offset:
            self.live.extend(bytes(offset - len(self.live)))
        self.live[offset : offset + len(data)] = data
        self.unsynced.append((offset, data))

    def truncate(self, size: int) -> None:
        del self.live[size:]
        self.live.extend(bytes(size - len(self.live)))
        self.unsynced.append((-1, size.to_bytes(8, "big")))

    def sync(self) -> None:
        self.durable = bytes(self.live)
        self.unsynced.clear()

    def after_cut(self, rng: random.Random | None) -> bytes:
        content = bytearray(self.durable)
        for offset, data in self.unsynced if rng is not None else ():
            assert rng is not None
            if offset < 0:
                if rng.random() < 0.5:
                    size = int.from_bytes(data, "big")
                    del content[size:]
                    content.extend(bytes(size - len(content)))
                continue
            for start in range(0, len(data), SECTOR):
                if rng.random() < 0.5:
                    piece = data[start : start + SECTOR]
                    at = offset + start
                    if len(content) < at:
                        content.extend(bytes(at - len(content)))
                    content[at : at + len(piece)] = piece
        return bytes(content)


class LossyFilesystem(mfusepy.Operations):  # type: ignore[misc]  # untyped library
    """The current names and, separately, the names that would survive a power cut."""

    use_ns = True

    def __init__(self, outcome: Path) -> None:
        self.outcome = outcome
        self.names: dict[str, Node] = {}
        self.directories: dict[str, int] = {"/": 0o700}
        self.durable_names: dict[str, Node] = {}
        self.durable_directories: set[str] = {"/"}

    def init(self, path: str) -> None: ...

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:
        if path in self.directories:
            return self._status(stat.S_IFDIR | self.directories[path], 4096, 2)
        node = self._node(path)
        return self._status(stat.S_IFREG | node.mode, len(node.live), 1)

    def readdir(self, path: str, fh: int) -> list[str]:
        prefix = path.rstrip("/") + "/"
        inside = [name[len(prefix) :] for name in [*self.names, *self.directories]
                  if name.startswith(prefix) and name != "/"]  # fmt: skip
        return [".", "..", *(name for name in inside if name and "/" not in name)]

    def create(self, path: str, mode: int, fi: Any = None) -> int:
        if path.startswith("/.cut-"):
            self._cut(int(path.removeprefix("/.cut-")))
            raise mfusepy.FuseOSError(errno.EIO)
        self.names[path] = Node(stat.S_IMODE(mode))
        return 0

    def open(self, path: str, flags: int) -> int:
        self._node(path)
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        return bytes(self._node(path).live[offset : offset + size])

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        self._node(path).write(offset, bytes(data))
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> None:
        self._node(path).truncate(length)

    def fsync(self, path: str, datasync: int, fh: int) -> int:
        self._node(path).sync()
        return 0

    def fsyncdir(self, path: str, datasync: int, fh: int) -> int:
        for names in (self.names, self.durable_names):
            for name in [name for name in names if os.path.dirname(name) == path]:  # noqa: PTH120  (names, not paths)
                if name in self.names:
                    self.durable_names[name] = self.names[name]
                else:
                    del self.durable_names[name]
        inside = {name for name in self.directories if os.path.dirname(name) == path}  # noqa: PTH120  (names, not paths)
        self.durable_directories |= inside
        return 0

    def flush(self, path: str, fh: int) -> int:
        return 0

    def release(self, path: str, fh: int) -> int:
        return 0

    def opendir(self, path: str) -> int:
        return 0

    def releasedir(self, path: str, fh: int) -> int:
        return 0

    def unlink(self, path: str) -> None:
        self._node(path)
        del self.names[path]

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        self.names[new] = self._node(old)
        del self.names[old]

    def mkdir(self, path: str, mode: int) -> None:
        self.directories[path] = stat.S_IMODE(mode)

    def rmdir(self, path: str) -> None:
        del self.directories[path]

    def chmod(self, path: str, mode: int) -> int:
        if path in self.directories:
            self.directories[path] = stat.S_IMODE(mode)
        else:
            self._node(path).mode = stat.S_IMODE(mode)
        return 0

    def chown(self, path: str, uid: int, gid: int) -> int:
        return 0

    def utimens(self, path: str, times: Any = None) -> int:
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        return {"f_bsize": 4096, "f_blocks": 1 << 20, "f_bavail": 1 << 19, "f_bfree": 1 << 19}

    def _node(self, path: str) -> Node:
        if path not in self.names:
            raise mfusepy.FuseOSError(errno.ENOENT)
        return self.names[path]

    def _status(self, mode: int, size: int, links: int) -> dict[str, Any]:
        now = time.time_ns()
        owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}
        times = {"st_mtime": now, "st_ctime": now, "st_atime": now}
        return {"st_mode": mode, "st_size": size, "st_nlink": links, **owner, **times}

    def _cut(self, seed: int) -> None:
        rng = random.Random(seed) if seed else None
        for directory in sorted(self.durable_directories):
            place = self.outcome / directory.lstrip("/")
            place.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, node in self.durable_names.items():
            file = self.outcome / name.lstrip("/")
            if file.parent.is_dir():
                file.write_bytes(node.after_cut(rng))
                file.chmod(0o600)
        os._exit(0)  # processes with open files now get I/O errors


if __name__ == "__main__":
    mfusepy.FUSE(LossyFilesystem(Path(sys.argv[2])), sys.argv[1], foreground=True, nothreads=True)
