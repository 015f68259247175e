"""Soak test of the engine: process kills and power cuts.

    scripts/soak.py engine --kills 1000 --cuts 200 --json OUT

Each kill ends a process at a random moment while it writes to a growing data directory. Each cut
simulates a power failure on a file system that loses all unsynced data. Afterwards the directory is
opened and compared with the acknowledged writes. Every failure prints its seed, and `--seed`
repeats it. The run starts with five kills at 10,000 memories that measure the time to the next
result. A kill takes about 1.2 s and a cut 2 s on two cores.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import anyio

from tests.faults.verifier import ROOT, ChildReport, child_command, run_child, verify

FRESH_EVERY = 50  # kills in one data directory; then a new one, to bound its size


def kills(count: int, seed: int, place: Path) -> dict[str, Any]:
    rng = random.Random(seed)
    acknowledged = 0
    slowest = 0.0
    directory = place / "kills"
    for n in range(count):
        if n % FRESH_EVERY == 0:
            shutil.rmtree(directory, ignore_errors=True)
        report = run_child(
            directory,
            seed + n,
            kill_after_lines=rng.randrange(1, 300),
            pause=rng.random() * 0.02,
        )
        started = time.monotonic()
        anyio.run(verify, directory, report)
        slowest = max(slowest, time.monotonic() - started)
        acknowledged += report.acknowledged_count
        progress("kills", n + 1, count)
    return {"kills": count, "acknowledged": acknowledged, "lost": 0, "slowest_check": slowest}


def ready(rounds: int, place: Path) -> dict[str, Any]:
    """Time from the start of a process to its first result, after a kill at 10,000 memories."""
    directory = place / "ready"
    slowest = {"keyword": 0.0, "hybrid": 0.0}
    for n in range(rounds):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITE, str(directory)], cwd=ROOT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        list(islice(writer.stdout, 1 + 37 * n))  # the first line reports that 10,000 are stored
        writer.kill()
        writer.wait()
        writer.stdout.close()
        answer = subprocess.run(
            [sys.executable, "-c", _ANSWER, str(directory)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for mode, seconds in json.loads(answer.stdout).items():
            slowest[mode] = max(slowest[mode], seconds)
    return {"rounds": rounds, "slowest_seconds": slowest}


_WRITE = """
import sys
from pathlib import Path
import anyio
from store.sqlite.engine import open_engine
from store.model import NewMemory

async def main(directory):
    async with open_engine(Path(directory)) as engine:
        for at in range(0, 10_000, 2_000):
            texts = (f"note {n} about subject {n % 97}" for n in range(at, at + 2_000))
            await engine.put_many("b", [NewMemory(text=text) for text in texts])
        print("full", flush=True)
        for n in range(1_000_000):
            made = await engine.put("b", NewMemory(text=f"later {n}", allow_duplicate=True))
            print(made.id, flush=True)

anyio.run(main, sys.argv[1])
"""
_ANSWER = """
import json, sys, time
began = time.monotonic()
from pathlib import Path
import anyio
from store.sqlite.engine import open_engine
from store.model import Query

async def main(directory):
    took = {}
    async with open_engine(Path(directory)) as engine:
        for mode in ("keyword", "hybrid"):
            found = await engine.search(Query(bank="b", text="subject 7", mode=mode))
            assert found.hits
            took[mode] = round(time.monotonic() - began, 3)
    print(json.dumps(took))

anyio.run(main, sys.argv[1])
"""


def cuts(count: int, seed: int, place: Path) -> dict[str, Any]:
    if shutil.which("fusermount3") is None:
        return {"cuts": 0, "skipped": "fusermount3 is not installed"}
    rng = random.Random(seed)
    acknowledged = 0
    for n in range(count):
        home = place / f"cut{n}"
        report = cut(home, lines=rng.randrange(2, 200), seed=0 if n % 2 else seed + n + 1)
        anyio.run(verify, home / "outcome" / "data", report)
        acknowledged += report.acknowledged_count
        shutil.rmtree(home, ignore_errors=True)
        progress("cuts", n + 1, count)
    return {"cuts": count, "acknowledged": acknowledged, "lost": 0}


def cut(home: Path, *, lines: int, seed: int) -> ChildReport:
    """One power cut: mount, work, cut, unmount."""
    mountpoint = home / "mount"
    mountpoint.mkdir(parents=True)
    server = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.faults.lossy_filesystem",
            str(mountpoint),
            str(home / "outcome"),
        ],
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 10
        while not mountpoint.is_mount():
            if server.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("the lossy file system could not be mounted")
            time.sleep(0.02)
        child = subprocess.Popen(
            child_command(mountpoint / "data", seed, 10_000),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert child.stdout is not None
        output = b"".join(islice(child.stdout, lines))
        with suppress(OSError):
            (mountpoint / f".cut-{seed}").touch()
        child.kill()
        output += child.stdout.read()  # nothing can be acknowledged that was not before the cut
        child.wait()
        child.stdout.close()
    finally:
        subprocess.run(["fusermount3", "-u", "-z", str(mountpoint)], check=False)
        server.terminate()
        server.wait()
    report = ChildReport()
    report.read(output)
    return report


def progress(what: str, done: int, total: int) -> None:
    if done % 10 == 0 or done == total:
        print(f"soak: {what} {done}/{total}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog=sys.argv[0], description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    print(f"soak: seed {options.seed}", flush=True)
    place = Path(tempfile.mkdtemp(prefix="recalld-soak-"))
    print(f"soak: working in {place}, which is kept after a failure", flush=True)
    figures: dict[str, Any] = {"seed": options.seed}
    figures["ready"] = ready(5, place)
    print(f"soak: ready {figures['ready']}", flush=True)
    figures["kills"] = kills(options.kills, options.seed, place)
    figures["cuts"] = cuts(options.cuts, options.seed, place)
    shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
