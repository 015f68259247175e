#!/usr/bin/env python3
"""Finds references in docstrings, comments and Markdown that lead nowhere.

    scripts/references.py            look at the whole repository; exit status 1 if any is found
    scripts/references.py PATH …     look at these files and folders only

A reference is a path or module of this repository in backticks, a Markdown link, an id of a
conformance requirement, or a numbered rule of a README. Marks of design papers that are not in the
repository are rejected, in string literals too.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from daemon.config import SETTINGS  # noqa: E402  (needs the path inserted above)
from scripts.prose import files, prose_of  # noqa: E402  (needs the path inserted above)

TOP_LEVEL: Final = ("daemon", "protocol", "store", "conformance", "scripts", "tests", "docs")
#: The packages whose string literals users can see.
_PRODUCT: Final = ("daemon", "protocol", "store", "conformance")
_TOPS: Final = "|".join(TOP_LEVEL)

_PRIVATE: Final = re.compile(
    r"\b(?:DESIGN|[Ss]eeds? 0\d\d|[Dd]ecisions? \d{1,3}|DECISIONS(?:\.md)?|D\d{1,2}(?: to D\d+)?)\b"
    r"|\([a-z] to [a-z]\)"
)
_REQUIREMENT: Final = re.compile(r"(?<![\w.+#/-])[A-Z]\d{2}[a-z]?(?![\w-])")
_BACKTICKS: Final = re.compile(r"`+([^`\n]+)`+")
_PATH: Final = re.compile(rf"(?<![\w./-])(?:{_TOPS})/[\w./-]*\w/?")
_MODULE: Final = re.compile(r"(?:daemon|protocol|store|conformance|scripts|tests)(?:\.\w+)+")
_FILE: Final = re.compile(r"[\w./-]+\.(?:py|md|sql)")
_CALL: Final = re.compile(r"`[^`\n]*\([^`\n]*`")
_RULE: Final = re.compile(r"([\w/.-]*README)(?:\.md)?`?,? rules? (\d+)")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
#: Names of files that other programs read, and the file that examples ask for.
_FOREIGN: Final = frozenset(
    {
        "AGENTS.md",
        "CLAUDE.md",
        "GEMINI.md",
        "MEMORY.md",
        "docs/auth.md",
        "copilot-instructions.md",
        "guidelines.md",
        "recalld.md",
        "store/sqlite/vectors/tokens.py",  # its former place, in a migration that must not change
    }
)
#: Endings of files at run time that look like names in the package `daemon`.
_RUNTIME: Final = (".lock", ".log")


class Dangling(NamedTuple):
    """A reference that leads nowhere."""

    path: Path
    line: int
    reference: str


def dangling(paths: list[Path]) -> list[Dangling]:
    """All dangling references in the prose of these files."""
    found = [
        Dangling(path, line, reference)
        for path in paths
        for line, text in prose_of(path)
        for reference in references(text, path)
    ]
    for path in paths:
        if path.suffix == ".py" and _area(path) in _PRODUCT:
            found += [Dangling(path, line, mark) for line, mark in marks_in_strings(path)]
    return found


def marks_in_strings(path: Path) -> Iterator[tuple[int, str]]:
    """Marks of design papers in string literals, such as error messages; docstrings excepted."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield from ((node.lineno, mark.group()) for mark in _PRIVATE.finditer(node.value))


def _area(path: Path) -> str:
    return path.relative_to(ROOT).parts[0] if path.is_relative_to(ROOT) else ""


def references(text: str, path: Path) -> Iterator[str]:
    """The dangling references in a piece of prose that stands in the file `path`."""
    yield from (match.group() for match in _PRIVATE.finditer(text))
    for match in _REQUIREMENT.finditer(_CALL.sub("", text)):
        if match.group()[0] != "D" and match.group() not in _requirements():
            yield match.group()
    for match in _PATH.finditer(text):
        name = match.group()
        if not _is_pattern(text, match.end(), name) and not _exists(name):
            yield name
    for content in _BACKTICKS.findall(text):
        yield from _in_backticks(content.strip(), path)
    for readme, number in _RULE.findall(text):
        if not _has_rule(readme, int(number), path):
            yield f"{readme} rule {number}"
    if path.suffix == ".md":
        yield from _module_columns(text, path)
        yield from (target for target in _LINK.findall(text) if not _leads(target, path))


def _exists(name: str) -> bool:
    return (ROOT / name).exists() or (name.endswith("README") and (ROOT / f"{name}.md").exists())


