"""Prints the README's tables of settings and errors from the code they describe.

`scripts/tables.py settings` and `scripts/tables.py faults`; `--write` puts both into README.md.
"""

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from daemon.config import SETTINGS  # noqa: E402  (the checkout goes first)
from protocol.errors import Fault  # noqa: E402  (after the path above)


def settings() -> list[str]:
    """One row a setting."""
    rows: list[str] = []
    for setting in SETTINGS:
        variables = ", ".join(f"`{name}`" for name in setting.variables)
        rows.append(
            f"| `{setting.key}` | {variables} | {_shown(setting.default)} | {setting.about} |"
        )
    return rows


def faults() -> list[str]:
    """One row a fault."""
    return [
        f"| {fault.title.lower()} (`{fault.kind}`) | {_minus(fault.legacy_code)} |"
        f" {_minus(fault.modern_code)} |"
        for fault in Fault
    ]


def _shown(value: Any) -> str:
    if value in ("", ()):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _minus(code: int) -> str:
    return f"−{-code}"


HEADS = {
    "settings": "| setting | environment | default | what it is |\n|---|---|---|---|\n",
    "faults": "| what | up to 2025-11-25 | 2026-07-28 |\n|---|---|---|\n",
}


def with_tables(readme: str) -> str:
    """The README with both tables as the code has them now."""
    for name, rows in (("settings", settings()), ("faults", faults())):
        head = HEADS[name]
        start = readme.index(head) + len(head)
        end = re.compile(r"^(?!\|)", re.MULTILINE).search(readme, start)
        assert end is not None
        readme = readme[:start] + "\n".join(rows) + "\n" + readme[end.start() :]
    return readme


def main() -> None:
    readme = ROOT / "README.md"
    if "--write" in sys.argv:
        readme.write_text(with_tables(readme.read_text()))
        return
    for row in settings() if "settings" in sys.argv else faults():
        print(row)


if __name__ == "__main__":
    main()
