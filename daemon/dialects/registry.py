"""Loads dialects by name and builds the tools they serve."""

import importlib
from collections.abc import Sequence

from daemon.tools.dialect import Dialect
from daemon.tools.registry import Registry
from daemon.tools.toolkit import Toolkit


def load(name: str) -> Dialect:
    """The dialect of this name: the value `DIALECT` of the module `daemon.dialects.<name>`."""
    dialect: Dialect = importlib.import_module(f"daemon.dialects.{name}").DIALECT
    return dialect


def build(names: Sequence[str], toolkit: Toolkit) -> Registry:
    """The tools of these dialects, in order."""
    registry = Registry()
    for name in names:
        dialect = load(name)
        for spec in dialect.tools(toolkit):
            registry.add(spec, dialect)
    return registry
