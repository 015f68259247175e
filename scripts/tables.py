#!/usr/bin/env python3
"""Generates the tables of settings and errors under docs/ from the code.

scripts/tables.py settings      print the table of settings
scripts/tables.py faults        print the table of error codes
scripts/tables.py --write       write both into their pages
"""

import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
#: Shown for a package that ARCHITECTURE.md does not describe yet; a test rejects it.
MISSING: Final = "TODO"
sys.path.insert(0, str(ROOT))

from daemon.config import SETTINGS  # noqa: E402  (needs the path inserted above)
from daemon.config.sources import KEYS as SOURCE_KEYS  # noqa: E402  (needs the path)
from daemon.config.sources import KINDS as SOURCE_KINDS  # noqa: E402  (needs the path)
from protocol.errors import Fault  # noqa: E402  (needs the path inserted above)
from scripts.import_graph import TOP_LEVEL, below, read  # noqa: E402  (needs the path)


def settings() -> list[str]:
    """One row per setting."""
    rows: list[str] = []
    for setting in SETTINGS:
        variables = ", ".join(f"`{name}`" for name in setting.variables)
        rows.append(
            f"| `{setting.key}` | {variables} | {_shown(setting.default)} | {setting.about} |"
        )
    return rows


def faults() -> list[str]:
    """One row per fault."""
    return [
        f"| {fault.title.lower()} (`{fault.kind}`) | {_minus(fault.legacy_code)} |"
        f" {_minus(fault.modern_code)} |"
        for fault in Fault
    ]


def sources() -> list[str]:
    """One row per key of a source."""
    kinds = ", ".join(f"`{kind}`" for kind in SOURCE_KINDS)
    rows = [f"| `kind` | all | required | {kinds} |"]
    for key in SOURCE_KEYS:
        of = "all" if key.kinds == SOURCE_KINDS else ", ".join(key.kinds)
        default = "required" if key.is_required else _shown(key.default)
        rows.append(f"| `{key.name}` | {of} | {default} | {key.about} |")
    return rows


def top_level() -> list[str]:
    """One row per top-level package, with its imports."""
    graph, purposes = read(), _purposes("top-level")
    rows: list[str] = []
    for top in TOP_LEVEL:
        inside = below(graph, top)
        imported = {name.partition(".")[0] for each in inside for name in graph.internal[each]}
        third_party = {name for each in inside for name in graph.external[each]}
        purpose = purposes.get(top, MISSING)
        rows.append(f"| `{top}` | {purpose} | {_list(imported - {top})} | {_list(third_party)} |")
    return rows


def packages() -> list[str]:
    """One row per package, with the packages it imports."""
    graph, purposes = read(), _purposes("packages")
    known = [name for name in purposes if name in graph.packages]
    return [
        f"| `{name}` | {purposes.get(name, MISSING)} | {_list(graph.internal[name])} |"
        for name in known + sorted(graph.packages - set(known))
    ]


def _purposes(table: str) -> dict[str, str]:
    """The purpose of each package, as ARCHITECTURE.md has it now, in the order of the page."""
    page = (ROOT / TABLES[table].page).read_text()
    text = page.partition(TABLES[table].header)[2].partition("\n\n")[0]
    return dict(re.findall(r"^\| `([\w.]+)` \| (.*?) \|", text, re.MULTILINE))


def _list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "–"


def _shown(value: Any) -> str:
    if value in ("", (), [], {}):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _minus(code: int) -> str:
    return f"−{-code}"


class Table(NamedTuple):
    """A generated table: the page that contains it, its header lines and its rows."""

    page: str
    header: str
    rows: Callable[[], list[str]]


TABLES: Final = {
    "settings": Table(
        "docs/configuration.md",
        "| setting | environment | default | meaning |\n|---|---|---|---|\n",
        settings,
    ),
    "faults": Table(
        "docs/errors.md",
        "| error | up to 2025-11-25 | 2026-07-28 |\n|---|---|---|\n",
        faults,
    ),
    "sources": Table(
        "docs/sources.md", "| key | kinds | default | meaning |\n|---|---|---|---|\n", sources
    ),
    "top-level": Table(
        "ARCHITECTURE.md",
        "| package | purpose | imports | third-party imports |\n|---|---|---|---|\n",
        top_level,
    ),
    "packages": Table(
        "ARCHITECTURE.md", "| package | purpose | imports |\n|---|---|---|\n", packages
    ),
}


def with_table(page: str, table: Table) -> str:
    """The text of a page with its table generated again."""
    start = page.index(table.header) + len(table.header)
    end = re.compile(r"^(?!\|)", re.MULTILINE).search(page, start)
    assert end is not None
    return page[:start] + "\n".join(table.rows()) + "\n" + page[end.start() :]


def main(arguments: list[str]) -> int:
    if arguments == ["--write"]:
        for table in TABLES.values():
            path = ROOT / table.page
            path.write_text(with_table(path.read_text(), table))
        return 0
    if len(arguments) == 1 and arguments[0] in TABLES:
        table = TABLES[arguments[0]]
        print(table.header + "\n".join(table.rows()))
        return 0
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
