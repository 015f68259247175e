"""Metrics in the Prometheus text format.

The number of labels is bounded: methods, tools and routes come from our own tables, statuses and
outcomes from short lists. Anything else is counted under "?".
"""

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

#: Upper bounds of the latency histograms, in seconds.
BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

Labels = tuple[str, ...]


class Histogram:
    """Counts by bucket, and the sum."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds


class Meter:
    """Counters and histograms of calls and HTTP requests."""

    def __init__(self) -> None:
        self._calls: dict[Labels, int] = {}
        self._call_seconds: dict[Labels, Histogram] = {}
        self._requests: dict[Labels, int] = {}
        self._request_seconds: dict[Labels, Histogram] = {}

    def call_done(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a finished MCP or REST call; `method` and `tool` are registered names."""
        labels = (method, tool, outcome)
        self._calls[labels] = self._calls.get(labels, 0) + 1
        histogram = self._call_seconds.get((method, tool))
        if histogram is None:
            histogram = self._call_seconds[(method, tool)] = Histogram()
        histogram.add(seconds)

    def http_done(self, route: str, verb: str, status: int, seconds: float) -> None:
        """Count a finished HTTP request; a stream counts when it closes."""
        labels = (route, verb, str(status))
        self._requests[labels] = self._requests.get(labels, 0) + 1
        histogram = self._request_seconds.get((route,))
        if histogram is None:
            histogram = self._request_seconds[(route,)] = Histogram()
        histogram.add(seconds)

    def lines(self) -> Iterable[str]:
        """The lines of all counters and histograms."""
        yield from counter(
            "recalld_calls_total",
            "Calls by method, tool and outcome (ok, error).",
            ("method", "tool", "outcome"),
            self._calls,
        )
        yield from histogram(
            "recalld_call_seconds",
            "How long calls took.",
            ("method", "tool"),
            self._call_seconds,
        )
        yield from counter(
            "recalld_http_requests_total",
            "HTTP requests by route, verb and status.",
            ("route", "verb", "status"),
            self._requests,
        )
        yield from histogram(
            "recalld_http_request_seconds",
            "How long HTTP requests took, streams included.",
            ("route",),
            self._request_seconds,
        )


def counter(name: str, about: str, labels: Labels, values: dict[Labels, int]) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} counter"
    for key in sorted(values):
        yield f"{name}{_labels(labels, key)} {values[key]}"


def gauge(name: str, about: str, value: float, **labels: str) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} gauge"
    yield f"{name}{_labels(tuple(labels), tuple(labels.values()))} {value:g}"


def histogram(
    name: str, about: str, labels: Labels, values: dict[Labels, Histogram]
) -> Iterable[str]:
    yield f"# HELP {name} {about}"
    yield f"# TYPE {name} histogram"
    for key in sorted(values):
        found = values[key]
        count = 0
        for bound, more in zip((*BUCKETS, None), found.counts, strict=True):
            count += more
            edge = "+Inf" if bound is None else f"{bound:g}"
            yield f"{name}_bucket{_labels((*labels, 'le'), (*key, edge))} {count}"
        yield f"{name}_sum{_labels(labels, key)} {found.total:.6f}"
        yield f"{name}_count{_labels(labels, key)} {count}"


def _labels(names: Labels, values: Labels) -> str:
    if not names:
        return ""
    pairs = (f'{name}="{_escape(value)}"' for name, value in zip(names, values, strict=True))
    return "{" + ",".join(pairs) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
