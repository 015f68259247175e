"""Discovery: the revisions that a server supports, and its lists, before the first case."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from conformance import revisions
from conformance.check import Failed, NotApplicable, RateLimited, SetupFailed
from conformance.client.frames import Frame, show
from conformance.client.peer import Peer
from conformance.client.stdio import StdioEndpoint
from conformance.client.wire import Endpoint, WireError
from conformance.context import Context, Facts, Settings

LISTS = (
    ("tools", "tools/list", "tools", "tools"),
    ("resources", "resources/list", "resources", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates", "resources"),
    ("prompts", "prompts/list", "prompts", "prompts"),
)


def walk(peer: Peer, method: str, member: str, *, pages: int = 100) -> list[list[dict[str, Any]]]:
    """Fetch all pages of a list."""
    gathered: list[list[dict[str, Any]]] = []
    params: dict[str, Any] = {}
    while True:
        result = peer.result(method, params or None)
        items = result.get(member)
        if not isinstance(items, list):
            raise Failed(f"{method} has no list {member!r}")
        gathered.append([item for item in items if isinstance(item, dict)])
        cursor = result.get("nextCursor")
        if cursor is None:
            return gathered
        if len(gathered) >= pages:
            raise Failed(f"{method} has more than {pages} pages")
        params = {"cursor": cursor}


def discover(
    endpoint: Endpoint, revision: str, settings: Settings, *, startup_seconds: float, again: int = 3
) -> Facts:
    """Find out whether the server supports a revision, and its capabilities and lists.

    `startup_seconds` is the start-up time measured so far. It sets the timeout for the first
    response, because a silent server may still be starting.
    """
    facts = Facts(revision, startup_seconds=startup_seconds)
    context = Context(endpoint, facts, settings)
    began = time.monotonic()
    context.begin()
    try:
        peer = context.raw()
        peer.wire.deadline = float("inf")
        if peer.modern:
            peer.capabilities = {}
            frame = peer.call("server/discover")
        else:
            frame = peer.initialize()
        facts.startup_seconds = time.monotonic() - began
        _read_opening(facts, frame)
        if facts.speaks:
            _read_lists(facts, peer)
    except RateLimited as error:
        context.close()
        settings.pace.slow_down()
        time.sleep(error.seconds)
        if again:
            return discover(
                endpoint, revision, settings, startup_seconds=startup_seconds, again=again - 1
            )
        facts.reason = str(error)
    except (Failed, NotApplicable, SetupFailed, WireError) as error:
        if not facts.speaks:
            facts.reason = str(error)
    finally:
        context.close()
        facts.stderr = context.stderr
    return facts


def _read_opening(facts: Facts, frame: Frame) -> None:
    """Judge from the first response whether the server supports the revision."""
    if frame.kind == "error" or not isinstance(frame.result, dict):
        facts.reason = f"answered {show(frame.raw, 160)}"
        return
    facts.opening = frame.result
    if facts.revision in revisions.MODERN:
        listed = frame.result.get("supportedVersions")
        if isinstance(listed, list) and listed and facts.revision not in listed:
            facts.reason = f"server/discover lists only {', '.join(map(str, listed))}"
            return
    elif frame.result.get("protocolVersion") != facts.revision:
        chosen = frame.result.get("protocolVersion")
        facts.reason = f"offered {facts.revision}, the server chose {chosen!r}"
        return
    facts.speaks = True
    capabilities = frame.result.get("capabilities")
    facts.capabilities = capabilities if isinstance(capabilities, dict) else {}


def _read_lists(facts: Facts, peer: Peer) -> None:
    for attribute, method, member, capability in LISTS:
        if capability in facts.capabilities:
            try:
                pages = walk(peer, method, member)
                setattr(facts, attribute, [item for page in pages for item in page])
            except (Failed, NotApplicable):
                continue


def discover_all(
    endpoint: Endpoint, wanted: Sequence[str], settings: Settings, say: Callable[[str], None]
) -> dict[str, Facts]:
    """Try 2025-11-25 first: most servers support it, and it shows the start-up time."""
    facts: dict[str, Facts] = {}
    startup: float | None = None
    tested = False
    for revision in sorted(wanted, key=lambda r: (r != revisions.D, r)):
        patience = settings.start_seconds / 3 if startup is None else startup
        notice = threading.Timer(
            5.0, say, [f"waiting up to {settings.start_seconds:g} s for the server to start"]
        )
        if startup is None:
            notice.start()
        try:
            facts[revision] = found = discover(
                endpoint, revision, settings, startup_seconds=patience
            )
        finally:
            notice.cancel()
        if found.speaks:
            startup = max(startup or 0.5, found.startup_seconds)
            if not tested and isinstance(endpoint, StdioEndpoint):
                tested = True
                _try_two(endpoint, found, settings, say)
        elif startup is None:
            startup = 0.5  # it was given its time; the others need not wait as long
    longest = max((f.startup_seconds for f in facts.values() if f.speaks), default=0.5)
    for found in facts.values():
        found.startup_seconds = longest
    return {revision: facts[revision] for revision in revisions.ALL if revision in facts}


def _try_two(
    endpoint: StdioEndpoint, facts: Facts, settings: Settings, say: Callable[[str], None]
) -> None:
    """Start two children; if the second fails while the first lives, use one at a time."""
    if endpoint.exclusive:
        return
    quick = replace(settings, case_seconds=settings.case_seconds + 4 * facts.startup_seconds)
    first, second = Context(endpoint, facts, quick), Context(endpoint, facts, quick)
    first.begin()
    second.begin()
    try:
        peer = first.fresh()
        try:
            second.fresh()
            endpoint.allow_spares()
            return
        except (SetupFailed, RateLimited):
            peer.marker()
    except (Failed, SetupFailed, RateLimited, WireError):
        return  # the first is in trouble too: not a question of two instances
    finally:
        second.close()
        first.close()
    endpoint.one_at_a_time()
    say("a second instance does not start beside the first: cases run one instance at a time")
