"""Blocks of source code and reStructuredText: definitions and underlined titles as headings.

Definitions are recognised by the way their line begins, in the common languages, without a parser.
A definition that is missed costs little: its lines belong to the block before it.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

CODE_TYPES: Final = frozenset(
    f"text/x-{name}"
    for name in (
        "c", "c++", "csharp", "go", "java", "javascript", "kotlin", "lua", "php", "python", "ruby",
        "rust", "scala", "shellscript", "sql", "swift", "typescript", "zig",
    )
)  # fmt: skip

LONGEST_NAME: Final = 200
#: Definitions that are nested more deeply than this stay in the block of the outer one.
DEEPEST: Final = 12

# Every part is bounded and begins with other characters than the part before it, so matching takes
# constant time per line.
_MODIFIERS: Final = (
    r"(?:(?:export|default|public|private|protected|internal|static|abstract|final|open|override"
    r"|async|pub(?:\([a-z ]{1,20}\))?|unsafe|extern|inline|local|declare|data|sealed)"
    r"[ \t]{1,4}){0,5}"
)
_DEFINITION: Final = re.compile(
    r"([ \t]{0,12})" + _MODIFIERS + r"(?:def|class|function|func|fn|fun|struct|enum|interface"
    r"|trait|impl|type|module|namespace|object|record|protocol|extension|sub|procedure"
    r"|CREATE[ \t](?:TABLE|VIEW|INDEX|FUNCTION|TRIGGER))"
    r"(?:[ \t]{1,4}|\*[ \t]?)(?:\([^)\n]{0,80}\)[ \t]?)?"
    r"([A-Za-z_$][\w$.:]{0,100})"
)
_DECORATOR: Final = re.compile(r"[ \t]{0,12}(?:@|#\[)")
_UNDERLINE: Final = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}[ \t]*$")


class Block(NamedTuple):
    """A part of a body, by character offsets."""

    start: int
    end: int
    heading: str | None  # the path of headings, if this block is a heading


def code_blocks(body: str) -> Iterator[Block]:
    """The definitions of source code, and the paragraphs between them."""
    path: list[tuple[int, str]] = []
    start = position = 0
    is_blank = False
    for line in body.splitlines(keepends=True):
        found = _DEFINITION.match(line)
        is_decorator = found is None and _DECORATOR.match(line) is not None
        # A blank line ends a block only outside of nested code, so that bodies stay together.
        is_outer = is_blank and line.strip() != "" and not line[0].isspace()
        if (found or is_decorator or is_outer) and not _is_decoration(body[start:position]):
            yield Block(start, position, None)
            start = position
        if found:
            indent = len(found.group(1).expandtabs(4))
            path = [entry for entry in path if entry[0] < indent]
            if len(path) < DEEPEST:
                path.append((indent, found.group(2)[:LONGEST_NAME]))
            yield Block(start, position + len(line), " > ".join(name for _, name in path))
            start = position + len(line)
        is_blank = not line.strip()
        position += len(line)
    if position > start:
        yield Block(start, position, None)


def _is_decoration(text: str) -> bool:
    """Whether a text is blank or only decorators, which belong to the definition after them."""
    return all(_DECORATOR.match(line) or not line.strip() for line in text.splitlines())


def titled_blocks(body: str) -> Iterator[Block]:
    """The sections of reStructuredText. The order of first use gives each underline its level."""
    path: list[tuple[int, str]] = []
    levels: list[str] = []
    lines = body.splitlines(keepends=True)
    start = position = 0
    is_blank = True
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        mark = _UNDERLINE.match(following)
        title = line.strip()
        is_title = (
            mark is not None
            and 0 < len(title) <= min(LONGEST_NAME, len(following.rstrip()) + 2)
            and not _UNDERLINE.match(line)
        )
        if (is_title or is_blank) and line.strip() and position > start:
            yield Block(start, position, None)
            start = position
        if is_title and mark is not None:
            if mark.group(1) not in levels:
                levels.append(mark.group(1))
            level = levels.index(mark.group(1))
            path = [entry for entry in path if entry[0] < level]
            path.append((level, title))
            end = position + len(line) + len(following)
            yield Block(start, end, " > ".join(name for _, name in path))
            start = end
        is_blank = not line.strip()
        position += len(line)
    if position > start:
        yield Block(start, position, None)
