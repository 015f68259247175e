"""Blocks of text that we own inside a file of the user, between two markers.

The rules are those of the Awareness document, section IDE Rules Auto-Injection. `managed_block`:
create the file, append the block, or replace only the block. `managed_file`: the whole file is
ours; a file without markers is a conflict unless it is forced. Markers that are not exactly one
start followed by one end are always a conflict.
"""

from typing import Literal, NamedTuple

from daemon.setup.formats.syntax import newline_of

Strategy = Literal["managed_block", "managed_file"]
Action = Literal["created", "appended", "replaced", "current"]


class Markers(NamedTuple):
    start: str
    end: str


class Conflict(Exception):
    """The file has markers that cannot be trusted, or contents that are not ours."""


def synced(
    text: str | None, content: str, markers: Markers, strategy: Strategy, *, force: bool
) -> tuple[Action, str]:
    """The new text of a file (None: it does not exist) with the content, and the action taken."""
    if text is None:
        return "created", content
    newline = newline_of(text)
    content = content.replace("\n", newline)
    span = _span(text, markers)
    if strategy == "managed_file":
        if span is None and not force and text.strip():
            raise Conflict(
                "managed_file already exists without Awareness markers (use --force to replace it)"
            )
        return ("current", text) if text == content else ("replaced", content)
    if span is None:
        kept = text.rstrip("\r\n")
        return "appended", f"{kept}{newline}{newline}{content}" if kept else content
    start, end = span
    new = text[:start] + content + text[end:]
    return ("current", text) if new == text else ("replaced", new)


def removed(text: str, markers: Markers) -> str:
    """The text without the block and the blank line before it; the same text if it has none."""
    span = _span(text, markers)
    if span is None:
        return text
    newline = newline_of(text)
    before, after = text[: span[0]], text[span[1] :]
    if before.endswith(newline * 2) and not after:
        before = before[: -len(newline)]
    return before + after


def _span(text: str, markers: Markers) -> tuple[int, int] | None:
    """The block, with one line ending after it; None if the text has no marker."""
    counts = text.count(markers.start), text.count(markers.end)
    if counts == (0, 0):
        return None
    if counts != (1, 1):
        raise Conflict("expected exactly one start marker and one end marker")
    start, end = text.index(markers.start), text.index(markers.end) + len(markers.end)
    if start >= end - len(markers.end):
        raise Conflict("Awareness markers are malformed or out of order")
    for ending in ("\r\n", "\n"):
        if text.startswith(ending, end):
            return start, end + len(ending)
    return start, end
