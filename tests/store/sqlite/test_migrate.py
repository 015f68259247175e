"""Schemas move forward, whole, or not at all."""

import sqlite3
import stat
from pathlib import Path

import pytest

from store.errors import SchemaTooNew, StorageDamaged
from store.sqlite.connection import Connection
from store.sqlite.migrate import MIGRATIONS, backup_path, migrate, migrations, statements


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "steps" / "bank").mkdir(parents=True)
    return tmp_path / "steps"


def step(root: Path, number: int, sql: str) -> None:
    (root / "bank" / f"{number:04}_step.sql").write_text(sql)


def connect(path: Path) -> Connection:
    return Connection(path, isolation_level=None)


def test_a_new_database_gets_every_step(root: Path, tmp_path: Path) -> None:
    step(root, 1, "CREATE TABLE a (x);\n-- a remark; with a semicolon\nCREATE TABLE b (x);\n")
    step(root, 2, "ALTER TABLE a ADD COLUMN y;\n")
    connection = connect(tmp_path / "bank.db")

    migrate(connection, "bank", path=tmp_path / "bank.db", root=root)

    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.execute("SELECT x, y FROM a")
    assert not list(tmp_path.glob("*.before-*"))
    connection.close()


def test_a_database_with_data_is_copied_before_it_changes(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    step(root, 1, "CREATE TABLE a (x);\n")
    connection = connect(path)
    migrate(connection, "bank", path=path, root=root)
    connection.execute("INSERT INTO a VALUES ('kept')")
    step(root, 2, "DROP TABLE a;\n")

    migrate(connection, "bank", path=path, root=root)
    connection.close()

    copy = connect(backup_path(path, 1))
    assert copy.execute("SELECT x FROM a").fetchall() == [("kept",)]
    assert copy.execute("PRAGMA user_version").fetchone() == (1,)
    copy.close()
    assert stat.S_IMODE(backup_path(path, 1).stat().st_mode) == 0o600


def test_a_step_that_fails_in_the_middle_leaves_the_schema_before_it(
    root: Path, tmp_path: Path
) -> None:
    path = tmp_path / "bank.db"
    step(root, 1, "CREATE TABLE a (x);\n")
    step(root, 2, "CREATE TABLE b (x);\nCREATE TABLE a (x);\n")
    connection = connect(path)

    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "bank", path=path, root=root)

    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    tables = connection.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("a",)]
    connection.close()


def test_a_database_from_the_future_is_refused_and_unchanged(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    step(root, 1, "CREATE TABLE a (x);\n")
    connection = connect(path)
    connection.execute("PRAGMA user_version = 7")
    before = path.read_bytes()

    with pytest.raises(SchemaTooNew) as refused:
        migrate(connection, "bank", path=path, root=root)

    assert (refused.value.found, refused.value.known) == (7, 1)
    connection.close()
    assert path.read_bytes() == before


def test_a_gap_in_the_numbers_is_an_incomplete_installation(root: Path) -> None:
    step(root, 1, "CREATE TABLE a (x);\n")
    step(root, 3, "CREATE TABLE c (x);\n")

    with pytest.raises(StorageDamaged):
        migrations("bank", root=root)


def test_half_a_statement_is_an_incomplete_installation() -> None:
    with pytest.raises(StorageDamaged):
        list(statements("CREATE TABLE a (x);\nCREATE TABLE b ("))


@pytest.mark.parametrize("family", ["catalogue", "bank"])
def test_the_installed_steps_apply_to_an_empty_database(family: str, tmp_path: Path) -> None:
    connection = connect(tmp_path / "new.db")

    migrate(connection, family, path=tmp_path / "new.db", root=MIGRATIONS)

    version = len(migrations(family))
    assert connection.execute("PRAGMA user_version").fetchone() == (version,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
