"""The defects, one module for each part of the protocol."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "messages",
    "framing_and_process",
    "handshake",
    "tools_and_prompts",
    "lists",
    "calls",
    "shapes",
    "over_http",
    "everywhere",
    "tasks",
    "skills",
)


def load() -> None:
    """Register every defect."""
    for name in MODULES:
        import_module(f"conformance.broken.defects.{name}")
