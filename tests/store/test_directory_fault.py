"""A data directory that is gone or read-only is noticed by the next health check."""

import os
import shutil
from pathlib import Path

import pytest

from store.files import directory_fault
from store.model import NewMemory
from store.sqlite.engine import open_engine


async def test_health_notices_that_the_directory_is_gone(tmp_path: Path) -> None:
    place = tmp_path / "data"
    async with open_engine(place) as engine:
        await engine.put("b", NewMemory(text="a fact"))
        assert engine.health().is_ready
        shutil.move(place, tmp_path / "elsewhere")
        health = engine.health()
        shutil.move(tmp_path / "elsewhere", place)
        assert not health.is_ready
        assert "directory-missing" in health.degraded
        assert engine.health().is_ready


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every directory")
def test_a_directory_without_write_permission_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "catalogue.db"
    file.touch()
    tmp_path.chmod(0o500)
    try:
        assert directory_fault(tmp_path, file) == "directory-read-only"
    finally:
        tmp_path.chmod(0o700)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    assert directory_fault(tmp_path, tmp_path / "catalogue.db") == "directory-missing"
