"""Acknowledged writes and their file names are synced, so they survive a power cut."""

import importlib.util
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import pytest

from tests.faults.verifier import ROOT, ChildReport, child_command, verify

pytestmark = [pytest.mark.anyio, pytest.mark.faults]

FILESYSTEM = "tests.faults.lossy_filesystem"


def require(is_available: bool, thing: str) -> None:
    """Skip the test where `thing` is missing; fail it in CI, which must not skip these tests."""
    if is_available:
        return
    reason = f"power-cut tests need {thing}"
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}; CI must provide it (scripts/test installs fuse3)", pytrace=False)
    pytest.skip(reason)


def test_a_missing_requirement_skips_the_test_outside_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="power-cut tests need fusermount3"):
        require(False, "fusermount3")


def test_a_missing_requirement_fails_the_test_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="power-cut tests need fusermount3"):
        require(False, "fusermount3")


@pytest.fixture
def mountpoint(tmp_path: Path) -> Iterator[Path]:
    require(importlib.util.find_spec("mfusepy") is not None, "the Python package mfusepy")
    require(shutil.which("fusermount3") is not None, "fusermount3 (the package fuse3)")
    require(Path("/dev/fuse").exists(), "the device /dev/fuse")
    place = tmp_path / "mount"
    place.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-m", FILESYSTEM, str(place), str(tmp_path / "outcome")],
        cwd=ROOT,
    )
    deadline = time.monotonic() + 10
    while not place.is_mount():
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            server.wait()
            require(False, "libfuse3 and permission to mount a FUSE file system")
        time.sleep(0.02)
    yield place
    subprocess.run(["fusermount3", "-u", "-z", str(place)], check=False)
    server.terminate()
    server.wait()


def write_until_power_cut(
    mountpoint: Path, lines: int, seed: int, operations: int = 400
) -> ChildReport:
    child = subprocess.Popen(
        child_command(mountpoint / "data", seed, operations),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert child.stdout is not None
    output = b"".join(islice(child.stdout, lines))
    with suppress(OSError):  # creating this file cuts the power
        (mountpoint / f".cut-{seed}").touch()
    # Later output counts, too: the file system is gone, so it was acknowledged before the cut.
    child.kill()
    output += child.stdout.read()
    child.wait()
    child.stdout.close()
    report = ChildReport()
    report.read(output)
    return report


@pytest.mark.parametrize("lines", [3, 20, 60, 150])
async def test_every_write_acknowledged_before_a_power_cut_survives_it(
    mountpoint: Path, tmp_path: Path, lines: int
) -> None:
    report = write_until_power_cut(mountpoint, lines, seed=0)

    assert report.acknowledged_count or lines < 10
    await verify(tmp_path / "outcome" / "data", report)


@pytest.mark.parametrize("lines", [40, 120])
async def test_acknowledged_writes_survive_torn_and_reordered_disk_writes(
    mountpoint: Path, tmp_path: Path, lines: int
) -> None:
    seed = random.randrange(1, 10**6)
    print(f"seed {seed}")
    report = write_until_power_cut(mountpoint, lines, seed=seed)

    assert report.acknowledged_count
    await verify(tmp_path / "outcome" / "data", report)
