#!/usr/bin/env python3
"""Measures the English of docstrings, comments and Markdown.

The measure is the number of free relative clauses per 1,000 words. A free relative clause begins
with "what", "whatever", "who" or "whoever" and has no noun that it belongs to: "what is read is
checked", "who asks is told". Readers often need a second look at such a sentence. h11, uvicorn,
httpx and anyio have between 0 and 0.5; `scripts/check` fails above 1. Indirect questions ("decides
what to do") count as well, because a program cannot tell the two apart. Direct questions, code and
quotations do not count.

A second figure counts phrases that are idioms or that hide the acting part. It has no limit.

    scripts/prose.py               print both figures for each package; fail above the limit
    scripts/prose.py --list        print every clause
    scripts/prose.py --idioms      print every idiom
    scripts/prose.py PATH …        measure only these files and folders
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

#: File types with prose, and the mark that begins a comment; None: Markdown and Python.
KINDS: Final = {".md": None, ".py": None, ".sql": "--", ".mjs": "//", ".toml": "#", "": "#"}

_FENCE: Final = re.compile(r"(?ms)^\s*```.*?^\s*```\s*$")
#: An indented block after an empty line, as in reStructuredText.
_INDENTED: Final = re.compile(r"(?m)(?:\A|\n[ \t]*\n)((?: {4,}\S.*(?:\n|\Z)|[ \t]*\n)+)")
# A quotation is short. Without the bound, a single quotation mark would hide the rest of the text.
_NOT_PROSE: Final = re.compile(
    r'``?[^`]+``?|"[^"]{0,200}"|“[^”]{0,200}”|\]\([^)]*\)|https?://\S+|<!--|-->'
)
#: Stands for code or a quotation: a noun to the reader, and not a word to count.
_PLACEHOLDER: Final = "§"
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'’-]*")
_SENTENCE: Final = re.compile(r"(?<=[.!?:;])\s+|\n\s*\n|\n\s*(?:[-*|#]|\d+\.)\s|\|")
# "Who" after a noun begins an ordinary relative clause ("a client who asks"). After one of these
# words, or at the start of a sentence or clause, it has no noun.
_NO_NOUN: Final = (
    "about|after|and|are|as|ask|asked|asks|at|be|because|before|but|by|check|checks|decide|decides|"
    "else|find|finds|for|from|how|if|in|into|is|knew|know|knowing|known|knows|learn|learns|not|of|"
    "on|only|or|out|over|said|say|says|see|sees|show|shows|so|tell|telling|tells|than|that|then|"
    "to|told|until|was|were|when|where|whether|while|with|without"
)
_FREE: Final = re.compile(
    r"\b(?:what|whatever|whatsoever|whoever|whomever)\b"
    r"|(?:^|[;:(–—…]\s*)who(?:m|se)?\b"
    rf"|(?:,\s+|\b(?:{_NO_NOUN})\s+)who\b"
    r"|\b(?:about|ask|asks|know|knows|say|says|tell|tells) whose\b",
    re.IGNORECASE,
)
_IDIOM: Final = re.compile(
    r"\b(?:somebody|anybody|nobody|whose business|(?:of|is|are|for) (?:ours|theirs|its own accord)"
    r"|anew|behind (?:your|its|their|anybody's|somebody's|the) backs?|(?:is|are|was|were|be) told"
    r"|hears? of|hears? (?:that|nothing|once)|says? no|said no|a no\b|by turns|in vain|for good"
    r"|at the door|all the same|and that (?:is|was) that|as if there were|put right|puts right"
    r"|makes? room|goes? by|to be had|is none|are none|if need be|has never heard"
    r"|the house|a stay|made up|makes? up|say the|mended?|mends|lends?|lent|tells? apart"
    r"|told apart|look again|beyond doubt|of one's own|one's)\b",
    re.IGNORECASE,
)


class Found(NamedTuple):
    """One occurrence, with its place."""

    path: Path
    line: int
    text: str


class Measure(NamedTuple):
    words: int
    clauses: list[Found]
    idioms: list[Found]

    @property
    def rate(self) -> float:
        """Free relative clauses per 1,000 words."""
        return 1000 * len(self.clauses) / max(1, self.words)


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """The prose of a file as pairs of line number and text."""
    source = path.read_text()
    if path.suffix == ".md":
        yield from _paragraphs(_FENCE.sub(_blank, source), 1)
    elif path.suffix == ".py":
        yield from _docstrings(source)
        yield from _comments(source)
    else:
        mark = KINDS.get(path.suffix) or "#"
        yield from _blocks(_marked(source, mark))


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _paragraphs(text: str, line: int) -> Iterator[tuple[int, str]]:
    for paragraph in re.split(r"(\n[ \t]*\n)", text):
        if paragraph.strip():
            yield line, paragraph
        line += paragraph.count("\n")


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield from _paragraphs(_INDENTED.sub(_blank, text), node.body[0].lineno)


def _comments(source: str) -> Iterator[tuple[int, str]]:
    lines: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0]] = token.string
    yield from _blocks(lines)


def _marked(source: str, mark: str) -> dict[int, str]:
    """The comments of a file, each from its mark to the end of the line."""
    found: dict[int, str] = {}
    for number, line in enumerate(source.split("\n"), 1):
        comment = re.search(rf"(?:^|\s){re.escape(mark)}(?:\s.*|$)", line)
        if comment:
            found[number] = comment.group().strip()
    return found


def _blocks(lines: dict[int, str]) -> Iterator[tuple[int, str]]:
    """Comments on consecutive lines belong together."""
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
    """The number of words in these files, and the clauses and idioms found in them."""
    words = 0
    clauses: list[Found] = []
    idioms: list[Found] = []
    for path in paths:
        for line, text in prose_of(path):
            plain = _NOT_PROSE.sub(_PLACEHOLDER, text)
            words += len(_WORD.findall(plain))
            for sentence in _SENTENCE.split(plain):
                flat = " ".join(sentence.split()).strip("*_#>- ")
                idioms += [Found(path, line, flat) for _ in _IDIOM.finditer(flat)]
                if not flat.endswith("?"):
                    clauses += [Found(path, line, flat) for _ in _FREE.finditer(flat)]
    return Measure(words, clauses, idioms)


def files(names: list[str]) -> list[Path]:
    """The files with prose below these places, as far as git does not ignore them."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *names],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [ROOT / name for name in listed.stdout.split("\n") if name]
    return [path for path in paths if path.is_file() and _has_prose(path)]


def _has_prose(path: Path) -> bool:
    if not path.suffix:
        return path.parent.name in ("scripts", ".ci")
    return path.suffix in KINDS


def main(arguments: list[str]) -> int:
    names = [argument for argument in arguments if not argument.startswith("--")]
    groups: dict[str, list[Path]] = {}
    for path in files(names):
        groups.setdefault(path.relative_to(ROOT).parts[0], []).append(path)
    total = Measure(0, [], [])
    for name, paths in sorted(groups.items()):
        found = measure(paths)
        total = Measure(
            total.words + found.words, total.clauses + found.clauses, total.idioms + found.idioms
        )
        print(
            f"{name:18} {found.rate:6.2f}  ({len(found.clauses)} in {found.words} words;"
            f" {len(found.idioms)} idioms)"
        )
    listed = (total.clauses if "--list" in arguments else []) + (
        total.idioms if "--idioms" in arguments else []
    )
    for each in listed:
        print(f"{each.path.relative_to(ROOT)}:{each.line}: {each.text[:140]}")
    print(f"free relative clauses: {total.rate:.2f} per 1,000 words (at most {LIMIT:g})")
    print(f"idioms: {len(total.idioms)} in {total.words} words (no limit)")
    return 0 if total.rate <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
