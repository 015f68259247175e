"""`conformance` may import only the standard library and itself, so that it can test any server."""

import ast
import sys
from pathlib import Path

import pytest

import conformance

ROOT = Path(conformance.__file__).parent


def imported(source: str) -> set[str]:
    """The top-level packages that a module imports, wherever in the module the import stands."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are banned"
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_module_imports_the_standard_library_and_conformance_only(path: Path) -> None:
    allowed = sys.stdlib_module_names | {"conformance"}
    assert imported(path.read_text()) - allowed == set()


def test_an_import_inside_a_function_is_found() -> None:
    assert imported("def f():\n    from msgspec.json import decode\n") == {"msgspec"}
