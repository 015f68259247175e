"""conformance imports only the standard library, so it shares no code with any server."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "conformance").rglob("*.py"))


def imported_packages(source: str) -> set[str]:
    """The top-level packages of all imports, including those inside functions."""
    packages: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            packages.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            packages.add((node.module or "").partition(".")[0])
    return packages


def test_imports_inside_functions_are_found() -> None:
    source = "import os.path\ndef f():\n    from msgspec import json\n"

    assert imported_packages(source) == {"os", "msgspec"}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_the_standard_library(module: str) -> None:
    packages = imported_packages((ROOT / module).read_text("utf-8"))

    assert packages <= {*sys.stdlib_module_names, "conformance"}
