"""Imports between the packages of this repository, read from the source with `ast`.

An import counts wherever it stands: at the top of a module, inside a function, or under
`TYPE_CHECKING`.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
TOP_LEVEL: Final = ("protocol", "store", "daemon", "conformance")


class Graph(NamedTuple):
    """The packages, the packages each of them imports, and the third-party imports of each."""

    packages: frozenset[str]
    internal: dict[str, frozenset[str]]
    external: dict[str, frozenset[str]]


def read(root: Path = ROOT, top_level: tuple[str, ...] = TOP_LEVEL) -> Graph:
    """The import graph of the packages below `root`."""
    sources = {_module(path, root): path for top in top_level for path in _files(root / top)}
    packages = {name: _package(name, path) for name, path in sources.items()}
    internal: dict[str, set[str]] = {package: set() for package in packages.values()}
    external: dict[str, set[str]] = {package: set() for package in packages.values()}
    for name, path in sources.items():
        package = packages[name]
        for imported in _imports(ast.parse(path.read_text()), set(sources)):
            if imported in packages:
                internal[package] |= {packages[imported]} - {package}
            elif imported.partition(".")[0] not in sys.stdlib_module_names:
                external[package].add(imported.partition(".")[0])
    return Graph(
        frozenset(internal),
        {package: frozenset(found) for package, found in internal.items()},
        {package: frozenset(found) for package, found in external.items()},
    )


def below(graph: Graph, top: str) -> list[str]:
    """The package `top` and all packages inside it."""
    return [name for name in sorted(graph.packages) if name == top or name.startswith(f"{top}.")]


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*.py")) if "__pycache__" not in path.parts)


def _module(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(module: str, path: Path) -> str:
    return module if path.name == "__init__.py" else module.rpartition(".")[0]


def _imports(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module
