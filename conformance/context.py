"""What a check is given: connections in its revision, facts about the server, and its roles.

Opening a connection may cost a second (a child that starts slowly), so connections are lent from
one case to the next as long as they are in order: nothing is in flight on them, nothing that lasts
was asked for, and a marker is answered. `peer` is the one connection all well-behaved cases share;
`fresh` gives one that no other party of the case uses; `raw` gives one on which nothing was ever
said. What is not in order at the end of a case is closed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from conformance import revisions, roles
from conformance.check import SCANS, Exchange, Failed, NotApplicable
from conformance.client.frames import dump, show
from conformance.client.observer import Observer, ReceivedFrame, Sent
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.client.stdio import StdioEndpoint
from conformance.client.wire import Endpoint, Wire, WireError

KEPT_BYTES = 2000
KEPT_EXCHANGES = 24


@dataclass
class Facts:
    """What we learned about the server in one revision before the first case."""

    revision: str
    speaks: bool = False
    reason: str = ""
    opening: dict[str, Any] = field(default_factory=dict)
    capabilities: dict[str, Any] = field(default_factory=dict)
    tools: list[dict[str, Any]] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    templates: list[dict[str, Any]] = field(default_factory=list)
    prompts: list[dict[str, Any]] = field(default_factory=list)
    startup_seconds: float = 0.0


@dataclass
class Finding:
    """What a scan has seen so far."""

    looked: int = 0
    wrong: int = 0
    first: str = ""
    evidence: list[Exchange] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """What the command line decides about a run."""

    timeout: float = 5.0
    case_seconds: float = 40.0
    quiet_seconds: float = 0.4
    keep_alive_seconds: float = 30.0
    """How long a quiet stream may say nothing at all."""
    dribble_seconds: float = 35.0
    """How long a server may wait for a request that arrives a byte at a time."""
    idle_seconds: float | None = None
    """After how long the server says it forgets an idle session."""
    roles: Mapping[str, roles.Role] = field(default_factory=dict)
    spoken: frozenset[str] = frozenset()
    """Revisions known to be spoken, beside those the run itself finds out about."""


class Context(Observer):
    """One revision's worth of conversation."""

    def __init__(self, endpoint: Endpoint, facts: Facts, settings: Settings) -> None:
        self.endpoint = endpoint
        self.facts = facts
        self.settings = settings
        self.revision = facts.revision
        self.findings: dict[str, Finding] = {name: Finding() for name in SCANS}
        self.evidence: list[Exchange] = []
        self.stderr = b""
        self.toured = False
        self.vigils: dict[str, Future[None]] = {}
        """Long waits that go on while other cases are tried."""
        self._shared: Peer | None = None
        self._opened: list[Peer] = []
        self._rested: dict[bytes, list[Peer]] = {}
        self._deadline = float("inf")
        self._count = 0

    # -- facts --------------------------------------------------------------------------------

    @property
    def modern(self) -> bool:
        return self.revision in revisions.MODERN

    @property
    def timeout(self) -> float:
        return self.settings.timeout

    def offers(self, capability: str) -> bool:
        return isinstance(self.facts.capabilities.get(capability), dict)

    def require(self, capability: str, flag: str | None = None) -> None:
        """Go on only if the server declares the capability (and the flag in it)."""
        if not self.offers(capability):
            raise NotApplicable(f"the server does not declare the {capability} capability")
        if flag is not None and self.facts.capabilities[capability].get(flag) is not True:
            raise NotApplicable(f"the server does not declare {capability}.{flag}")

    def has_role(self, role: str) -> roles.Role | None:
        return roles.find(role, self.facts.tools, self.settings.roles)

    def role(self, role: str) -> roles.Role:
        """The tool that plays a part; a server without one cannot be tried."""
        found = self.has_role(role)
        if found is None:
            raise NotApplicable(f"no tool of this server plays the role {role!r}")
        return found

    def slow(self, seconds: float, steps: int | None = None) -> dict[str, Any]:
        """Parameters of a `tools/call` that takes that long."""
        role = self.role("slow")
        return {"name": role.tool, "arguments": role.arguments(seconds=seconds, steps=steps)}

    def echo(self, text: str) -> dict[str, Any]:
        role = self.role("echo")
        return {"name": role.tool, "arguments": role.arguments(text=text)}

    def stdio(self) -> StdioEndpoint:
        if not isinstance(self.endpoint, StdioEndpoint):
            raise NotApplicable("only a server we start ourselves can be tried")
        return self.endpoint

    # -- connections --------------------------------------------------------------------------

    def adopt(self, wire: Wire, revision: str | None = None) -> Peer:
        """A peer on a wire that the case opened itself."""
        wire.deadline = self._deadline
        self._count += 1
        peer = Peer(
            wire,
            revision or self.revision,
            self,
            number=self._count,
            timeout=self.timeout,
            quiet=self.settings.quiet_seconds,
            first_timeout=self.timeout + 3 * self.facts.startup_seconds,
        )
        self._opened.append(peer)
        return peer

    def raw(self, revision: str | None = None) -> Peer:
        """A new connection on which nothing has been said."""
        return self.adopt(self.endpoint.connect(), revision)

    def fresh(
        self, revision: str | None = None, *, capabilities: dict[str, Any] | None = None
    ) -> Peer:
        """A connection nobody else uses, opened as the revision demands."""
        kind = dump([revision or self.revision, capabilities or {}])
        rested = self._rested.get(kind)
        if rested:
            peer = rested.pop()
            peer.wire.deadline = self._deadline
            self._opened.append(peer)
            return peer
        peer = self.open(self.raw(revision), capabilities)
        peer.kind = kind
        return peer

    def open(self, peer: Peer, capabilities: dict[str, Any] | None = None) -> Peer:
        if peer.modern:
            peer.capabilities = capabilities or {}
            peer.marker()  # there is no handshake to wait for, and a child may still be starting
        else:
            result_of(peer.initialize(capabilities=capabilities), "initialize")
        return peer

    @property
    def peer(self) -> Peer:
        """The shared connection: whoever uses it leaves it in order."""
        if self._shared is None:
            self._shared = self.fresh()
            self._opened.remove(self._shared)
        self._shared.wire.deadline = self._deadline
        return self._shared

    # -- a case begins and ends ---------------------------------------------------------------

    def begin(self) -> None:
        self._deadline = time.monotonic() + self.settings.case_seconds
        self.evidence = []
        self.stderr = b""
        if self._shared is not None:
            self._shared.wire.deadline = self._deadline

    def end(self, *, passed: bool) -> None:
        """Close what the case opened, and lend the shared connection on only if it is in order."""
        self._deadline = float("inf")
        # After a failure a connection is worth keeping only where a new one costs a process.
        keep = passed or self.endpoint.transport == "stdio"
        for peer in self._opened:
            if keep and peer.kind is not None and self._in_order(peer, passed=passed):
                self._rested.setdefault(peer.kind, []).append(peer)
            else:
                self._close(peer)
        self._opened.clear()
        if self._shared is not None and not (keep and self._in_order(self._shared, passed=passed)):
            self._close(self._shared)
            self._shared = None

    def _in_order(self, peer: Peer, *, passed: bool) -> bool:
        """Whether the next case finds the connection as if it were new.

        Where a case failed, an answer may still be on its way: it is given a moment to arrive.
        """
        if not peer.at_rest:
            return False
        before = len(self.evidence)
        peer.wire.deadline = time.monotonic() + self.timeout
        try:
            until = time.monotonic() + (0.0 if passed else self.settings.quiet_seconds)
            while (left := until - time.monotonic()) > 0:
                peer.next(left)
            peer.marker()
        except (Failed, WireError):
            return False
        del self.evidence[before:]
        peer.discard_inbox()
        return True

    def _close(self, peer: Peer) -> None:
        peer.wire.close()
        if tail := peer.wire.stderr_tail():
            self.stderr = tail

    def close(self) -> None:
        self.end(passed=False)
        for peers in self._rested.values():
            for peer in peers:
                self._close(peer)
        self._rested.clear()

    # -- the tap ------------------------------------------------------------------------------

    def _note(self, sent: bool, data: bytes, connection: int) -> Exchange:
        exchange = Exchange(sent, data[:KEPT_BYTES], len(data), connection)
        self.evidence.append(exchange)
        if len(self.evidence) > 2 * KEPT_EXCHANGES:
            # The beginning shows how the case was set up, the end how it went wrong.
            del self.evidence[KEPT_EXCHANGES // 2 : -KEPT_EXCHANGES]
        return exchange

    def record(self, sent: bool, data: bytes) -> None:
        """Keep as evidence what went over a connection that is no peer's."""
        self._note(sent, data, 0)

    def sent(self, peer: Peer, data: bytes) -> None:
        self._note(True, data, peer.number)

    def received(self, received: ReceivedFrame) -> None:
        exchange = self._note(False, received.frame.raw, received.peer.number)
        if received.revision != self.revision or not received.peer.scanned:
            return
        for name, look in SCANS.items():
            try:
                verdict = look(received)
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                verdict = f"cannot be judged: {error!r}"
            if verdict is None:
                continue
            finding = self.findings[name]
            finding.looked += 1
            if isinstance(verdict, str):
                finding.wrong += 1
                if not finding.first:
                    finding.first = f"{verdict}: {show(received.frame.raw, 200)}"
                    finding.evidence = [*_asked(received.sent, received.peer.number), exchange]


def _asked(sent: Sent | None, number: int) -> list[Exchange]:
    if sent is None:
        return []
    return [Exchange(True, sent.raw[:KEPT_BYTES], len(sent.raw), number)]


# -- reconnaissance ---------------------------------------------------------------------------

LISTS = (
    ("tools", "tools/list", "tools", "tools"),
    ("resources", "resources/list", "resources", "resources"),
    ("templates", "resources/templates/list", "resourceTemplates", "resources"),
    ("prompts", "prompts/list", "prompts", "prompts"),
)


def walk(peer: Peer, method: str, member: str, *, pages: int = 100) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
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
            raise Failed(f"{method} has more than {pages} pages; does it end at all?")
        params = {"cursor": cursor}


def reconnoitre(
    endpoint: Endpoint, revision: str, settings: Settings, *, startup_seconds: float
) -> Facts:
    """Find out whether the server speaks a revision, and what it has to offer in it.

    `startup_seconds` is what starting took before, as far as is known: it decides how long a
    server that says nothing is believed to be still starting.
    """
    facts = Facts(revision, startup_seconds=startup_seconds)
    context = Context(endpoint, facts, settings)
    began = time.monotonic()
    context.begin()
    try:
        peer = context.raw()
        if peer.modern:
            peer.capabilities = {}
            frame = peer.call("server/discover")
        else:
            frame = peer.initialize()
        facts.startup_seconds = time.monotonic() - began
        if frame.kind == "error" or not isinstance(frame.result, dict):
            facts.reason = f"answered {show(frame.raw, 160)}"
            return facts
        facts.opening = frame.result
        spoken = frame.result.get("protocolVersion")
        if not peer.modern and spoken != revision:
            facts.reason = f"offered {revision}, the server chose {spoken!r}"
            return facts
        facts.speaks = True
        capabilities = frame.result.get("capabilities")
        facts.capabilities = capabilities if isinstance(capabilities, dict) else {}
        for attribute, method, member, capability in LISTS:
            if capability in facts.capabilities:
                try:
                    pages = walk(peer, method, member)
                    setattr(facts, attribute, [item for page in pages for item in page])
                except Failed:
                    continue
    except (Failed, NotApplicable, WireError) as error:
        if not facts.speaks:
            facts.reason = str(error)
    finally:
        context.close()
    return facts
