"""The five MCP revisions, as data.

What differs between revisions is looked up here, never decided by an `if` on a date elsewhere.
The first four ("legacy") open a connection with `initialize`; the fifth ("modern") has no
handshake: every request says its revision in `params._meta`. Sources are the revisions' own pages;
decisions D1 to D40 where the pages are silent or disagree (see DECISIONS.md).
"""

from enum import StrEnum
from typing import Final

from msgspec import Struct

META_PREFIX: Final = "io.modelcontextprotocol/"
PROTOCOL_VERSION: Final = META_PREFIX + "protocolVersion"
CLIENT_CAPABILITIES: Final = META_PREFIX + "clientCapabilities"
CLIENT_INFO: Final = META_PREFIX + "clientInfo"
LOG_LEVEL: Final = META_PREFIX + "logLevel"
SERVER_INFO: Final = META_PREFIX + "serverInfo"
SUBSCRIPTION_ID: Final = META_PREFIX + "subscriptionId"


class Era(StrEnum):
    LEGACY = "legacy"
    MODERN = "modern"


class Revision(Struct, frozen=True, kw_only=True, eq=False):
    """One revision: what its messages may say. Compared by identity."""

    date: str
    era: Era
    batching: bool = False
    # An error whose request id cannot be read: a to c have a null id, d and e none (D18).
    null_error_id: bool = False
    content: frozenset[str]
    tool_fields: frozenset[str]
    structured: bool = False
    server_fields: frozenset[str] = frozenset({"name", "version"})
    progress_message: bool = True
    completions_capability: bool = True
    # Arguments that break the input schema: an error (a to c) or an isError result (d, e; D14).
    argument_errors_are_results: bool = False
    elicitation: bool = False
    icons: bool = False
    # HTTP: whether a stream begins with an empty event that carries an id (D27).
    priming: bool = False

    @property
    def modern(self) -> bool:
        return self.era is Era.MODERN


_TOOL_A = frozenset({"name", "description", "inputSchema"})
_TOOL_B = _TOOL_A | {"annotations"}
_TOOL_C = _TOOL_B | {"title", "outputSchema", "_meta"}
_TOOL_D = _TOOL_C | {"icons"}

_CONTENT_A = frozenset({"text", "image", "resource"})
_CONTENT_B = _CONTENT_A | {"audio"}
_CONTENT_C = _CONTENT_B | {"resource_link"}

_SERVER_C = frozenset({"name", "version", "title"})
_SERVER_D = _SERVER_C | {"icons", "description", "websiteUrl"}

R2024_11_05: Final = Revision(
    date="2024-11-05",
    era=Era.LEGACY,
    null_error_id=True,
    content=_CONTENT_A,
    tool_fields=_TOOL_A,
    progress_message=False,
    completions_capability=False,
)
R2025_03_26: Final = Revision(
    date="2025-03-26",
    era=Era.LEGACY,
    batching=True,
    null_error_id=True,
    content=_CONTENT_B,
    tool_fields=_TOOL_B,
)
R2025_06_18: Final = Revision(
    date="2025-06-18",
    era=Era.LEGACY,
    null_error_id=True,
    content=_CONTENT_C,
    tool_fields=_TOOL_C,
    structured=True,
    server_fields=_SERVER_C,
    elicitation=True,
)
R2025_11_25: Final = Revision(
    date="2025-11-25",
    era=Era.LEGACY,
    content=_CONTENT_C,
    tool_fields=_TOOL_D,
    structured=True,
    server_fields=_SERVER_D,
    argument_errors_are_results=True,
    elicitation=True,
    icons=True,
    priming=True,
)
R2026_07_28: Final = Revision(
    date="2026-07-28",
    era=Era.MODERN,
    content=_CONTENT_C,
    tool_fields=_TOOL_D,
    structured=True,
    server_fields=_SERVER_D,
    argument_errors_are_results=True,
    elicitation=True,
    icons=True,
)

MODERN: Final = R2026_07_28
LATEST_LEGACY: Final = R2025_11_25
#: Newest first, as `supportedVersions` and `data.supported` list them (D8).
ALL: Final = (R2026_07_28, R2025_11_25, R2025_06_18, R2025_03_26, R2024_11_05)
LEGACY: Final = {revision.date: revision for revision in ALL if not revision.modern}
SUPPORTED: Final = [revision.date for revision in ALL]


def negotiate(requested: str) -> Revision:
    """The revision an `initialize` asking for `requested` gets: the same, or our newest (D3)."""
    return LEGACY.get(requested, LATEST_LEGACY)
