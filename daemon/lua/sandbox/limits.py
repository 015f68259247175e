"""Resource limits of a script process, set by the process itself before it runs a script."""

import resource
from pathlib import Path
from typing import Final

#: Memory besides the Lua state: the conversion of arguments and results.
OVERHEAD_BYTES: Final = 160 * 1024 * 1024


def set_limits(memory_bytes: int, highest_descriptor: int) -> None:
    """Limit memory, and forbid new descriptors, files, processes and core dumps.

    A descriptor number must be below the limit, so no file and no socket can be opened. The limit
    of CPU time changes with every run; the daemon sets it.
    """
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    most = mapped + memory_bytes + OVERHEAD_BYTES
    for kind, value in (
        (resource.RLIMIT_AS, most),
        (resource.RLIMIT_NOFILE, highest_descriptor + 1),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))
