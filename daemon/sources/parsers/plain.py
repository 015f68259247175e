"""Text files: character set and title.

A file with a byte order mark or valid UTF-8 is decoded here. Others are decoded in the parser's
child process, where their character set is detected. A file that cannot be decoded is skipped and
counted; it never becomes an empty document.
"""

import codecs
import re
from typing import Final

from daemon.sources.parsers.parsed import LARGEST_TEXT, Unparsable

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: The part of a file in which a NUL byte means that it is binary.
SNIFFED: Final = 8192
TITLE_LENGTH: Final = 300
_UNDERLINE: Final = re.compile(r"[=\-~^\"#*]{3,}")
_HEADING: Final = re.compile(r"#{1,2}[ \t]+(\S.{0,300})")
_FRONT_TITLE: Final = re.compile(r"""title[ \t]*[:=][ \t]*["']?([^"'\n]{1,300})""", re.IGNORECASE)
_SEARCHED_LINES: Final = 80


def decode_known(content: bytes) -> str | None:
    """The text of UTF-8 or of a file with a byte order mark; None if it is neither.

    Raises `Unparsable` for binary content.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return storable(content.decode(encoding))
            except UnicodeDecodeError:
                raise Unparsable(f"has a mark of {encoding} and is not {encoding}") from None
    if b"\0" in content[:SNIFFED]:
        raise Unparsable("is binary")
    try:
        return storable(content.decode())
    except UnicodeDecodeError:
        return None


def detect(content: bytes) -> str:
    """The text of a file in another character set, which is detected. Slow: for the child."""
    from charset_normalizer import from_bytes

    # Detection reads a part of the file; the whole is decoded with the result.
    best = from_bytes(content[: 256 * 1024]).best()
    if best is None or best.percent_chaos > 20:
        raise Unparsable("has an unknown character set")
    try:
        return storable(content.decode(best.encoding))
    except (UnicodeDecodeError, LookupError):
        raise Unparsable("has an unknown character set") from None


def storable(text: str) -> str:
    """The text with plain line ends and without NUL, which the engine does not store."""
    if "\0" in text:
        raise Unparsable("is binary")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise Unparsable("has no text")
    if len(text) > LARGEST_TEXT or len(text.encode("utf-8", "replace")) > LARGEST_TEXT:
        raise Unparsable(f"has more than {LARGEST_TEXT} bytes of text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unparsable("has unpaired surrogates") from None
    return text


def title_of(text: str, content_type: str) -> str:
    """The title of a text: its front matter, its first heading, or an underlined first line."""
    if content_type not in ("text/markdown", "text/plain", "text/x-rst", "text/html"):
        return ""
    lines = text[:20_000].split("\n", _SEARCHED_LINES)[:_SEARCHED_LINES]
    is_front = bool(lines) and lines[0].strip() in ("---", "+++")
    for number, line in enumerate(lines):
        if is_front and number:
            if line.strip() in ("---", "+++"):
                is_front = False
            elif found := _FRONT_TITLE.match(line):
                return found.group(1).strip()[:TITLE_LENGTH]
            continue
        if found := _HEADING.match(line):
            return found.group(1).strip().rstrip("#").strip()[:TITLE_LENGTH]
        if content_type == "text/x-rst" and number and _UNDERLINE.fullmatch(line):
            above = lines[number - 1].strip()
            if above and not _UNDERLINE.fullmatch(above):
                return above[:TITLE_LENGTH]
    return ""
