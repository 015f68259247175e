"""Reading of foreign files: SQLite databases, JSON, lines of JSON, and archives.

Nothing here writes. A database is opened read-only and immutable, so SQLite creates no lock, no
journal and no shared-memory file beside it. An immutable database ignores a write-ahead log, so one
with a log that is not empty is copied, with its log, to a private directory, and the copy is read.
"""

import shutil
import sqlite3
import tempfile
import zipfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import orjson

from daemon.importing.record import WrongKind

_MAGIC: Final = b"SQLite format 3\0"
#: Bytes of one JSON text. It is decoded in memory, where it takes several times its size.
JSON_LIMIT: Final = 1 << 30
LINE_LIMIT: Final = 64 << 20


def is_sqlite(path: Path) -> bool:
    return path.is_file() and head(path, len(_MAGIC)) == _MAGIC


def head(path: Path, size: int = 4096) -> bytes:
    with path.open("rb") as file:
        return file.read(size)


@contextmanager
def opened(path: Path) -> Generator[sqlite3.Connection]:
    """A foreign database, for reading only. Rows have names, and bad UTF-8 is replaced."""
    log = path.with_name(f"{path.name}-wal")
    if not (log.is_file() and log.stat().st_size):
        with closing(_connect(path, "mode=ro&immutable=1")) as connection:
            yield connection
        return
    with tempfile.TemporaryDirectory(prefix="recalld-import-") as directory:
        copy = Path(directory) / "foreign.db"
        shutil.copyfile(path, copy)
        shutil.copyfile(log, copy.with_name("foreign.db-wal"))
        with closing(_connect(copy, "mode=rw")) as connection:
            connection.execute("PRAGMA query_only = 1")
            yield connection


def _connect(path: Path, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?{options}", uri=True)
    connection.row_factory = sqlite3.Row
    connection.text_factory = _decoded
    # The schema of a foreign file may call functions; none of them may have side effects.
    connection.execute("PRAGMA trusted_schema = 0")
    return connection


def _decoded(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def columns(path: Path) -> dict[str, frozenset[str]]:
    """The tables of a database with their columns; raises `WrongKind` if it is not readable."""
    if not path.is_file():
        raise WrongKind("it is not a file")
    if not is_sqlite(path):
        raise WrongKind("it is not a SQLite database")
    try:
        with opened(path) as connection:
            names = [
                row[0]
                for row in connection.execute(
                    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE"
                    " 'CREATE VIRTUAL%' AND name NOT LIKE 'sqlite_%' ORDER BY name"
                )
            ]
            return {
                name: frozenset(
                    row[0]
                    for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
                )
                for name in names
            }
    except sqlite3.Error as error:
        raise WrongKind(f"it is a damaged SQLite database ({error})") from error


def missing_table(path: Path, table: str, *needed: str) -> str | None:
    """What a database lacks: the file format, the table or some of its columns."""
    try:
        tables = columns(path)
    except WrongKind as wrong:
        return str(wrong)
    if table not in tables:
        return f"it has no table `{table}`"
    absent = sorted(set(needed) - tables[table])
    return f"its table `{table}` has no column `{absent[0]}`" if absent else None


def rows(path: Path, statement: str) -> Iterator[dict[str, Any]]:
    """The rows of a query as dictionaries, read one at a time."""
    try:
        with opened(path) as connection:
            for row in connection.execute(statement):
                yield dict(row)
    except sqlite3.Error as error:
        raise WrongKind(f"its database is damaged ({error})") from error


def load(path: Path) -> Any:
    """A JSON file."""
    status = path.stat()
    if status.st_size > JSON_LIMIT:
        raise WrongKind(f"it is larger than {JSON_LIMIT >> 20} MiB")
    if _has_json_lines(path):
        raise WrongKind("it has JSON lines, not one JSON value")
    return _load(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=1)
def _load(path: Path, _changed: int, _size: int) -> Any:
    """A JSON file. Detection asks several kinds, and then the file is read, so one is kept."""
    return decode(path.read_bytes())


def _has_json_lines(path: Path) -> bool:
    """Whether the first line is a JSON value and something follows, without reading the file."""
    with path.open("rb") as file:
        first = file.readline(LINE_LIMIT).strip()
        if first[:1] not in (b"{", b"[", b'"') or not file.readline(LINE_LIMIT).strip():
            return False
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return True


def decode(raw: bytes) -> Any:
    try:
        return orjson.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError as error:
        raise WrongKind(f"it is not JSON ({error})") from error


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file by line number; None for a line that is not JSON."""
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE_LIMIT), b""), start=1):
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            if not line.strip():
                continue
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError:
                yield number, None


def first_line(path: Path) -> Any:
    """The JSON value of the first line that is not blank; None if it is not JSON."""
    return next((value for _, value in json_lines(path)), None)


class Archive:
    """The files of a folder or of a ZIP file, by their names."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._zip: zipfile.ZipFile | None = None
        if path.is_file():
            try:
                self._zip = zipfile.ZipFile(path)
            except (zipfile.BadZipFile, OSError) as error:
                raise WrongKind("it is neither a folder nor a ZIP file") from error

    def close(self) -> None:
        if self._zip is not None:
            self._zip.close()

    def names(self) -> list[str]:
        if self._zip is not None:
            return sorted(name for name in self._zip.namelist() if not name.endswith("/"))
        found = (each for each in self._path.rglob("*") if each.is_file())
        return sorted(str(each.relative_to(self._path)) for each in found)

    def find(self, name: str) -> str | None:
        """The path of the first file of this name, at the top or in a folder."""
        matches = [each for each in self.names() if each.rpartition("/")[2] == name]
        return min(matches, key=lambda each: each.count("/"), default=None)

    def read(self, name: str) -> bytes:
        """A file of the archive, in memory and within `JSON_LIMIT`."""
        if self._zip is None:
            path = self._path / name
            if path.stat().st_size > JSON_LIMIT:
                raise WrongKind(f"{name} is larger than {JSON_LIMIT >> 20} MiB")
            return path.read_bytes()
        try:
            with self._zip.open(name) as file:
                raw = file.read(JSON_LIMIT + 1)
        except (zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError) as error:
            raise WrongKind(f"{name} cannot be unpacked ({error})") from error
        if len(raw) > JSON_LIMIT:
            raise WrongKind(f"{name} is larger than {JSON_LIMIT >> 20} MiB")
        return raw


@contextmanager
def archive(path: Path) -> Generator[Archive]:
    opened_archive = Archive(path)
    try:
        yield opened_archive
    finally:
        opened_archive.close()
