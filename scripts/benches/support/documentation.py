"""Pages of documentation for the recall bench: docstrings of the standard library.

A page is a docstring of at least forty words. Its first sentence is removed and becomes the query.
The sources are parsed, not imported, and the texts are not stored.
"""

import ast
import inspect
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LEAST_WORDS = 40
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n\s*\n")
_SKIPPED = {"site-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo", "__pycache__"}


class Page(NamedTuple):
    name: str
    summary: str
    text: str


def pages() -> list[Page]:
    """All pages in a fixed order, without duplicate summaries or texts."""
    found: dict[str, Page] = {}
    texts: set[str] = set()
    for path in _sources(Path(sysconfig.get_path("stdlib"))):
        for page in _pages_of(path):
            if page.summary.casefold() not in found and page.text not in texts:
                found[page.summary.casefold()] = page
                texts.add(page.text)
    return list(found.values())


def _sources(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*.py")):
        if not _SKIPPED & set(path.relative_to(root).parts):
            yield path


def _pages_of(path: Path) -> Iterator[Page]:
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if not isinstance(node, kinds):
            continue
        text = ast.get_docstring(node, clean=True)
        if not text or len(text.split()) < LEAST_WORDS:
            continue
        parts = _SENTENCE.split(inspect.cleandoc(text), maxsplit=1)
        summary = " ".join(parts[0].split())
        if len(parts) == 2 and 4 <= len(summary.split()) <= 30:
            name = getattr(node, "name", path.stem)
            yield Page(f"{path.stem}.{name}.{getattr(node, 'lineno', 0)}", summary, parts[1])
