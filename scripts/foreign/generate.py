"""Make the fixtures of the importers again, by running the real programs in pinned versions.

    scripts/foreign/generate.py DIRECTORY [NAME …]

The programs are installed into DIRECTORY from npm and PyPI and run there, with a home of their own.
Nothing of them is copied but the data that they wrote. It takes some minutes and several hundred
megabytes, so it is run by hand.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from scripts.foreign import claude_mem  # noqa: E402  (the script may be run by its path)

FIXTURES = ROOT / "tests" / "daemon" / "importing" / "fixtures"
AWARENESS = "@awareness.market/local@0.12.6"
CLAUDE_MEM = "claude-mem@13.25.3"
BUN = "@oven/bun-linux-x64@1.4.4"


def npm(directory: Path, *packages: str) -> Path:
    """Install packages without their scripts; returns their folder."""
    directory.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", ".", "--no-audit", "--no-fund", "--ignore-scripts"]
    subprocess.run([*command, *packages], cwd=directory, check=True)
    return directory / "node_modules"


def awareness(directory: Path) -> None:
    modules = npm(directory / "awareness", AWARENESS)
    made = directory / "awareness" / "project"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    script = ROOT / "scripts" / "foreign" / "awareness.mjs"
    package = modules / "@awareness.market" / "local"
    subprocess.run(["node", script, package, made], check=True)
    target = FIXTURES / "awareness" / ".awareness" / "memories"
    shutil.rmtree(FIXTURES / "awareness", ignore_errors=True)
    shutil.copytree(made / ".awareness" / "memories", target)


def of_claude_mem(directory: Path) -> None:
    home = directory / "claude-mem"
    modules = npm(home, BUN, "zod@4")
    packed = subprocess.run(
        ["npm", "pack", "--silent", CLAUDE_MEM],
        cwd=home,
        check=True,
        capture_output=True,
        text=True,
    )
    shutil.unpack_archive(home / packed.stdout.strip(), home)
    bun = modules / "@oven" / "bun-linux-x64" / "bin" / "bun"
    claude_mem.generate(bun, home / "package", home / "home", FIXTURES / "claude-mem.db.gz")


PROGRAMS: dict[str, Callable[[Path], None]] = {
    "awareness": awareness,
    "claude-mem": of_claude_mem,
}


if __name__ == "__main__":
    place = Path(sys.argv[1]).absolute()
    for name in sys.argv[2:] or PROGRAMS:
        PROGRAMS[name](place)
        print(f"{name}: done")
