"""The five MCP revisions, as data.

Every difference between revisions is a field of `Revision`; no other module compares dates. The
first four ("legacy") open a connection with `initialize`. The fifth ("modern") has no handshake:
every request names its revision in `params._meta`. The source of each field is the specification of
that revision.
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
#: The identifier of the tasks extension (SEP-2663).
TASKS: Final = META_PREFIX + "tasks"


class Era(StrEnum):
    LEGACY = "legacy"
    MODERN = "modern"


class Revision(Struct, frozen=True, kw_only=True, eq=False):
    """One revision: the members and behaviour that it defines. Compared by identity."""

    date: str
    era: Era
    batching: bool = False
    # Whether an error has a null id when the request id cannot be read; up to 2025-06-18. Later
    # revisions leave the id out.
    null_error_id: bool = False
    content: frozenset[str]
    tool_fields: frozenset[str]
    structured: bool = False
    server_fields: frozenset[str] = frozenset({"name", "version"})
    progress_message: bool = True
    completions_capability: bool = True
    # Whether invalid tool arguments are an isError result (since 2025-11-25) or a JSON-RPC error.
    argument_errors_are_results: bool = False
    elicitation: bool = False
    icons: bool = False
    # HTTP: whether an SSE stream begins with an empty event that carries an id.
    priming: bool = False

    @property
    def modern(self) -> bool:
        return self.era is Era.MODERN


_TOOL_2024_11 = frozenset({"name", "description", "inputSchema"})
_TOOL_2025_03 = _TOOL_2024_11 | {"annotations"}
_TOOL_2025_06 = _TOOL_2025_03 | {"title", "outputSchema", "_meta"}
_TOOL_2025_11 = _TOOL_2025_06 | {"icons"}

_CONTENT_2024_11 = frozenset({"text", "image", "resource"})
_CONTENT_2025_03 = _CONTENT_2024_11 | {"audio"}
_CONTENT_2025_06 = _CONTENT_2025_03 | {"resource_link"}

_SERVER_2025_06 = frozenset({"name", "version", "title"})
_SERVER_2025_11 = _SERVER_2025_06 | {"icons", "description", "websiteUrl"}

R2024_11_05: Final = Revision(
    date="2024-11-05",
    era=Era.LEGACY,
    null_error_id=True,
    content=_CONTENT_2024_11,
    tool_fields=_TOOL_2024_11,
    progress_message=False,
    completions_capability=False,
)
R2025_03_26: Final = Revision(
    date="2025-03-26",
    era=Era.LEGACY,
    batching=True,
    null_error_id=True,
    content=_CONTENT_2025_03,
    tool_fields=_TOOL_2025_03,
)
R2025_06_18: Final = Revision(
    date="2025-06-18",
    era=Era.LEGACY,
    null_error_id=True,
    content=_CONTENT_2025_06,
    tool_fields=_TOOL_2025_06,
    structured=True,
    server_fields=_SERVER_2025_06,
    elicitation=True,
)
R2025_11_25: Final = Revision(
    date="2025-11-25",
    era=Era.LEGACY,
    content=_CONTENT_2025_06,
    tool_fields=_TOOL_2025_11,
    structured=True,
    server_fields=_SERVER_2025_11,
    argument_errors_are_results=True,
    elicitation=True,
    icons=True,
    priming=True,
)
R2026_07_28: Final = Revision(
    date="2026-07-28",
    era=Era.MODERN,
    content=_CONTENT_2025_06,
    tool_fields=_TOOL_2025_11,
    structured=True,
    server_fields=_SERVER_2025_11,
    argument_errors_are_results=True,
    elicitation=True,
    icons=True,
)

MODERN: Final = R2026_07_28
LATEST_LEGACY: Final = R2025_11_25
#: Newest first; `supportedVersions` and `data.supported` use this order.
ALL: Final = (R2026_07_28, R2025_11_25, R2025_06_18, R2025_03_26, R2024_11_05)
LEGACY: Final = {revision.date: revision for revision in ALL if not revision.modern}
SUPPORTED: Final = [revision.date for revision in ALL]


def negotiate(requested: str) -> Revision:
    """Return the requested legacy revision if we support it, else the newest legacy one."""
    return LEGACY.get(requested, LATEST_LEGACY)
