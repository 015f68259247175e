"""Reading and atomic writing of the configuration files of other programs.

A file keeps its byte order mark, mode and owner. A symbolic link stays: its target is replaced. The
previous contents are kept beside it, once a day, before the first change of that day. Nothing is
written if the file has changed since it was read.
"""

import contextlib
import os
import stat
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

BOM: Final = "\ufeff"
MAX_BYTES: Final = 32 * 1024 * 1024


class FileFault(Exception):
    """A file that cannot be read or written; the message names it and the reason."""

    def __init__(self, path: Path, reason: str, *, is_refusal: bool = False) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason
        #: The file can be read and is not changed on purpose.
        self.is_refusal = is_refusal


class TextFile:
    """The contents of a file at the time it was read. `text` has no byte order mark."""

    def __init__(self, path: Path, target: Path, raw: bytes | None) -> None:
        self.path = path
        self.target = target
        self._raw = raw
        decoded = _decode(path, raw or b"")
        self.mark = BOM if decoded.startswith(BOM) else ""
        self.text = decoded.removeprefix(BOM)

    @property
    def exists(self) -> bool:
        return self._raw is not None

    def save(self, text: str, today: Callable[[], str]) -> Path | None:
        """Replace the contents atomically. Returns the backup, if one was made."""
        content = (self.mark + text).encode()
        self._require_unchanged()
        try:
            self.target.parent.mkdir(parents=True, exist_ok=True)
            backup = self._back_up(today())
            self._replace(content)
        except OSError as error:
            raise FileFault(self.path, error.strerror or str(error)) from error
        return backup

    def remove(self) -> None:
        """Delete a file that has only our contents; a link stays and its target is emptied."""
        self._require_unchanged()
        try:
            if self.path.is_symlink():
                self._replace(b"")
            else:
                self.target.unlink()
        except OSError as error:
            raise FileFault(self.path, error.strerror or str(error)) from error

    def _require_unchanged(self) -> None:
        if self._raw is not None and not self.target.stat().st_mode & 0o222:
            reason = "the file is read-only; make it writable (chmod u+w) and try again"
            raise FileFault(self.path, reason)
        if _read(self.path, self.target) != self._raw:
            reason = "another program changed the file meanwhile; close it and try again"
            raise FileFault(self.path, reason, is_refusal=True)

    def _back_up(self, day: str) -> Path | None:
        if self._raw is None:
            return None
        backup = self.target.with_name(f"{self.target.name}.recalld-{day}.bak")
        if backup.exists():
            return None
        mode = stat.S_IMODE(self.target.stat().st_mode)
        _write(backup, self._raw, mode)
        return backup

    def _replace(self, content: bytes) -> None:
        mode, owner = 0o600, None
        if self._raw is not None:
            found = self.target.stat()
            mode, owner = stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid)
        handle, name = tempfile.mkstemp(prefix=f".{self.target.name}.", dir=self.target.parent)
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fchmod(stream.fileno(), mode)
                if owner is not None:
                    with contextlib.suppress(PermissionError):
                        os.fchown(stream.fileno(), *owner)
                os.fsync(stream.fileno())
            temporary.replace(self.target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(self.target.parent)


def load(path: Path) -> TextFile:
    """Read a file, through a link. FileFault unless it is missing or a regular UTF-8 file."""
    target = path
    if path.is_symlink():
        try:
            target = path.resolve()
        except OSError as error:
            raise FileFault(path, error.strerror or str(error)) from error
        except RuntimeError:
            raise FileFault(path, "the symbolic link refers to itself") from None
    return TextFile(path, target, _read(path, target))


def utc_day() -> str:
    return datetime.now(UTC).strftime("%Y%m%d")


def _read(path: Path, target: Path) -> bytes | None:
    try:
        found = target.stat()
        if not stat.S_ISREG(found.st_mode):
            raise FileFault(path, "is not a regular file", is_refusal=True)
        if found.st_size > MAX_BYTES:
            raise FileFault(path, f"is larger than {MAX_BYTES} bytes", is_refusal=True)
        return target.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileFault(path, error.strerror or str(error)) from error


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        reason = f"line {line}, column {column}: the file is not valid UTF-8"
        raise FileFault(path, reason, is_refusal=True) from None


def _write(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_directory(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
