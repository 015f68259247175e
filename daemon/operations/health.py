"""The result of `health/check`: the fields of Claude Recall's Health Check section, measured.

Python has no JavaScript heap, so the four memory fields are the kernel's figures for this process:
heapUsed is its anonymous resident memory, heapTotal its data segment, external the resident part of
mapped files, rss all resident memory. `degraded` is present only if something is degraded.
"""

import sys
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
    """`current_requests` counts the last minute over all sessions; a limit of 0 means no limit."""

    requests_per_minute: int
    current_requests: int


class Health(Struct, frozen=True, kw_only=True, rename="camel"):
    """The full report, for the owner."""

    status: str
    version: str
    uptime: int
    memory: MemoryUse
    sessions: SessionCounts
    tools_registered: int
    database: str
    rate_limiter: LimiterState
    degraded: list[str] | UnsetType = UNSET
    #: Items in open banks that are found by keyword only, until their vectors are computed.
    pending_vectors: int | UnsetType = UNSET


class HealthSummary(Struct, frozen=True, kw_only=True, rename="camel"):
    """The report for other callers: the status, without figures about the work of others."""

    status: str
    version: str
    tools_registered: int
    database: str


def summary(health: Health) -> HealthSummary:
    return HealthSummary(
        status=health.status,
        version=health.version,
        tools_registered=health.tools_registered,
        database=health.database,
    )


def memory_use(status: Path = STATUS) -> MemoryUse:
    """The memory of this process in bytes, as the kernel counts it."""
    fields: dict[str, int] = {}
    try:
        for line in status.read_text().splitlines():
            name, _, value = line.partition(":")
            if name in ("VmData", "VmRSS", "RssAnon", "RssFile", "RssShmem"):
                fields[name] = int(value.split()[0]) * 1024
    except OSError:
        import resource  # without procfs only the peak is available

        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        fields = {"VmRSS": peak, "RssAnon": peak, "VmData": peak}
    return MemoryUse(
        heap_used=fields.get("RssAnon", 0),
        heap_total=fields.get("VmData", 0),
        external=fields.get("RssFile", 0) + fields.get("RssShmem", 0),
        rss=fields.get("VmRSS", 0),
    )
