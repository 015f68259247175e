#!/usr/bin/env python3
"""Measures the English of docstrings, comments and Markdown: free relative clauses per 1,000 words.

A free relative clause has no noun before it: "what is read is checked", "who asks is told". Readers
need a second look at such a sentence. Good code bases use them 0 to 0.5 times in 1,000 words;
`scripts/check` fails above one. Questions, code and quotations do not count.

    scripts/prose.py               print the rate of each package, and fail above the limit
    scripts/prose.py --list        print every clause that was found
    scripts/prose.py PATH …        look at these files and folders only
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
LIMIT: Final = 1.0

_FENCE: Final = re.compile(r"(?ms)^\s*```.*?^\s*```\s*$")
_NOT_PROSE: Final = re.compile(r'`[^`]*`|"[^"]*"|“[^”]*”|\]\([^)]*\)|https?://\S+')
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*[-*|#]|\|")
# "Who" after a noun is an ordinary relative clause ("a client who asks"). After one of these words,
# or at the start of a sentence or clause, there is no noun that it belongs to.
_NO_NOUN: Final = (
    "about|and|ask|asks|at|by|decide|decides|for|from|how|in|is|know|knows|of|on|or|say|says|see|"
    "show|shows|tell|tells|than|that|to|when|where|with"
)
_FREE: Final = re.compile(
    rf"\b(?:what|whatever|whoever)\b|(?:^|[,;:(–—]\s*|\b(?:{_NO_NOUN})\s+)who\b",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """One free relative clause, and the place where it stands."""

    path: Path
    line: int
    text: str


class Measure(NamedTuple):
    words: int
    found: list[Found]


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file: (line number, text)."""
    source = path.read_text()
    if path.suffix == ".md":
        blanked = _FENCE.sub(lambda match: "\n" * match.group().count("\n"), source)
        line = 1
        for paragraph in re.split(r"(\n\s*\n)", blanked):
            yield line, paragraph
            line += paragraph.count("\n")
    elif path.suffix == ".py":
        yield from _docstrings(source)
        yield from _comments(source)
    else:
        yield from _lines_of_comment(source.split("\n"))


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text


def _comments(source: str) -> Iterator[tuple[int, str]]:
    """Comments; the lines of one that continues over several lines belong together."""
    lines: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0]] = token.string
    yield from _blocks(lines)


def _lines_of_comment(source: list[str]) -> Iterator[tuple[int, str]]:
    lines = {
        number: line.strip()
        for number, line in enumerate(source, 1)
        if line.strip().startswith(("#", "--", "//")) and not line.startswith("#!")
    }
    yield from _blocks(lines)


def _blocks(lines: dict[int, str]) -> Iterator[tuple[int, str]]:
    start, block = 0, ""
    for number, text in lines.items():
        plain = re.sub(r"^[#/:-]+\s?|noqa: \S+|type: ignore\S*", "", text).strip()
        if block and number - 1 in lines:
            block += "\n" + plain
            continue
        if block:
            yield start, block
        start, block = number, plain
    if block:
        yield start, block


def measure(paths: list[Path]) -> Measure:
    """The words of these files, and the free relative clauses in them."""
    words = 0
    found: list[Found] = []
    for path in paths:
        for line, text in prose_of(path):
            plain = _NOT_PROSE.sub("X", text)
            words += len(_WORD.findall(plain))
            for sentence in _SENTENCE.split(plain):
                if sentence.rstrip().endswith("?"):
                    continue
                flat = " ".join(sentence.split()).strip("*_#>- ")
                found += [Found(path, line, flat) for _ in _FREE.finditer(flat)]
    return Measure(words, found)


def files(names: list[str]) -> list[Path]:
    """The files with prose that git tracks or could track, below these places."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    kinds = {".py", ".md", ".sql", ".mjs"}
    paths = [ROOT / name for name in listed.stdout.split("\n") if name]
    return [
        path
        for path in paths
        if path.is_file()
        and (path.suffix in kinds or (not path.suffix and path.parent.name in ("scripts", ".ci")))
        and path.name != "LICENSE"
    ]


def main(arguments: list[str]) -> int:
    names = [argument for argument in arguments if not argument.startswith("--")]
    groups: dict[str, list[Path]] = {}
    for path in files(names):
        groups.setdefault(path.relative_to(ROOT).parts[0], []).append(path)
    total = Measure(0, [])
    for name, paths in sorted(groups.items()):
        result = measure(paths)
        total = Measure(total.words + result.words, total.found + result.found)
        if "--list" in arguments:
            for each in result.found:
                print(f"{each.path.relative_to(ROOT)}:{each.line}: {each.text[:140]}")
        else:
            rate = 1000 * len(result.found) / max(1, result.words)
            print(f"{name:20} {rate:5.2f}  ({len(result.found)} in {result.words} words)")
    rate = 1000 * len(total.found) / max(1, total.words)
    print(f"free relative clauses: {rate:.2f} per 1,000 words (at most {LIMIT:g})")
    return 0 if rate <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
