"""The files of the web UI: small, without inline code, HTML from text, or other hosts."""

import re
from pathlib import Path

import pytest

from daemon.web import assets

FILES = sorted(path for path in assets.FOLDER.iterdir())
OURS = [path for path in FILES if path.suffix == ".js" and path.name != "preact-htm.js"]
#: The page may weigh this much in all, the library included.
BUDGET = 120 * 1024


def test_all_files_together_stay_within_the_budget() -> None:
    assert sum(len(body) for body, _ in assets.load().values()) <= BUDGET


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_no_module_makes_html_or_code_from_text(path: Path) -> None:
    text = path.read_text()

    for name in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
    ):
        assert name not in text
    assert "dangerouslySet" not in text


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_file_names_another_host(path: Path) -> None:
    if path.name == "LICENCES.txt":
        return
    pattern = r"""["'(=](?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)"""
    hosts = set(re.findall(pattern, path.read_text(), re.IGNORECASE))

    assert hosts <= {"www.w3.org"}  # the name of the SVG namespace, which is not fetched


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (assets.FOLDER / assets.PAGE).read_text()

    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert "<style" not in page
    assert re.findall(r"\s(?:on\w+|style)=", page) == []


def exports(module: str) -> set[str]:
    """The names that a module exports, including those of modules that it passes on."""
    text = (assets.FOLDER / module).read_text()
    names = set(re.findall(r"export (?:async )?(?:const|function|class) (\w+)", text))
    for listed in re.findall(r"export\s*\{([^}]*)\}", text):
        names |= {piece.split(" as ")[-1].strip() for piece in listed.split(",")}
    for passed_on in re.findall(r'export \* from "\./([\w-]+\.js)"', text):
        names |= exports(passed_on)
    return names


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_every_imported_name_is_exported_and_used(path: Path) -> None:
    text = path.read_text()
    code = re.sub(r"(?m)^(?:import|\s*//).*$", "", text)
    for listed, module in re.findall(r'import \{([^}]*)\} from "\./([\w-]+\.js)"', text):
        names = {name.strip() for name in listed.split(",")}
        assert names <= exports(module)
        assert {name for name in names if not re.search(rf"\b{name}\b", code)} == set()


def test_the_library_comes_with_its_licences() -> None:
    text = (assets.FOLDER / "LICENCES.txt").read_text()

    assert "MIT License" in text
    assert "Apache License 2.0" in text


def test_licences_are_in_the_package_but_not_served() -> None:
    assert "LICENCES.txt" not in assets.load()
