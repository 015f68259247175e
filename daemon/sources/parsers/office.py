"""Office documents (docx, pptx, xlsx): the text in the XML files of a zip archive.

An archive is read within limits: the sizes that it declares, and the bytes that really come out.
Expat expands no external entities, and its own protection ends entity bombs; a document with a
DTD is refused in any case, because office programs write none.
"""

import io
import re
import zipfile
from collections.abc import Iterator
from typing import Final
from xml.etree import ElementTree

from daemon.sources.parsers.parsed import Parsed, Unparsable

LARGEST_INFLATED: Final = 50 * 1024 * 1024
LARGEST_RATIO: Final = 200
MOST_MEMBERS: Final = 10_000
MOST_CELLS: Final = 500_000

_WORD: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING: Final = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_SHEET: Final = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_TITLE: Final = "{http://purl.org/dc/elements/1.1/}title"
_HEADING_STYLE: Final = re.compile(r"(?:Heading|heading ?)(\d)")
_NUMBER: Final = re.compile(r"(\d+)")


class _Archive:
    """A zip archive with a budget of inflated bytes."""

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise Unparsable("is not a valid archive") from None
        members = self._zip.infolist()
        total = sum(member.file_size for member in members)
        if len(members) > MOST_MEMBERS or total > LARGEST_INFLATED:
            raise Unparsable(f"inflates to {total} bytes; the limit is {LARGEST_INFLATED}")
        if total > LARGEST_RATIO * max(1, len(content)):
            raise Unparsable(f"inflates to more than {LARGEST_RATIO} times its size")
        self._left = LARGEST_INFLATED

    def names(self, prefix: str, suffix: str = ".xml") -> list[str]:
        """The members of a folder, in the order of their numbers."""
        found = [
            name
            for name in self._zip.namelist()
            if name.startswith(prefix) and name.endswith(suffix) and "/" not in name[len(prefix) :]
        ]
        return sorted(found, key=lambda name: (int((_NUMBER.findall(name) or ["0"])[-1]), name))

    def root(self, name: str) -> ElementTree.Element | None:
        """The root of an XML member; None if there is no such member."""
        try:
            with self._zip.open(name) as member:
                text = member.read(self._left + 1)  # the declared size may be a lie
        except KeyError:
            return None
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError):
            raise Unparsable("is not a valid archive") from None
        self._left -= len(text)
        if self._left < 0:
            raise Unparsable(f"inflates to more than {LARGEST_INFLATED} bytes")
        if b"<!DOCTYPE" in text[:4096] or b"<!ENTITY" in text:
            raise Unparsable("has a document type definition")
        try:
            return ElementTree.fromstring(text)
        except ElementTree.ParseError:
            raise Unparsable("has invalid XML") from None

    def title(self) -> str:
        core = self.root("docProps/core.xml")
        return (core.findtext(_TITLE) or "").strip()[:300] if core is not None else ""


def _parsed(parts: Iterator[str], title: str) -> Parsed:
    text = "\n\n".join(part for part in parts if part.strip()).strip()
    if not text:
        raise Unparsable("has no text")
    return Parsed(text=text + "\n", title=title)


def parse_docx(content: bytes) -> Parsed:
    archive = _Archive(content)
    root = archive.root("word/document.xml")
    if root is None:
        raise Unparsable("is not a docx document")
    return _parsed(_paragraphs(root), archive.title())


def _paragraphs(root: ElementTree.Element) -> Iterator[str]:
    for paragraph in root.iter(f"{_WORD}p"):
        pieces: list[str] = []
        for element in paragraph.iter():
            if element.tag == f"{_WORD}t":
                pieces.append(element.text or "")
            elif element.tag in (f"{_WORD}tab", f"{_WORD}br"):
                pieces.append(" ")
        style = paragraph.find(f"{_WORD}pPr/{_WORD}pStyle")
        name = style.get(f"{_WORD}val", "") if style is not None else ""
        level = _HEADING_STYLE.fullmatch(name)
        marks = "#" * min(6, int(level.group(1))) if level else "#" if name == "Title" else ""
        yield f"{marks} {''.join(pieces)}".strip() if marks else "".join(pieces)


def parse_pptx(content: bytes) -> Parsed:
    archive = _Archive(content)
    slides = archive.names("ppt/slides/")
    if not slides:
        raise Unparsable("is not a pptx document")
    return _parsed(_slides(archive, slides), archive.title())


def _slides(archive: _Archive, names: list[str]) -> Iterator[str]:
    for number, name in enumerate(names, 1):
        root = archive.root(name)
        if root is None:
            continue
        lines = [
            "".join(run.text or "" for run in paragraph.iter(f"{_DRAWING}t"))
            for paragraph in root.iter(f"{_DRAWING}p")
        ]
        lines = [line for line in lines if line.strip()]
        if lines:
            yield f"# Slide {number}: {lines[0]}\n\n" + "\n".join(lines[1:])


def parse_xlsx(content: bytes) -> Parsed:
    archive = _Archive(content)
    sheets = archive.names("xl/worksheets/")
    if not sheets:
        raise Unparsable("is not an xlsx document")
    shared = archive.root("xl/sharedStrings.xml")
    texts = [
        "".join(part.text or "" for part in entry.iter(f"{_SHEET}t"))
        for entry in (shared.iter(f"{_SHEET}si") if shared is not None else ())
    ]
    return _parsed(_sheets(archive, sheets, texts), archive.title())


def _sheets(archive: _Archive, names: list[str], texts: list[str]) -> Iterator[str]:
    workbook = archive.root("xl/workbook.xml")
    titles = (
        [sheet.get("name", "") for sheet in workbook.iter(f"{_SHEET}sheet")]
        if workbook is not None
        else []
    )
    left = MOST_CELLS
    for number, name in enumerate(names):
        root = archive.root(name)
        if root is None:
            continue
        rows: list[str] = []
        for row in root.iter(f"{_SHEET}row"):
            cells = [_cell(cell, texts) for cell in row.iter(f"{_SHEET}c")]
            left -= len(cells)
            if left < 0:
                raise Unparsable(f"has more than {MOST_CELLS} cells")
            line = " | ".join(cell for cell in cells if cell)
            if line:
                rows.append(line)
        title = titles[number] if number < len(titles) else f"Sheet {number + 1}"
        if rows:
            yield f"# {title}\n\n" + "\n".join(rows)


def _cell(cell: ElementTree.Element, texts: list[str]) -> str:
    if cell.get("t") == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{_SHEET}t"))
    value = cell.findtext(f"{_SHEET}v") or ""
    if cell.get("t") == "s":
        return texts[int(value)] if value.isdigit() and int(value) < len(texts) else ""
    return value
