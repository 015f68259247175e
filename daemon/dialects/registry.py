"""Builds the tools of the dialects that are served."""

import importlib

from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import House


def build(names: list[str], house: House) -> list[ToolSpec]:
    """The tools of these dialects, in order."""
    specs: list[ToolSpec] = []
    for name in names:
        module = importlib.import_module(f"daemon.dialects.{name}")
        specs.extend(module.tools(house))
    return specs
