"""Size limit of answers: a read-only call returns at most `limits.answer_bytes` of JSON.

The limit is enforced where a result is encoded (`daemon.tools.bound_tool`). A tool whose result has
a place to say that entries were left out cuts its list with `fitting`; any other result that is too
large is refused. Answers of writing tools are not limited: their size follows from the request, and
refusing them would report a committed write as a failure.
"""

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from daemon.tools.errors import Denied

ANSWER_BYTES: Final = 4 * 1024 * 1024

T = TypeVar("T", bound=Struct)

_encoder: Final = msgspec.json.Encoder()


class AnswerTooLarge(Denied):
    """The result of a read-only call exceeds the limit."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the answer is {size} bytes, limits.answer_bytes is {limit}; ask for less (a smaller"
            " limit, an offset, narrower filters) or raise limits.answer_bytes"
        )


def check(size: int, limit: int) -> None:
    if size > limit:
        raise AnswerTooLarge(size, limit)


def fitting(entries: Iterable[T], limit: int, besides: Struct | None = None) -> list[T]:
    """The first entries whose JSON fits the limit beside the rest of the answer.

    The first entry is always included, so that a page is never empty; an answer that is too large
    because of it is refused when it is encoded.
    """
    room = limit - (len(_encoder.encode(besides)) if besides is not None else 0)
    kept: list[T] = []
    for entry in entries:
        room -= len(_encoder.encode(entry)) + 1
        if room < 0 and kept:
            break
        kept.append(entry)
    return kept
