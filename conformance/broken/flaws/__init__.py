"""The flaws, a module for each part of the protocol."""

from __future__ import annotations

from importlib import import_module

MODULES = ("messages", "streams", "opening", "features", "lists", "running", "shapes", "web")


def load() -> None:
    """Register every flaw."""
    for name in MODULES:
        import_module(f"conformance.broken.flaws.{name}")
