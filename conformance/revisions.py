"""The five protocol revisions, and the constants of each era."""

from __future__ import annotations

from typing import Any, Final

A: Final = "2024-11-05"
B: Final = "2025-03-26"
C: Final = "2025-06-18"
D: Final = "2025-11-25"
E: Final = "2026-07-28"

LEGACY: Final = (A, B, C, D)
"""Revisions with an `initialize` handshake and state for each connection."""

MODERN: Final = (E,)
"""Revisions without a handshake: every request carries its version and capabilities."""

ALL: Final = LEGACY + MODERN

GROUPS: Final = {"all": ALL, "legacy": LEGACY, "modern": MODERN}

PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

CLIENT: Final = {"name": "mcp-conform", "version": "1"}

LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)


def expand(names: list[str]) -> tuple[str, ...]:
    """The revisions for a list of dates and group names, oldest first."""
    wanted: set[str] = set()
    for name in names:
        if name in GROUPS:
            wanted.update(GROUPS[name])
        elif name in ALL:
            wanted.add(name)
        else:
            raise ValueError(
                f"unknown revision {name!r}; use {', '.join(ALL)}, all, legacy or modern"
            )
    return tuple(revision for revision in ALL if revision in wanted)


def meta(
    capabilities: dict[str, Any] | None = None, *, version: str = E, **more: Any
) -> dict[str, Any]:
    """The `_meta` object of a modern request."""
    return {
        PROTOCOL_VERSION: version,
        CLIENT_CAPABILITIES: {} if capabilities is None else capabilities,
        CLIENT_INFO: CLIENT,
        **more,
    }
