"""The tool surfaces of other memory systems, one module each; see README.md here.

A dialect module has one function, `tools(house)`, that gives its tools; no more is asked of it.
"""

import importlib
from typing import Final

from daemon.house import House
from daemon.tools import ToolSpec

#: In the order `tools/list` shows them.
DIALECTS: Final[tuple[str, ...]] = tuple[str, ...]()


def chosen(names: str) -> list[str]:
    """The dialects a list names, all when it is empty; LookupError names a wrong one."""
    wanted = [name for name in (part.strip() for part in names.split(",")) if name]
    for name in wanted:
        if name not in DIALECTS:
            raise LookupError(f"dialects: {name!r} is not one of {', '.join(DIALECTS) or 'none'}")
    return [name for name in DIALECTS if name in wanted] or list(DIALECTS)


def build(names: list[str], house: House) -> list[ToolSpec]:
    """The tools of these dialects, in order."""
    specs: list[ToolSpec] = []
    for name in names:
        module = importlib.import_module(f"daemon.dialects.{name}")
        specs.extend(module.tools(house))
    return specs
