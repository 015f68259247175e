"""The tool surfaces of other memory systems, one module each; see README.md here.

A dialect module has one function, `tools(house)`, that gives its tools; no more is asked of it.
"""

import importlib

from daemon.choice import DIALECTS, chosen
from daemon.house import House
from daemon.tools import ToolSpec

__all__ = ("DIALECTS", "build", "chosen")


def build(names: list[str], house: House) -> list[ToolSpec]:
    """The tools of these dialects, in order."""
    specs: list[ToolSpec] = []
    for name in names:
        module = importlib.import_module(f"daemon.dialects.{name}")
        specs.extend(module.tools(house))
    return specs
