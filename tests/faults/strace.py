"""Fault injection with strace: kill a process, or fail one of its system calls, at the nth call."""

import shutil
import subprocess

import pytest

#: The system calls that change files.
FILE_CALLS = "fsync,fdatasync,pwrite64,ftruncate,unlink,rename"


def _can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    probe = ["strace", "-f", "-qq", "-e", "inject=fsync:error=EIO:when=1", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(
    not _can_trace(), reason="strace is not installed or not permitted to trace"
)


def inject(calls: str, effect: str) -> list[str]:
    """The command prefix that applies `effect` to the named system calls (strace's `inject`)."""
    return ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={calls}", "-e",
            f"inject={calls}:{effect}"]  # fmt: skip
