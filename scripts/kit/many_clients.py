"""Many echo clients in one thread, which verify every response.

Each `Talker` keeps a window of echo calls in flight. Every call carries a text that is unique in
the run, so a response to the wrong client, with the wrong id or sent twice is detected. Errors are
counted by kind; the caller decides which ones are acceptable.
"""

import contextlib
import os
import selectors
import time
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from scripts.kit import stdio_client

CHUNK: Final = 1 << 16
TICK: Final = 0.005


class WrongResponse(Exception):
    """A response went to the wrong client, arrived twice or was unsolicited."""


class _Answer(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


_decode: Final = msgspec.json.Decoder(_Answer).decode


@dataclass
class Talker:
    """One client: its descriptors, its calls in flight and its counters."""

    name: str
    read: int
    write: int
    window: int
    interval: float = 0.0
    filler: str = ""
    pending: dict[int, tuple[str, float]] = field(default_factory=dict)
    waits: "array[float]" = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    results: int = 0
    closed: bool = False
    is_open: bool = False
    _number: int = 0
    _out: bytearray = field(default_factory=bytearray)
    _rest: bytes = b""
    _next: float = 0.0

    def open(self) -> None:
        """Queue the handshake; its response is awaited like any other."""
        os.set_blocking(self.read, False)
        os.set_blocking(self.write, False)
        self.pending[0] = ("", time.perf_counter())
        self._out += stdio_client.initialize(0) + stdio_client.INITIALIZED

    def ask(self, now: float) -> None:
        """Fill the window, no faster than the interval allows."""
        if not self.is_open or self.closed:
            return
        while len(self.pending) < self.window and now >= self._next:
            self._number += 1
            text = f"{self.name}/{self._number}{self.filler}"
            self.pending[self._number] = (text, now)
            self._out += stdio_client.echo(self._number, text)
            self._next = now + self.interval

    def flush(self) -> bool:
        """Write without blocking; return whether data is left."""
        if self._out and not self.closed:
            try:
                written = os.write(self.write, self._out)
            except BlockingIOError:
                return True
            except (BrokenPipeError, ConnectionResetError):
                self.closed = True
                return False
            del self._out[:written]
        return bool(self._out)

    def hear(self) -> None:
        try:
            chunk = os.read(self.read, CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            self.closed = True
            return
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        now = time.perf_counter()
        for line in lines:
            self._answer(line, now)

    def _answer(self, line: bytes, now: float) -> None:
        answer = _decode(line)
        if answer.method is not None and answer.id is None:
            return
        if not isinstance(answer.id, int) or answer.id not in self.pending:
            raise WrongResponse(
                f"{self.name} never asked for this, or had it before: {line[:300]!r}"
            )
        text, sent = self.pending.pop(answer.id)
        self.waits.append(now - sent)
        if answer.id == 0:
            if answer.result is None:
                raise WrongResponse(f"{self.name} could not open: {line[:300]!r}")
            self.is_open = True
            return
        if answer.error is not None:
            data = answer.error.get("data")
            kind = data.get("kind") if isinstance(data, dict) else None
            self.errors[f"{answer.error.get('code')} {kind or answer.error.get('message')}"] += 1
            return
        content = (answer.result or {}).get("content") or [{}]
        if content[0].get("text") != text:
            raise WrongResponse(f"{self.name} asked for {text[:80]!r} and got {line[:300]!r}")
        self.results += 1


def talk(
    talkers: Sequence[Talker],
    seconds: float,
    *,
    patience: float = 20.0,
    tick: Callable[[float], None] = lambda now: None,
) -> None:
    """Let all clients call for this long, then wait for the responses in flight.

    `tick` is called every few milliseconds with the time since the start. Returns when no call is
    in flight or `patience` has passed; calls without a response remain in `Talker.pending`.
    """
    with contextlib.closing(selectors.DefaultSelector()) as selector:
        for talker in talkers:
            if not talker.is_open:
                talker.open()
            selector.register(talker.read, selectors.EVENT_READ, talker)
        began = time.perf_counter()
        while True:
            now = time.perf_counter()
            asking = now < began + seconds
            tick(now - began)
            for talker in talkers:
                if asking:
                    talker.ask(now)
                talker.flush()
            if not asking and not any(each.pending for each in talkers if not each.closed):
                return
            if now > began + seconds + patience:
                return
            for key, _ in selector.select(TICK):
                talker = key.data
                talker.hear()
                if asking:
                    talker.ask(time.perf_counter())
                talker.flush()
                if talker.closed:
                    selector.unregister(talker.read)


def percentiles(talkers: Sequence[Talker]) -> tuple[float, float]:
    """The median and the 99th percentile of all latencies, in seconds."""
    waits = sorted(wait for talker in talkers for wait in talker.waits)
    if not waits:
        return float("nan"), float("nan")
    return waits[len(waits) // 2], waits[int(len(waits) * 0.99)]


def lost(talkers: Sequence[Talker]) -> int:
    """The number of calls that were never answered."""
    return sum(len(talker.pending) for talker in talkers)


def errors(talkers: Sequence[Talker]) -> Counter[str]:
    total: Counter[str] = Counter()
    for talker in talkers:
        total += talker.errors
    return total
