"""Items in Markdown and CSV come back as they were, whatever their text is."""

import csv
import io
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from daemon.importing import front_matter
from daemon.importing.files import markdown, own, writing
from daemon.importing.record import Own

_LINES = st.sampled_from(
    ["---", "<!-- recalld item -->", "\\<!-- recalld item -->", "a, \"b\"", "", "\r", "é漢", "#"]
)  # fmt: skip
_TEXTS = st.lists(_LINES, min_size=1, max_size=5).map("\n".join) | st.text(
    st.characters(codec="utf-8", exclude_characters="\0"), max_size=30
)


def record(text: str, label: str | None = None, **fields: Any) -> dict[str, Any]:
    base = {"public_id": "m1", "kind": "memory", "occurred_at": 5, "created_at": 6, "updated_at": 7}
    return own.restored({**base, "context": label, "session": label, **fields}, text)


@given(st.lists(st.tuples(_TEXTS, st.none() | _TEXTS), min_size=1, max_size=4))
def test_items_in_one_markdown_file_come_back_as_they_were(
    entries: list[tuple[str, str | None]],
) -> None:
    records = [record(text, label, tags=[label or "t"]) for text, label in entries]
    file = io.StringIO(newline="")
    writing.write_markdown_stream(iter(records), file)
    parts = own.SEPARATOR.split(file.getvalue())
    read = []
    for part in parts:
        fields, body = front_matter.parse(part)
        assert fields.pop(own.MARK) == own.VERSION
        read.append(own.restored(fields, own.unescaped(body)))
    assert read == records


@given(st.lists(st.tuples(_TEXTS, st.none() | _TEXTS), min_size=1, max_size=4))
def test_items_in_a_csv_file_come_back_as_they_were(entries: list[tuple[str, str | None]]) -> None:
    records = [record(text, label, confidence=1.0) for text, label in entries]
    file = io.StringIO(newline="")
    writing.write_csv(iter(records), file)
    header, *rows = csv.reader(io.StringIO(file.getvalue(), newline=""), strict=True)
    read = []
    for row in rows:
        cells = dict(zip(header[1:], row[1:], strict=True))
        text = cells.pop("text")
        fields = {name: own.uncelled(name, cell) for name, cell in cells.items() if cell}
        read.append(own.restored(fields, text))
    assert read == records


def test_ids_that_differ_only_in_unsafe_characters_get_two_files(tmp_path: Path) -> None:
    records = [record("a", public_id="x/y"), record("b", public_id="x:y")]
    assert writing.write_markdown(iter(records), tmp_path, "memory") == 2
    assert len(list(tmp_path.iterdir())) == 2
    found = [entry.record for entry in markdown.read(tmp_path) if isinstance(entry, Own)]
    assert sorted(each["public_id"] for each in found) == ["x/y", "x:y"]
