"""HTML as text: headings become Markdown headings, navigation and scripts are left out.

The parser keeps a stack of its own and uses no recursion, so deeply nested elements cost nothing.
"""

from html.parser import HTMLParser
from typing import Final

from daemon.sources.parsers.parsed import Parsed, Unparsable

_LEFT_OUT: Final = frozenset(
    ("script", "style", "nav", "noscript", "template", "svg", "canvas", "iframe", "form", "button")
)
_BLOCKS: Final = frozenset(
    ("p", "div", "section", "article", "main", "header", "footer", "aside", "ul", "ol", "table",
     "tr", "blockquote", "figure", "figcaption", "dl", "dt", "dd", "details", "summary", "hr")
)  # fmt: skip
_HEADINGS: Final = {f"h{level}": "#" * level for level in range(1, 7)}
_VOID: Final = frozenset(("br", "hr", "img", "input", "link", "meta", "wbr", "source", "area"))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.title: list[str] = []
        self._left_out = 0  # the number of open elements that are left out
        self._in_title = False
        self._in_pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _LEFT_OUT:
            self._left_out += 1
        elif tag == "title" and not self._left_out:
            self._in_title = True
        elif tag in _HEADINGS:
            self.parts.append(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "li":
            self.parts.append("\n- ")
        elif tag == "pre":
            self._in_pre += 1
            self.parts.append("\n\n```\n")
        elif tag == "br":
            self.parts.append("\n")
        elif tag in ("td", "th"):
            self.parts.append(" | ")
        elif tag in _BLOCKS:
            self.parts.append("\n\n")

    def handle_endtag(self, tag: str) -> None:
        if tag in _LEFT_OUT:
            self._left_out = max(0, self._left_out - 1)
        elif tag == "title":
            self._in_title = False
        elif tag == "pre":
            self._in_pre = max(0, self._in_pre - 1)
            self.parts.append("\n```\n\n")
        elif tag in _HEADINGS or (tag in _BLOCKS and tag not in _VOID):
            self.parts.append("\n\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title.append(data)
        elif not self._left_out:
            self.parts.append(data if self._in_pre else _spaced(data))


def _spaced(data: str) -> str:
    """The words of a text with single spaces, also at its ends."""
    words = " ".join(data.split())
    if not words:
        return " " if data else ""
    lead = " " if data[0].isspace() else ""
    return lead + words + (" " if data[-1].isspace() else "")


def parse_html(text: str) -> Parsed:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    lines: list[str] = []
    is_code = False
    for line in "".join(reader.parts).split("\n"):
        if line.startswith("```"):
            is_code = not is_code
        kept = line.rstrip() if is_code else line.strip()
        if kept or (lines and lines[-1]):
            lines.append(kept)
    joined = "\n".join(lines).strip()
    if not joined:
        raise Unparsable("has no text")
    return Parsed(text=joined + "\n", title=" ".join("".join(reader.title).split())[:300])
