"""Parsers run in a child process: formats are read, and hostile files cost one answer."""

import io
import json
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable

import pytest

from daemon.sources.formats import format_of
from daemon.sources.parsers.parsed import Parsed, Unparsable
from daemon.sources.parsers.process import Parser


@pytest.fixture
async def parser() -> AsyncIterator[Parser]:
    async with Parser(seconds=20) as made:
        yield made


async def parse(parser: Parser, name: str, content: bytes) -> Parsed:
    format = format_of(name)
    assert format is not None
    return await parser.parse(format, content)


def archive(members: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return made.getvalue()


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
DOCX = archive(
    {
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body><w:p><w:pPr><w:pStyle'
        ' w:val="Heading1"/></w:pPr><w:r><w:t>Plan</w:t></w:r></w:p><w:p><w:r><w:t>Ship on </w:t>'
        "</w:r><w:r><w:t>Friday</w:t></w:r></w:p></w:body></w:document>"
    }
)
PPTX = archive(
    {
        f"ppt/slides/slide{number}.xml": f'<p xmlns:a="{DRAWING}"><a:p><a:r><a:t>{text}</a:t></a:r>'
        "</a:p></p>"
        for number, text in ((2, "second"), (10, "tenth"), (1, "first"))
    }
)
XLSX = archive(
    {
        "xl/workbook.xml": f'<workbook xmlns="{SHEET}"><sheets><sheet name="Prices"/></sheets>'
        "</workbook>",
        "xl/sharedStrings.xml": f'<sst xmlns="{SHEET}"><si><t>apple</t></si></sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEET}"><sheetData><row><c t="s"><v>0</v>'
        "</c><c><v>3</v></c></row></sheetData></worksheet>",
    }
)
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# Study\n", "text"]},
            {"cell_type": "code", "source": "print(1)", "outputs": [{"text": "not indexed"}]},
        ]
    }
).encode()
HTML = (
    b"<html><head><title>Guide</title><style>p {}</style></head><body><nav>menu</nav>"
    b"<h1>Start</h1><p>Hello <b>you</b></p><script>bad()</script></body></html>"
)


def pdf(text: str) -> bytes:
    """A PDF of one page."""
    stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    return pdf_of(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))


