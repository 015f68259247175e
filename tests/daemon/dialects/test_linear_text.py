"""Text functions take linear time: four times the text takes about four times as long.

Every compiled pattern at module level and every function of one text runs over adversarial texts,
in all three packages; a new one is found without a change here. A text four times as long may take
at most `GROWTH` times as long; quadratic code takes sixteen times as long. Processor time is
measured, so that other load does not matter. Runs that stay below `NOISE_SECONDS` pass without a
comparison; a run that takes longer than `LIMIT_SECONDS` fails, so that code of exponential time
cannot stop the tests. Patterns inside functions would escape the search, so a test refuses them.
"""

import ast
import importlib
import inspect
import math
import pkgutil
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

import daemon
import protocol
import store
from daemon.dialects.awareness import arguments, rules
from daemon.dialects.awareness.language import detection, keywords, summaries
from daemon.dialects.awareness.tools import init
from daemon.dialects.awareness.writing import drafts, extraction, history
from store import chunking
from store.ranking import snippets, tokenizer

SHORT: Final = 1_500
TIMES: Final = 4
GROWTH: Final = 10.0
NOISE_SECONDS: Final = 0.002
LIMIT_SECONDS: Final = 3.0
TRIES: Final = 3

#: Pieces that are repeated to make a text. Each defeats some pattern that rescans its input.
PIECES: Final = (
    "a", "a-", "a_", "a.", "a/", "/a", "-/", "~", "A", "A_", "AA-", "AA_", "aA", "Aa", "1", "1.",
    "1-", "a1", " ", "\n", " \n", "\t", "  a", "- ", "*", "**_", "#", "# ", "#a", "@a-", "'", "'a",
    '"', '"a', "`", "“a", "\\", '\\"', '\\\\"', "\\u0000", "{", "[", "]", "}", ":", ": ", "=", ".[",
    "é", "漢", "漢 ", "😀", "a. ", ". ", "user ", "user: ", "user:\n", "> user", "decision ",
    "bug a", "todo ", "to-do", "no ", "no any ", "not ", "not a ", "if once ", "to be ", "blocked ",
    "started ", "still ", "file ", "next ", "in ", "AAAAaaaa", "ab12", "```\n", "```",
    "{\"a\":1}\n", "/*", "//", "<!--", "://", "a@", "|",
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
        "daemon.config.sources._URL[0]",
        "daemon.config.toml_lines._HEADER[0]",
        "daemon.config.toml_lines._KEY[0]",
        "daemon.setup.formats.jsonc_parser._STRING[0]",
        "daemon.setup.formats.toml_editor._ERROR[0]",
        "daemon.setup.formats.toml_editor._TOKEN[0]",
        "daemon.setup.formats.toml_editor._KEY_PART[0]",
        "store.blocks._UNDERLINE[0]",
        "protocol.choices._STEP[0]",  # reads paths that msgspec wrote, not text of a caller
    }
)

#: Functions that must not run here.
LEFT_OUT: Final = frozenset(
    {
        "daemon.operations.logs.configure",  # changes the process
        "daemon.dialects.registry.load",  # imports a module of that name
        "daemon.commandline.completion.script",  # takes a name out of three, not a text
        # ruamel.yaml is not linear. It reads only the user's own client files, at their request.
        "daemon.setup.formats.yaml_parser.load",
        "daemon.setup.formats.yaml_parser.compose",
        "daemon.setup.formats.yaml_editor.read",
        # Python's HTML parser is not linear. It runs in a child process with a time limit.
        "daemon.sources.parsers.html.parse_html",
        "store.sqlite.migrate.statements",  # reads our own migrations, not text of a caller
    }
)

