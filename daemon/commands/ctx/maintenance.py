"""`ctx embed`, `ctx index` and `ctx export`: requests of `recalld bank`, in the words of ctx."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

from daemon.commands.execution import LocalRunner, execute
from daemon.commands.output import print_lines
from daemon.config import Settings
from daemon.exit_codes import CANNOT_CREATE, DEGRADED, OK, Exit

#: Performs a request of `recalld bank` on the bank of the documents.
Perform = Callable[..., dict[str, Any]]


def on_bank(settings: Settings, administer_bank: LocalRunner) -> Perform:
    """A function that performs the verbs of `recalld bank`, in the server or in this process."""

    def perform(verb: str, **more: Any) -> dict[str, Any]:
        request = {"verb": verb, "bank": settings.bank or "default", **more}
        return execute("bank", request, settings, administer_bank, _silent)

    return perform


def embed(verb: str, perform: Perform) -> int:
    """`pending` computes missing vectors, `rebuild` all of them."""
    if verb == "rebuild":
        perform("rebuild")
    left = perform("index")["pendingVectors"]
    print_lines(["every chunk has a vector" if not left else f"{left} chunks have no vector"])
    return DEGRADED if left else OK


def index(verb: str, perform: Perform) -> int:
    """`status` shows the counts, `rebuild` builds words and vectors again from the documents."""
    if verb == "rebuild":
        return embed("rebuild", perform)
    found = perform("statistics")
    print_lines(
        [
            f"documents        {found['documents']}",
            f"chunks           {found['kinds'].get('chunk', 0)}",
            f"without vector   {found['pendingVectors']}",
            f"model            {found['model'] or 'none yet'}",
            f"size             {found['bytes'] / 1024 / 1024:.1f} MiB",
        ]
    )
    return OK


def export(output: str | None, perform: Perform) -> int:
    """Write documents and chunks as one JSON object, for the search of a static site."""
    with tempfile.TemporaryDirectory(prefix="recalld-ctx-") as folder:
        lines = Path(folder, "bank.jsonl")
        perform("export", path=str(lines))
        with lines.open(encoding="utf-8") as file:
            if output is None:
                _write(file, sys.stdout)
                return OK
            try:
                with Path(output).open("w", encoding="utf-8") as target:
                    _write(file, target)
            except OSError as error:
                raise Exit(CANNOT_CREATE, f"{output}: {error.strerror}") from None
    sys.stderr.write(f"recalld: wrote {output}\n")
    return OK


def _write(lines: IO[str], target: IO[str]) -> None:
    """Write one row at a time, so that the memory does not grow with the bank.

    Documents come before their chunks in an export.
    """
    target.write('{"documents":[')
    chunks: Iterator[dict[str, Any]] = iter(())
    separator = ""
    records = (json.loads(line) for line in lines)
    for record in records:
        if record.get("type") == "item":
            chunks = _chunks_from(record, records)
            break
        if record.get("type") == "document":
            target.write(separator + json.dumps(_document(record), ensure_ascii=False))
            separator = ","
    target.write('],"chunks":[')
    separator = ""
    for chunk in chunks:
        target.write(separator + json.dumps(chunk, ensure_ascii=False))
        separator = ","
    target.write("]}\n")


def _document(record: dict[str, Any]) -> dict[str, Any]:
    names = ("source", "source_id", "title", "body", "updated_at")
    shown = {name: record[name] for name in names}
    return {"id": record["public_id"], **shown, "source_url": record["url"]}


def _chunks_from(first: dict[str, Any], rest: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for record in chain((first,), rest):
        if record.get("type") == "item" and record["kind"] == "chunk":
            yield {
                "id": record["public_id"],
                "document_id": record["document"],
                "chunk_index": record["position"],
                "text": record["text"],
            }


def _silent(_done: int, _total: int, _message: str) -> None:
    """These commands show no progress."""
