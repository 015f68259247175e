"""Jupyter notebooks: the text of Markdown cells and the source of code cells, without outputs."""

from typing import Any, cast

import msgspec

from daemon.sources.parsers.parsed import Parsed, Unparsable


def parse_notebook(content: bytes) -> Parsed:
    try:
        notebook = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise Unparsable("is not valid JSON") from None
    cells = cast("dict[str, Any]", notebook).get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise Unparsable("is not a notebook")
    parts = [_cell(cell) for cell in cast("list[Any]", cells)]
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise Unparsable("has no text")
    return Parsed(text=text + "\n")


def _cell(cell: Any) -> str:
    if not isinstance(cell, dict):
        return ""
    fields = cast("dict[str, Any]", cell)
    source: Any = fields.get("source", "")
    if isinstance(source, list):
        source = "".join(str(line) for line in cast("list[Any]", source))
    if not isinstance(source, str):
        return ""
    return f"```\n{source}\n```" if fields.get("cell_type") == "code" else source
