"""Resource limits of a script process, set by the process itself before it runs a script."""

import resource
from pathlib import Path
from typing import Final

#: Memory besides the Lua state: the conversion of arguments and results.
OVERHEAD_BYTES: Final = 160 * 1024 * 1024
STATM: Final = Path("/proc/self/statm")


def set_limits(memory_bytes: int, highest_descriptor: int) -> None:
    """Limit memory, and forbid new descriptors, files, processes and core dumps.

    A descriptor number must be below the limit, so no file and no socket can be opened. The limit
    of CPU time changes with every run; the daemon sets it.
    """
    mapped = mapped_bytes()
    if mapped is not None:
        most = mapped + memory_bytes + OVERHEAD_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for kind, value in (
        (resource.RLIMIT_NOFILE, highest_descriptor + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


def mapped_bytes(statm: Path = STATM) -> int | None:
    """The address space of this process; None without procfs.

    Then only the limit of the Lua state itself holds. macOS does not enforce RLIMIT_AS anyway.
    """
    try:
        return int(statm.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None
