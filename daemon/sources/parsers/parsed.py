"""The result of parsing a file: its text and title, or the reason why it has none."""

from typing import Final

from msgspec import Struct

#: Bytes of UTF-8; the engine stores no larger body.
LARGEST_TEXT: Final = 16 * 1024 * 1024


class Parsed(Struct, frozen=True, kw_only=True):
    """The text of a file. `title` is empty if the file has none."""

    text: str
    title: str = ""


class Unparsable(Exception):
    """A file without usable text. The message is a short reason, without the file's content."""
