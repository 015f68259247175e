"""Text functions take linear time: four times the text takes about four times as long.

Every compiled pattern at module level and every function that reads text of a caller runs over
adversarial texts. A text four times as long may take at most `GROWTH` times as long; quadratic code
takes sixteen times as long. Processor time is measured, so that other load does not matter. Runs
that stay below `NOISE_SECONDS` pass without a comparison.
"""

import importlib
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

import pytest

import daemon.dialects
import daemon.memory
import daemon.tools
import protocol
import store.ranking
from daemon.dialects.awareness import arguments, rules
from daemon.dialects.awareness.language import detection, keywords, summaries
from daemon.dialects.awareness.tools import init
from daemon.dialects.awareness.writing import drafts, extraction, history
from daemon.tools.token_estimate import estimate
from store import chunking
from store.ranking import snippets, tokenizer

SHORT: Final = 1_500
TIMES: Final = 4
GROWTH: Final = 10.0
NOISE_SECONDS: Final = 0.002
TRIES: Final = 3

#: Pieces that are repeated to make a text. Each defeats some pattern that rescans its input.
PIECES: Final = (
    "a", "a-", "a_", "a.", "a/", "/a", "-/", "~", "A", "A_", "AA-", "AA_", "aA", "Aa", "1", "1.",
    "1-", "a1", " ", "\n", " \n", "\t", "  a", "- ", "*", "**_", "#", "# ", "#a", "@a-", "'", "'a",
    '"', '"a', "`", "“a", "\\", '\\"', '\\\\"', "\\u0000", "{", "[", "]", "}", ":", ": ", "=", ".[",
    "é", "漢", "漢 ", "😀", "a. ", ". ", "user ", "user: ", "user:\n", "> user", "decision ",
    "bug a", "todo ", "to-do", "no ", "no any ", "not ", "not a ", "if once ", "to be ", "blocked ",
    "started ", "still ", "file ", "next ", "in ", "AAAAaaaa", "ab12", "```\n", "```",
    "{\"a\":1}\n",
)  # fmt: skip
#: A sign at the end keeps a pattern from matching to the end.
ENDS: Final = ("", "!", "\0")

#: Patterns that the code only applies at one position, so only `match` is measured.
ANCHORED: Final = frozenset(
    {
        "store.chunking._FENCE[0]",
        "protocol.salvage._STRING[0]",
        "protocol.salvage._SCALAR[0]",
        "protocol.salvage._NESTING[0]",  # its loop ends at the first string without an end
        "protocol.salvage._COLON[0]",
        "protocol.salvage._NEXT[0]",
        "protocol.salvage._OPEN[0]",
        "protocol.choices._STEP[0]",  # reads paths that msgspec wrote, not text of a caller
    }
)

FUNCTIONS: Final[dict[str, Callable[[str], Any]]] = {
    "keywords_of": keywords.keywords_of,
    "keywords_of, ten": lambda text: keywords.keywords_of(text, 10),
    "actor_of": detection.actor_of,
    "event_type_of": detection.event_type_of,
    "status_of": detection.status_of,
    "clip": lambda text: summaries.clip(text, 160),
    "lead": summaries.first_sentence,
    "is_worth_extracting": lambda text: extraction.is_worth_extracting(text, None),
    "history": history.entries_of,
    "drafts": lambda text: drafts.parse_drafts([{"text": text, "timestamp": text, "role": text}]),
    "from_text": arguments.from_text,
    "session_id": lambda text: init.session_id(text, 0),
    "recognise": rules.recognise,
    "estimate": estimate,
    "index_text": tokenizer.index_text,
    "query_terms": tokenizer.query_terms,
    "snippet": lambda text: snippets.Marker(tokenizer.query_terms("user a")).snippet(text),
    "chunks": chunking.chunks,
}


def modules() -> Iterator[ModuleType]:
    yield chunking
    for package in (daemon.dialects, daemon.tools, daemon.memory, store.ranking, protocol):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(found.name)


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for member in value:
            yield from patterns_in(member)
    elif isinstance(value, dict):
        yield from patterns_in(list(value.values()))


def patterns() -> dict[str, re.Pattern[Any]]:
    """Every pattern at module level, by a name that finds it."""
    return {
        f"{module.__name__}.{name}[{number}]": pattern
        for module in modules()
        for name, value in vars(module).items()
        for number, pattern in enumerate(patterns_in(value))
    }


def use_of(pattern: re.Pattern[Any], *, is_anchored: bool = False) -> Callable[[str], Any]:
    def use(text: str) -> None:
        given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
        pattern.match(given)
        if is_anchored:
            return
        pattern.fullmatch(given)
        for _ in pattern.finditer(given):
            pass

    return use


USES: Final = {
    **{name: use_of(each, is_anchored=name in ANCHORED) for name, each in patterns().items()},
    **FUNCTIONS,
}


def seconds(use: Callable[[str], Any], text: str) -> float:
    began = time.thread_time()
    use(text)
    return time.thread_time() - began


def is_linear(use: Callable[[str], Any], piece: str, end: str) -> bool:
    short = piece * (SHORT // len(piece)) + end
    long = piece * (TIMES * SHORT // len(piece)) + end
    for _ in range(TRIES):
        slow = seconds(use, long)
        if slow < NOISE_SECONDS or slow < GROWTH * seconds(use, short):
            return True
    return False


@pytest.mark.parametrize("name", USES)
def test_four_times_the_text_takes_about_four_times_as_long(name: str) -> None:
    texts = ((piece, end) for piece in PIECES for end in ENDS)
    slow = next((text for text in texts if not is_linear(USES[name], *text)), None)
    assert slow is None


def test_the_measure_finds_a_quadratic_pattern() -> None:
    assert not is_linear(use_of(re.compile(r"\b[\w-]+\.[a-z]+\b")), "a-", "")
    assert is_linear(use_of(re.compile(r"\w+")), "a-", "")
