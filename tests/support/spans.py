"""A tracer that records the begin and the end of each span."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class Spans:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str | None]] = []

    @contextmanager
    def _span(self, name: str, parent: str | None) -> Iterator[None]:
        self.events.append(("begin", name, parent))
        try:
            yield
        finally:
            self.events.append(("end", name, parent))

    def span(self, name: str, traceparent: str | None) -> AbstractContextManager[Any]:
        return self._span(name, traceparent)
