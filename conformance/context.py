"""The argument of every check: connections in its revision, facts about the server, and roles.

Opening a connection can take a second (a child that starts slowly), so cases reuse connections
that are clean: no request is in flight, no lasting state was changed, and a marker is answered.
`peer` is the connection that most cases share. `fresh` returns one that only this case uses. `raw`
returns one without a handshake. Connections that are not clean at the end of a case are closed.
"""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from conformance import revisions, roles
from conformance.check import SCANS, Exchange, Failed, NotApplicable, RateLimited, SetupFailed
from conformance.client.frames import dump, show
from conformance.client.observer import Observer, ReceivedFrame, Sent
from conformance.client.peer import Peer
from conformance.client.results import result_of
from conformance.client.stdio import StdioEndpoint
from conformance.client.wire import Endpoint, NoServer, Pace, Wire, WireError

KEPT_BYTES = 65536
KEPT_EXCHANGES = 24


@dataclass
class Facts:
    """Facts about the server in one revision, learned before the first case."""

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
    stderr: bytes = b""


@dataclass
class Finding:
    """The violations that a scan has found so far."""

    looked: int = 0
    wrong: int = 0
    first: str = ""
    evidence: list[Exchange] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    """Settings of a run, from the command line."""

    timeout: float = 5.0
    case_seconds: float = 40.0
    quiet_seconds: float = 0.4
    keep_alive_seconds: float = 30.0
    """The longest time without a keep-alive on an idle stream."""
    dribble_seconds: float = 35.0
    """The longest time that a server may wait for a request sent byte by byte."""
    idle_seconds: float | None = None
    """The server's expiry time for idle sessions."""
    start_seconds: float = 60.0
    """The longest time until the first response of a server that is starting."""
    vouched: roles.Vouched = field(default_factory=roles.Vouched)
    pace: Pace = field(default_factory=Pace)
    repeat: bool = True
    """Whether to repeat a failure alone before it is reported."""
    keep_evidence: bool = False
    """Whether to keep the messages of passed cases too."""
    spoken: frozenset[str] = frozenset()
    """Revisions known to be supported, in addition to those that the run detects."""