def pdf_of(stream: bytes, pages: bytes = b"<</Type/Pages/Kids[3 0 R]/Count 1>>") -> bytes:
    """A PDF with this content stream and this tree of pages."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        pages,
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        stream,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"%PDF-1.4\n"
    places: list[int] = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return (
        body
        + b"xref\n0 6\n0000000000 65535 f \n"
        + table
        + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(body)
    )


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.md", b"# T\n", "# T\n"),
        ("a.txt", b"\xef\xbb\xbfwith a mark", "with a mark"),
        ("a.txt", "sixteen bits".encode("utf-16"), "sixteen bits"),
        ("a.txt", b"one\r\ntwo", "one\ntwo"),
        ("a.docx", DOCX, "# Plan\n\nShip on Friday\n"),
        ("a.xlsx", XLSX, "# Prices\n\napple | 3\n"),
        ("a.ipynb", NOTEBOOK, "# Study\ntext\n\n```\nprint(1)\n```\n"),
        ("a.html", HTML, "# Start\n\nHello you\n"),
        ("a.pdf", pdf("Hello from a page"), "# Page 1\n\nHello from a page\n"),
    ],
)
async def test_a_format_is_read_as_text(
    parser: Parser, name: str, content: bytes, text: str
) -> None:
    assert (await parse(parser, name, content)).text == text


async def test_slides_are_in_the_order_of_their_numbers(parser: Parser) -> None:
    text = (await parse(parser, "a.pptx", PPTX)).text
    assert text.index("first") < text.index("second") < text.index("tenth")


async def test_another_character_set_is_detected(parser: Parser) -> None:
    text = "Über die Größe der Straßen müssen wir natürlich ausführlich und häufig sprechen. " * 5
    assert (await parse(parser, "a.txt", text.encode("latin-1"))).text == text


def inflating(size: int) -> bytes:
    return archive({"word/document.xml": "<a>" + " " * size + "</a>"})


ENTITIES = archive(
    {
        "word/document.xml": "<!DOCTYPE a [<!ENTITY a 'aaaaaaaaaa'>"
        + "".join(f"<!ENTITY a{n + 1} '{f'&a{n or str()};' * 10}'>" for n in range(9))
        + "]><a>&a9;</a>"
    }
)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.docx", inflating(60 * 1024 * 1024), "inflates"),
        ("a.docx", inflating(10 * 1024 * 1024), "inflates to more than 200 times"),
        ("a.docx", ENTITIES, "document type definition"),
        ("a.docx", b"PK no archive", "not a valid archive"),
        ("a.pdf", b"%PDF-1.7 nothing", "PDF"),
        ("a.ipynb", b"[" * 100_000, "JSON"),
        ("a.ipynb", b"{}", "not a notebook"),
        ("a.html", b"<script>only</script>", "no text"),
        ("a.md", b"\0\1", "is binary"),
    ],
)
async def test_a_file_without_usable_text_is_refused_with_the_reason(
    parser: Parser, name: str, content: bytes, reason: str
) -> None:
    with pytest.raises(Unparsable, match=reason):
        await parse(parser, name, content)
    assert (await parse(parser, "a.html", HTML)).title == "Guide"


def inflating_pdf() -> bytes:
    """A PDF of a few kilobytes whose page inflates to 200 MB, because it is compressed twice."""
    once = zlib.compressobj(1)
    block = b"BT (x) Tj ET " * 80_000
    parts = [once.compress(block) for _ in range(200)]
    content = zlib.compress(b"".join([*parts, once.flush()]), 9)
    filters = b"/Filter[/FlateDecode/FlateDecode]"
    stream = b"<<%s/Length %d>>stream\n%s\nendstream" % (filters, len(content), content)
    return pdf_of(stream)


def looping_pdf() -> bytes:
    """A PDF whose tree of pages contains itself."""
    return pdf_of(b"<</Length 0>>stream\n\nendstream", pages=b"<</Type/Pages/Kids[2 0 R]/Count 9>>")


@pytest.mark.parametrize("make", [inflating_pdf, looping_pdf])
async def test_a_pdf_bomb_costs_one_answer(parser: Parser, make: Callable[[], bytes]) -> None:
    content = make()
    assert len(content) < 100_000
    with pytest.raises(
        Unparsable, match=r"PDF|needs more than|took longer|ended the parser|no text"
    ):
        await parse(parser, "a.pdf", content)
    assert (await parse(parser, "a.html", HTML)).title == "Guide"


async def test_deeply_nested_html_is_read(parser: Parser) -> None:
    nested = b"<div>" * 30_000 + b"deep" + b"</div>" * 30_000
    assert (await parse(parser, "a.html", nested)).text == "deep\n"


async def test_a_parser_that_takes_too_long_is_killed_and_replaced() -> None:
    async with Parser(seconds=0.3) as parser:
        with pytest.raises(Unparsable, match="took longer than"):
            await parse(parser, "a.html", b"<p>" + b"&amp;<b>x</b>" * 1_200_000)
        parser._seconds = 20
        assert (await parse(parser, "a.html", HTML)).title == "Guide"


async def test_a_file_that_needs_too_much_memory_costs_one_answer(parser: Parser) -> None:
    # Every element costs many times its bytes in the tree.
    cells = "<c><v>1</v></c>" * 1_500_000
    sheet = f'<worksheet xmlns="{SHEET}"><sheetData><row>{cells}</row></sheetData></worksheet>'
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as file:
        file.writestr("xl/worksheets/sheet1.xml", sheet)
    with pytest.raises(
        Unparsable, match=r"needs more than|took longer|ended the parser|more than \d+ cells"
    ):
        await parse(parser, "a.xlsx", made.getvalue())
    assert (await parse(parser, "a.html", HTML)).title == "Guide"
