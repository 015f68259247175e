"""Builds the tools of the dialects that are served."""

import importlib

from daemon.tools.specification import ToolSpec
from daemon.tools.toolkit import Toolkit


def build(names: list[str], toolkit: Toolkit) -> list[ToolSpec]:
    """The tools of these dialects, in order."""
    specs: list[ToolSpec] = []
    for name in names:
        module = importlib.import_module(f"daemon.dialects.{name}")
        specs.extend(module.tools(toolkit))
    return specs
