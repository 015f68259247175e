"""Advice on retrying a request whose answer was lost, in the same words everywhere.

Standard library only, because the bridge uses it (see `daemon.bridge.process`).
"""

from typing import Final

#: Methods that are safe to repeat: they change nothing, or set the same value again.
READS: Final = frozenset(
    {
        "initialize",
        "ping",
        "health/check",
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "logging/setLevel",
        "subscriptions/listen",
    }
)


def advice(is_safe: bool) -> str:
    """Return the advice for the client."""
    if is_safe:
        return "asking again is safe"
    return "it may or may not have been done: check before asking again"
