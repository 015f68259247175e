"""Whether to ask again when an answer got lost, in the same words wherever that happens.

Standard library only: bridges say it too (see `daemon.bridge.process`).
"""

from typing import Final

#: Methods that change nothing: asking twice is as good as asking once.
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
    """What to do now."""
    if is_safe:
        return "asking again is safe"
    return "it may or may not have been done: check before asking again"
