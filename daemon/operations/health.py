"""What health/check says: seed 003's fields, with true numbers.

There is no JavaScript heap here; the four memory numbers are the kernel's own account of this
process: heapUsed is its anonymous resident memory, heapTotal its data segment, external what is
resident of mapped files, rss all that is resident. `degraded` appears only when something is.
"""

from pathlib import Path
from typing import Final

from msgspec import UNSET, Struct, UnsetType

STATUS: Final = Path("/proc/self/status")


class MemoryUse(Struct, frozen=True, kw_only=True, rename="camel"):
    heap_used: int
    heap_total: int
    external: int
    rss: int


class SessionCounts(Struct, frozen=True, kw_only=True):
    total: int
    active: int


class LimiterState(Struct, frozen=True, kw_only=True, rename="camel"):
    """`current_requests` counts the last minute over all sessions; 0 a minute means no limit."""

    requests_per_minute: int
    current_requests: int


class Health(Struct, frozen=True, kw_only=True, rename="camel"):
    """Seed 003, Health Check."""

    status: str
    version: str
    uptime: int
    memory: MemoryUse
    sessions: SessionCounts
    tools_registered: int
    database: str
    rate_limiter: LimiterState
    degraded: list[str] | UnsetType = UNSET


class Glance(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a caller that is not the owner hears: how we are, and no figures of others' work."""

    status: str
    version: str
    tools_registered: int
    database: str


def glance(health: Health) -> Glance:
    return Glance(
        status=health.status,
        version=health.version,
        tools_registered=health.tools_registered,
        database=health.database,
    )


def memory_use() -> MemoryUse:
    """This process's memory in bytes, as the kernel counts it."""
    fields: dict[str, int] = {}
    try:
        for line in STATUS.read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("VmData", "VmRSS", "RssAnon", "RssFile", "RssShmem"):
                fields[name] = int(value.split()[0]) * 1024
    except OSError:
        import resource  # no procfs here; the peak is the only number to be had

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        fields = {"VmRSS": peak, "RssAnon": peak, "VmData": peak}
    return MemoryUse(
        heap_used=fields.get("RssAnon", 0),
        heap_total=fields.get("VmData", 0),
        external=fields.get("RssFile", 0) + fields.get("RssShmem", 0),
        rss=fields.get("VmRSS", 0),
    )
