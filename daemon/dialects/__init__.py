"""The tool surfaces of other memory systems, one module each; see README.md here.

A dialect module has one function, `tools(house)`, that gives its tools; no more is asked of it.
"""

import importlib
from typing import Final

from daemon.house import House
from daemon.tools import ToolSpec

#: In the order `tools/list` shows them.
DIALECTS: Final = ("hindsight", "awareness", "recall", "harness")


def chosen(names: str) -> list[str]:
    """The dialects a list names: `a,b` these, `-a` all but that one, nothing all of them.

    LookupError names a wrong one.
    """
    parts = [part.strip() for part in names.split(",") if part.strip()]
    for part in parts:
        if part.removeprefix("-") not in DIALECTS:
            raise LookupError(f"dialects: {part!r} is not one of {', '.join(DIALECTS)}")
    wanted = [part for part in parts if not part.startswith("-")] or DIALECTS
    found = [name for name in DIALECTS if name in wanted and f"-{name}" not in parts]
    if not found:
        raise LookupError(f"dialects: {names!r} leaves none of {', '.join(DIALECTS)}")
    return found


def build(names: list[str], house: House) -> list[ToolSpec]:
    """The tools of these dialects, in order."""
    specs: list[ToolSpec] = []
    for name in names:
        module = importlib.import_module(f"daemon.dialects.{name}")
        specs.extend(module.tools(house))
    return specs
