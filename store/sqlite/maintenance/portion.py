"""Progress of an operation with several steps, counted in thousandths of the whole.

The steps count different things (pages, rows, checks), so their counts cannot be added. Each step
gets a range of the thousandths, and its own counts are mapped to that range.
"""

from typing import Final

from store.engine import Progress

WHOLE: Final = 1_000


def ignore(done: int, total: int) -> None:
    """Progress that nobody wants."""


def portion(progress: Progress, first: int, last: int) -> Progress:
    """Progress of a step that moves the whole from `first` to `last` thousandths."""

    def move(done: int, total: int) -> None:
        share = min(done, total) / total if total > 0 else 1.0
        progress(first + int((last - first) * share), WHOLE)

    return move
