#!/usr/bin/env python3
"""Verify the quotations of conformance/clauses.toml against a checkout of the specification.

    scripts/clauses.py SPECIFICATION     a checkout of modelcontextprotocol/modelcontextprotocol

Each quotation must stand on the page that it names, in every revision that it names, word for word
apart from markup and line breaks. Quotations of other standards are not verified.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from conformance.requirements import Clause, clauses  # noqa: E402  (needs the path)

SEPS = "modelcontextprotocol.io/seps/"


def plain(text: str) -> str:
    """Text without Markdown links, emphasis and line breaks."""
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", text)
    text = text.replace("**", "").replace("`", "")
    text = re.sub(r"(?<!\w)_|_(?!\w)", "", text)
    text = re.sub(r"\n\s*\*(?!/) ?", " ", text)
    return re.sub(r"\s+", " ", text)


def page(root: Path, revision: str, at: str) -> str:
    """The text of the page of a clause; the schema is the TypeScript file."""
    name = at.partition("#")[0]
    if SEPS in name:
        return (root / "seps" / f"{name.rpartition('/')[2]}.md").read_text("utf-8")
    if name == "schema":
        return (root / "schema" / revision / "schema.ts").read_text("utf-8")
    return (root / "docs/specification" / revision / f"{name}.mdx").read_text("utf-8")


def missing(root: Path, clause: Clause) -> list[str]:
    """The revisions whose page does not contain the quotation."""
    return [
        revision
        for revision in clause.revisions
        if plain(clause.quote) not in plain(page(root, revision, clause.at))
    ]


def main() -> int:
    if len(sys.argv) != 2 or not (Path(sys.argv[1]) / "docs/specification").is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    root = Path(sys.argv[1])
    checked = wrong = 0
    for rows in clauses().values():
        for clause in rows:
            if "://" in clause.at and SEPS not in clause.at:
                continue
            checked += len(clause.revisions)
            for revision in missing(root, clause):
                wrong += 1
                print(f"{clause.id}: not on {revision}/{clause.at}: {clause.quote}")
    print(f"{checked} quotations verified, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