class Context(Observer):
    """The connections and findings of one revision."""

    def __init__(self, endpoint: Endpoint, facts: Facts, settings: Settings) -> None:
        self.endpoint = endpoint
        self.facts = facts
        self.settings = settings
        self.revision = facts.revision
        self.findings: dict[str, Finding] = {name: Finding() for name in SCANS}
        self.evidence: list[Exchange] = []
        self.stderr = b""
        self.toured = False
        self.patience = 1.0
        self.long_waits: dict[str, Future[None]] = {}
        """Long waits that run in the background while other cases are tried."""
        self._shared: Peer | None = None
        self._opened: list[Peer] = []
        self._used: set[Peer] = set()
        """The connections that the current case has used."""
        self._idle: dict[bytes, list[Peer]] = {}
        self._deadline = float("inf")
        self._count = 0

    # -- facts ------------------------------------------------------------------------------------

    @property
    def modern(self) -> bool:
        return self.revision in revisions.MODERN

    @property
    def timeout(self) -> float:
        """The time for a response; longer when a failure is repeated, in case of a busy machine."""
        return self.settings.timeout * self.patience

    def offers(self, capability: str) -> bool:
        return isinstance(self.facts.capabilities.get(capability), dict)

    def require(self, capability: str, flag: str | None = None) -> None:
        """Continue only if the server declares the capability (and the flag in it)."""
        if not self.offers(capability):
            raise NotApplicable(f"the server does not declare the {capability} capability")
        if flag is not None and self.facts.capabilities[capability].get(flag) is not True:
            raise NotApplicable(f"the server does not declare {capability}.{flag}")

    def has_role(self, role: str) -> roles.Role | None:
        return roles.find(role, self.facts.tools, self.settings.vouched)

    def role(self, role: str) -> roles.Role:
        """The tool that plays a role. Not applicable if the server has none."""
        found = self.has_role(role)
        if found is None:
            raise NotApplicable(f"no tool of this server plays the role {role!r}")
        return found

    def slow(self, seconds: float, steps: int | None = None) -> dict[str, Any]:
        """Parameters of a `tools/call` that takes this long."""
        role = self.role("slow")
        return {"name": role.tool, "arguments": role.arguments(seconds=seconds, steps=steps)}

    def echo(self, text: str) -> dict[str, Any]:
        role = self.role("echo")
        return {"name": role.tool, "arguments": role.arguments(text=text)}

    def stdio(self) -> StdioEndpoint:
        if not isinstance(self.endpoint, StdioEndpoint):
            raise NotApplicable("applies only to a server that this suite starts")
        self._make_room()
        return self.endpoint

    # -- connections ------------------------------------------------------------------------------

    def adopt(self, wire: Wire, revision: str | None = None) -> Peer:
        """A peer on a wire that the case opened."""
        wire.deadline = self._deadline
        wire.pace = self.settings.pace
        self._count += 1
        number = self._count
        wire.speak(revision or self.revision, lambda sent, head: self._heard(sent, head, number))
        peer = Peer(
            wire,
            revision or self.revision,
            self,
            number=number,
            timeout=self.timeout,
            quiet=self.settings.quiet_seconds,
            first_timeout=self.timeout + 3 * self.facts.startup_seconds,
        )
        peer.known_capabilities = self.facts.capabilities
        peer.tools = {str(tool.get("name")): tool for tool in self.facts.tools}
        peer.over_http = self.endpoint.transport == "http"
        self._opened.append(peer)
        return peer

    def raw(self, revision: str | None = None) -> Peer:
        """A new connection without a handshake."""
        self._make_room()
        try:
            return self.adopt(self.endpoint.connect(), revision)
        except NoServer as error:
            raise SetupFailed(str(error)) from error

    def _make_room(self) -> None:
        """Close other connections first if the server allows only one at a time."""
        if not self.endpoint.exclusive:
            return
        if any(not peer.wire.ended for peer in self._used):
            raise NotApplicable("needs two connections, and the server allows only one")
        for peer in [*self._opened, *(p for idle in self._idle.values() for p in idle)]:
            self._close(peer)
        self._opened.clear()
        self._idle.clear()
        if self._shared is not None:
            self._close(self._shared)
            self._shared = None

    def fresh(
        self, revision: str | None = None, *, capabilities: dict[str, Any] | None = None
    ) -> Peer:
        """A connection that only this case uses, with the handshake of the revision."""
        kind = dump([revision or self.revision, capabilities or {}])
        idle = self._idle.get(kind)
        if idle:
            peer = idle.pop()
            peer.wire.deadline = self._deadline
            self._opened.append(peer)
            self._used.add(peer)
            return peer
        peer = self.open(self.raw(revision), capabilities)
        peer.kind = kind
        return peer

    def open(self, peer: Peer, capabilities: dict[str, Any] | None = None) -> Peer:
        try:
            if peer.modern:
                peer.capabilities = capabilities or {}
                peer.marker()  # no handshake: wait here for a child that is still starting
            else:
                result_of(peer.initialize(capabilities=capabilities), "initialize")
        except (Failed, WireError) as error:
            self.stderr = peer.wire.stderr_tail()
            raise SetupFailed(f"no handshake: {error}") from error
        self._used.add(peer)
        return peer

    @property
    def peer(self) -> Peer:
        """The shared connection. A case must leave it clean."""
        if self._shared is None:
            self._shared = self.fresh()
            self._opened.remove(self._shared)
        self._shared.wire.deadline = self._deadline
        self._used.add(self._shared)
        return self._shared

    # -- start and end of a case ------------------------------------------------------------------

    def begin(self) -> None:
        self._deadline = time.monotonic() + self.settings.case_seconds * self.patience
        self.evidence = []
        self.stderr = b""
        self._used.clear()
        if self._shared is not None:
            self._shared.wire.deadline = self._deadline

    def end(self, *, passed: bool) -> None:
        """Close the connections of the case, except clean ones that can be reused."""
        self._deadline = float("inf")
        # After a failure, keep connections only on stdio, where a new one costs a process.
        keep = passed or self.endpoint.transport == "stdio"
        for peer in self._opened:
            if keep and peer.kind is not None and self._is_clean(peer, passed=passed):
                self._idle.setdefault(peer.kind, []).append(peer)
            else:
                self._close(peer)
        self._opened.clear()
        if self._shared is not None and not (keep and self._is_clean(self._shared, passed=passed)):
            self._close(self._shared)
            self._shared = None

    def _is_clean(self, peer: Peer, *, passed: bool) -> bool:
        """Whether the connection is as good as new for the next case.

        After a failed case, wait a moment for a late response.
        """
        before = len(self.evidence)
        peer.wire.deadline = time.monotonic() + self.timeout
        try:
            if not peer.wire.ended and self.endpoint.transport == "stdio":
                peer.restore()
            if not peer.is_clean:
                return False
            until = time.monotonic() + (0.0 if passed else self.settings.quiet_seconds)
            while (left := until - time.monotonic()) > 0:
                peer.next(left)
            peer.marker()
        except (Failed, RateLimited, WireError):
            return False
        del self.evidence[before:]
        peer.discard_inbox()
        return True

    def _close(self, peer: Peer) -> None:
        peer.wire.close()
        if tail := peer.wire.stderr_tail():
            self.stderr = tail

    def forget_connections(self) -> None:
        """Close every connection, so that the next case starts alone."""
        for peers in self._idle.values():
            for peer in peers:
                self._close(peer)
        self._idle.clear()
        if self._shared is not None:
            self._close(self._shared)
            self._shared = None

    def close(self) -> None:
        self.end(passed=False)
        self.forget_connections()

    # -- observer ---------------------------------------------------------------------------------

    def _note(self, sent: bool, data: bytes, connection: int, head: str = "") -> Exchange:
        exchange = Exchange(sent, data[:KEPT_BYTES], len(data), connection, head)
        self.evidence.append(exchange)
        if len(self.evidence) > 2 * KEPT_EXCHANGES:
            # Keep the beginning (the set-up of the case) and the end (the failure).
            del self.evidence[KEPT_EXCHANGES // 2 : -KEPT_EXCHANGES]
        return exchange

    def _heard(self, sent: bool, head: bytes, connection: int) -> None:
        """Record the head of an HTTP request or response; called by the relay's threads."""
        self._note(sent, b"", connection, head.decode("utf-8", "replace"))

    def record(self, sent: bool, data: bytes, head: str = "") -> None:
        """Record data of a connection without a peer as evidence."""
        self._note(sent, data, 0, head)

    def sent(self, peer: Peer, data: bytes) -> None:
        self._note(True, data, peer.number)

    def received(self, received: ReceivedFrame) -> None:
        exchange = self._note(False, received.frame.raw, received.peer.number)
        if received.revision != self.revision or not received.peer.scanned:
            return
        for name, look in SCANS.items():
            if not _is_fair(name, received):
                continue
            try:
                verdict = look(received)
            except (TypeError, KeyError, AttributeError, ValueError) as error:
                verdict = f"the scan could not read it: {error!r}"
            if verdict is None:
                continue
            finding = self.findings[name]
            finding.looked += 1
            if isinstance(verdict, str):
                finding.wrong += 1
                if not finding.first:
                    finding.first = f"{verdict}: {show(received.frame.raw, 200)}"
                    finding.evidence = [*_asked(received.sent, received.peer.number), exchange]


ALWAYS = frozenset(("J01", "J04", "J05", "F02b", "F03a", "F23a", "G02"))
"""Scans that apply to every frame, whatever was sent before."""


def _is_fair(scan: str, received: ReceivedFrame) -> bool:
    """Whether a scan may judge a frame: not if it answers something malformed on purpose."""
    if scan in ALWAYS:
        return True
    if received.frame.kind in ("result", "error"):
        return received.sent is not None and received.sent.honest and not received.peer.spoiled
    return not received.peer.spoiled


def _asked(sent: Sent | None, number: int) -> list[Exchange]:
    if sent is None:
        return []
    return [Exchange(True, sent.raw[:KEPT_BYTES], len(sent.raw), number)]