#: Functions with several arguments or of several texts, which the search does not find.
CHOSEN: Final[dict[str, Callable[[str], Any]]] = {
    "keywords_of, ten": lambda text: keywords.keywords_of(text, 10),
    "clip": lambda text: summaries.clip(text, 160),
    "is_worth_extracting": lambda text: extraction.is_worth_extracting(text, None),
    "history": history.entries_of,
    "drafts": lambda text: drafts.parse_drafts([{"text": text, "timestamp": text, "role": text}]),
    "from_text": arguments.from_text,
    "session_id": lambda text: init.session_id(text, 0),
    "recognise": rules.recognise,
    "snippet": lambda text: snippets.Marker(tokenizer.query_terms("user a")).snippet(text),
    "chunks": chunking.chunks,
    "status_of": detection.status_of,
}


@cache
def modules() -> tuple[ModuleType, ...]:
    return tuple(
        importlib.import_module(found.name)
        for package in (daemon, protocol, store)
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not found.name.endswith("__main__")
    )


def reads_one_text(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    required = [each for each in parameters if each.default is each.empty]
    return len(required) == 1 and (
        required[0].kind is required[0].POSITIONAL_OR_KEYWORD and required[0].annotation is str
    )


def use_of_function(function: Callable[[str], Any]) -> Callable[[str], Any]:
    def use(text: str) -> None:
        with suppress(Exception):  # a refusal takes time too
            found = function(text)
            if isinstance(found, Iterator):
                list(found)

    return use


def functions() -> dict[str, Callable[[str], Any]]:
    """Every function of one text, by its full name."""
    return {
        f"{module.__name__}.{name}": use_of_function(value)
        for module in modules()
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__ == module.__name__
        and not inspect.iscoroutinefunction(value)
        and reads_one_text(value)
        and f"{module.__name__}.{name}" not in LEFT_OUT
    }


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
    **functions(),
    **CHOSEN,
}


class TooSlowError(BaseException):
    """A run took longer than `LIMIT_SECONDS`. Not an `Exception`, which a use may suppress."""


def _stop(*_: object) -> None:
    raise TooSlowError


@pytest.fixture(autouse=True)
def _limited() -> Iterator[None]:
    """Makes the timer of `seconds` end a run."""
    before = signal.signal(signal.SIGVTALRM, _stop)
    yield
    signal.signal(signal.SIGVTALRM, before)


def seconds(use: Callable[[str], Any], text: str) -> float:
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    try:
        began = time.thread_time()
        use(text)
        return time.thread_time() - began
    except TooSlowError:
        return math.inf
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def is_linear(use: Callable[[str], Any], piece: str, end: str) -> bool:
    short = piece * (SHORT // len(piece)) + end
    long = piece * (TIMES * SHORT // len(piece)) + end
    for _ in range(TRIES):
        slow = seconds(use, long)
        if math.isinf(slow):
            return False
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


def test_the_measure_stops_a_pattern_of_exponential_time() -> None:
    assert not is_linear(use_of(re.compile(r"(?:a+)+")), "a", "!")


def test_the_search_finds_functions_of_one_text() -> None:
    assert {
        "daemon.dialects.awareness.language.keywords.keywords_of",
        "daemon.tools.token_estimate.estimate",
        "store.ranking.tokenizer.index_text",
    } <= functions().keys()


def patterns_inside_functions(source: str) -> list[int]:
    """The lines where a function calls the module `re` with a text of a pattern."""
    return [
        node.lineno
        for function in ast.walk(ast.parse(source))
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "re"
        and node.func.attr != "escape"
    ]


#: Patterns that depend on an argument, or are read from our own error messages.
INSIDE: Final = frozenset({"store.ranking.snippets"})


def test_patterns_are_compiled_at_module_level_where_this_test_finds_them() -> None:
    inside = {
        module.__name__: patterns_inside_functions(Path(module.__file__).read_text("utf-8"))
        for module in modules()
        if module.__file__ is not None and module.__name__ not in INSIDE
    }
    assert {name: lines for name, lines in inside.items() if lines} == {}
    assert patterns_inside_functions("def f(x):\n    return re.sub('a+', '', x)") == [2]
