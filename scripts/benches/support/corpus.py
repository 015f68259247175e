"""Corpus of short texts that resemble memories; the same on every run on one machine.

The texts are sentences from installed docstrings (standard library and packages of the
environment). If there are not enough, halves of two sentences are combined.
"""

import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_BORDER = re.compile(r"(?<=[.!?])\s+|\n\s*\n")


def texts(count: int, *, seed: int = 1) -> list[str]:
    """`count` different short texts."""
    rng = random.Random(seed)
    found: dict[str, None] = {}
    for sentence in _sentences():
        found[sentence] = None
        if len(found) > count * 1.2 + 1_000:
            break
    sentences = sorted(found)
    rng.shuffle(sentences)
    chosen = sentences[:count]
    known = set(chosen)
    halves = [sentence.split() for sentence in sentences]
    while len(chosen) < count:
        left, right = rng.choice(halves), rng.choice(halves)
        made = " ".join([*left[: len(left) // 2], *right[len(right) // 2 :]])
        if made not in known:
            known.add(made)
            chosen.append(made)
    return chosen


def _sentences() -> Iterator[str]:
    roots = {Path(sysconfig.get_path("stdlib")), Path(sysconfig.get_path("purelib"))}
    for root in sorted(roots):
        for path in sorted(root.rglob("*.py")):
            if "test" not in path.parts:
                yield from _sentences_of(path)


def _sentences_of(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError, RecursionError):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds):
            for part in _BORDER.split(ast.get_docstring(node, clean=True) or ""):
                words = part.split()
                if (
                    "\0" not in part
                    and 6 <= len(words) <= 30
                    and sum(w.isalpha() for w in words) * 10 >= len(words) * 7
                ):
                    yield " ".join(words)[:240]
