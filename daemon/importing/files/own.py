"""Items in recalld's own Markdown and CSV exports, with every column.

A Markdown file has the fields of the item as front matter, each as JSON, and then its text. A CSV
file has a column for each field: texts as they are, everything else as JSON. A field that has the
usual value is left out. Reading such an item gives the record of the export format, so that a
second export has the same bytes.
"""

import re
from typing import Any, Final

import msgspec
import orjson

from store.errors import ImportRefused
from store.exporting.export_format import ItemRecord, check_record

#: The field of the front matter that marks an exported item, with the version of the format.
MARK: Final = "recalld"
VERSION: Final = 1
#: The first column of a CSV export.
CSV_MARK: Final = "recalld_item"

#: Separates the items of a Markdown file that holds several.
SEPARATOR_LINE: Final = "<!-- recalld item -->"
SEPARATOR: Final = re.compile(r"^<!-- recalld item -->\n", re.MULTILINE)
# Such a line in a text is written with a backslash before it, and one more if it has some already.
_LIKE_SEPARATOR: Final = re.compile(r"^(?=\\{0,9}<!-- recalld item -->)", re.MULTILINE)
_ESCAPED: Final = re.compile(r"^\\(?=\\{0,9}<!-- recalld item -->)", re.MULTILINE)

#: The usual values. These fields are left out of Markdown files, and are empty in CSV files.
_USUAL: Final[dict[str, Any]] = {
    "title": "", "context": None, "category": None, "status": None, "level": None,
    "confidence": None, "salience": None, "session": None, "document": None, "position": None,
    "source": None, "user": None, "role": None, "actor": None, "event_type": None, "key": None,
    "tags": [], "metadata": {}, "details": {}, "provenance": {}, "superseded_by": None,
    "repeats": 0, "sameness": None,
}  # fmt: skip
FIELDS: Final = tuple(ItemRecord.__struct_fields__)
_NOT_TEXTS: Final = frozenset(
    ("confidence", "salience", "position", "tags", "metadata", "details", "provenance",
     "occurred_at", "created_at", "updated_at", "repeats")
)  # fmt: skip


def markdown(record: dict[str, Any]) -> str:
    """An item as Markdown with front matter."""
    fields = "".join(
        f"{name}: {orjson.dumps(record[name]).decode()}\n"
        for name in FIELDS
        if name != "text" and not _is_usual(record, name)
    )
    text = _LIKE_SEPARATOR.sub(r"\\", record["text"])
    return f"---\n{MARK}: {VERSION}\n{fields}---\n{text}\n"


def unescaped(body: str) -> str:
    """The text of an item that `markdown` wrote."""
    return _ESCAPED.sub("", body.removesuffix("\n"))


def cells(record: dict[str, Any]) -> list[str]:
    """An item as the cells of a CSV row, after the mark."""
    return ["" if _is_usual(record, name) else _cell(name, record[name]) for name in FIELDS]


def _cell(name: str, value: Any) -> str:
    # A text that is empty or begins with a quotation mark is written as JSON, to be told apart.
    is_plain = name not in _NOT_TEXTS and value and not str(value).startswith('"')
    return str(value) if is_plain or name == "text" else orjson.dumps(value).decode()


def uncelled(name: str, cell: str) -> Any:
    """The value of a cell that is not empty."""
    return orjson.loads(cell) if name in _NOT_TEXTS or cell.startswith('"') else cell


def _is_usual(record: dict[str, Any], name: str) -> bool:
    return name in _USUAL and record[name] == _USUAL[name]


def restored(fields: dict[str, Any], text: str) -> dict[str, Any]:
    """The record of an exported item; raises `ImportRefused` if a field is wrong."""
    known = {name: value for name, value in fields.items() if name in FIELDS}
    record = {"type": "item", **_USUAL, **known, "text": text}
    try:
        item = msgspec.convert(record, ItemRecord, strict=True)
    except msgspec.ValidationError as error:
        raise ImportRefused("file", str(error)) from error
    check_record(item, 1, set())
    return {name: record[name] for name in ("type", *FIELDS)}