def _is_pattern(text: str, end: int, name: str) -> bool:
    """Whether a path has a placeholder (`docs/<name>.md`, `tests/NAME.py`) or is an example."""
    goes_on = text[end : end + 1] in ("<", "*", "…", "{", "$")
    return goes_on or re.search(r"/[A-Z]+\.py$", name) is not None or name in _FOREIGN


def _in_backticks(content: str, path: Path) -> Iterator[str]:
    word = content.split()[0] if content.split() else ""
    if word.endswith(_RUNTIME) or re.search(r"/[A-Z]+\.py$", word):
        return
    if _MODULE.fullmatch(word.rstrip("()")) and not _FILE.fullmatch(word):
        if not _is_name(word.rstrip("()")):
            yield word
    elif _FILE.fullmatch(word) and not word.startswith(tuple(f"{top}/" for top in TOP_LEVEL)):
        known = (path.parent / word).exists() or any(
            name == word or name.endswith(f"/{word.removeprefix('./')}") for name in _tracked()
        )
        if not known and Path(word).name not in _FOREIGN:
            yield word


def _is_name(dotted: str) -> bool:
    """Whether a dotted name is a module, a name inside one, or a setting."""
    if dotted in {setting.key for setting in SETTINGS}:
        return True
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        base = ROOT.joinpath(*parts[:length])
        source = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        if base.is_dir() or source.exists():
            return length == len(parts) or (source.exists() and parts[length] in _names(source))
    return False


@cache
def _names(source: Path) -> frozenset[str]:
    """The names that a module defines, those inside its classes included."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return frozenset(found)


@cache
def _requirements() -> frozenset[str]:
    """The ids of conformance requirements, and their stems: J26 for J26c."""
    tables = [
        tomllib.loads((ROOT / "conformance" / name).read_text())
        for name in ("requirements.toml", "client_requirements.toml")
    ]
    ids = {name for table in tables for name in table if name != "groups"}
    return frozenset(ids | {name[:3] for name in ids})


@cache
def _tracked() -> tuple[str, ...]:
    return tuple(path.relative_to(ROOT).as_posix() for path in files([]))


def _module_columns(text: str, path: Path) -> Iterator[str]:
    """Names in the table columns "module" and "file" that are no module near the page."""
    rows = [line.strip().strip("|").split("|") for line in text.split("\n") if "|" in line]
    header = [cell.strip() for cell in rows[0]] if rows else []
    for index, title in enumerate(header):
        if title not in ("module", "file"):
            continue
        for row in rows[2:]:
            names = re.findall(r"`([\w./-]+)`", row[index]) if index < len(row) else []
            yield from (name for name in names if not _is_near(name, path.parent))


def _is_near(name: str, folder: Path) -> bool:
    """Whether a name is a module or package below the folder, or a name inside such a module."""
    parts = name.removesuffix(".py").strip("/").replace(".", "/").split("/")
    for length in range(len(parts), 0, -1):
        tail = "/".join(parts[:length])
        if (folder / tail).exists() or (ROOT / tail).exists() or (folder / name).exists():
            return True
        if any(folder.rglob(f"{tail}.py")) or any(folder.rglob(f"{tail}/__init__.py")):
            return True
    return False


def _has_rule(readme: str, number: int, path: Path) -> bool:
    for folder in (ROOT, path.parent, *path.parent.parents):
        page = folder / f"{readme}.md"
        if page.exists() and page.is_relative_to(ROOT):
            return re.search(rf"(?m)^{number}\. ", page.read_text()) is not None
    return any(
        name.endswith(f"/{readme}.md")
        and re.search(rf"(?m)^{number}\. ", (ROOT / name).read_text()) is not None
        for name in _tracked()
    )


def _leads(target: str, path: Path) -> bool:
    """Whether a Markdown link leads to a file and, with a fragment, to a heading."""
    if re.match(r"[a-z]+:", target):
        return True
    name, _, fragment = target.partition("#")
    page = path.parent / name if name else path
    if not page.exists():
        return False
    return not fragment or fragment in _anchors(page)


@cache
def _anchors(page: Path) -> frozenset[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", page.read_text())
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings
    )


def main(arguments: list[str]) -> int:
    found = dangling(files(arguments))
    for each in found:
        print(f"{each.path.relative_to(ROOT)}:{each.line}: {each.reference}")
    print(f"dangling references: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
