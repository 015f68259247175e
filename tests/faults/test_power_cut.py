"""The power goes: what was acknowledged was synced, names and all."""

import importlib.util
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

from tests.faults.verifier import ROOT, Witness, command, judge

pytestmark = [pytest.mark.anyio, pytest.mark.faults]


def can_mount() -> bool:
    return (
        importlib.util.find_spec("mfusepy") is not None
        and shutil.which("fusermount3") is not None
        and Path("/dev/fuse").exists()
    )


pytestmark.append(pytest.mark.skipif(not can_mount(), reason="needs mfusepy, fuse3 and /dev/fuse"))


@pytest.fixture
def mountpoint(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "mount"
    place.mkdir()
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.faults.lossy_filesystem",
            str(place),
            str(tmp_path / "outcome"),
        ],
        cwd=ROOT,
    )
    deadline = time.monotonic() + 10
    while not place.is_mount():
        if server.poll() is not None or time.monotonic() > deadline:
            server.kill()
            server.wait()
            pytest.skip("a FUSE file system cannot be mounted here")
        time.sleep(0.02)
    yield place
    subprocess.run(["fusermount3", "-u", "-z", str(place)], check=False)
    server.terminate()
    server.wait()


def cut_the_power(mountpoint: Path, lines: int, seed: int, operations: int = 400) -> Witness:
    victim = subprocess.Popen(
        command(mountpoint / "data", seed, operations),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert victim.stdout is not None
    heard = b"".join(islice(victim.stdout, lines))
    with suppress(OSError):  # that is the power cut
        (mountpoint / f".cut-{seed}").touch()
    # What it says from now on counts too: nothing can be acknowledged that was not before the cut.
    victim.kill()
    heard += victim.stdout.read()
    victim.wait()
    victim.stdout.close()
    witness = Witness()
    witness.hear(heard)
    return witness


@pytest.mark.parametrize("lines", [3, 20, 60, 150])
async def test_nothing_acknowledged_before_a_power_cut_is_lost(
    mountpoint: Path, tmp_path: Path, lines: int
) -> None:
    witness = cut_the_power(mountpoint, lines, seed=0)

    assert witness.acknowledged or lines < 10
    await judge(tmp_path / "outcome" / "data", witness)


@pytest.mark.parametrize("lines", [40, 120])
async def test_torn_and_reordered_writes_lose_nothing_either(
    mountpoint: Path, tmp_path: Path, lines: int
) -> None:
    seed = random.randrange(1, 10**6)
    print(f"seed {seed}")
    witness = cut_the_power(mountpoint, lines, seed=seed)

    assert witness.acknowledged
    await judge(tmp_path / "outcome" / "data", witness)
