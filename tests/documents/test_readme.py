"""The example in README.md shows real output: replaying it gives the same responses."""

import json
import re
import shlex
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.processes import PATIENCE, child, recalld, status

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
ADDRESS = "localhost:7331"


def transcript() -> list[tuple[list[str], str]]:
    """Each command of the example, split into words, with the output shown below it."""
    [block] = re.findall(r"(?s)```console\n(.*?)```", README)
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(shlex.split(head), shown) for head, _, shown in (p.partition("\n") for p in parts)]


def without_ids(shown: Any) -> Any:
    """Replace generated values: ids and scores differ between runs."""
    if isinstance(shown, dict):
        return {
            key: "…" if key in ("id", "source_id") else without_ids(value)
            for key, value in shown.items()
            if key != "score"
        }
    return [without_ids(each) for each in shown] if isinstance(shown, list) else shown


@contextmanager
def serving(home: Path) -> Generator[str]:
    """`recalld serve` on a free port; gives its base URL."""
    with child(home, "serve", "--bind", "127.0.0.1:0") as daemon:
        deadline = time.monotonic() + PATIENCE
        while recalld(home, "health").returncode == 2:
            assert daemon.process.poll() is None, daemon.errors()
            assert time.monotonic() < deadline
        yield status(home)["http"]


def fetch(url: str, body: str | None = None) -> Any:
    request = urllib.request.Request(
        url,
        data=body.encode() if body is not None else None,
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def test_the_example_gives_the_output_shown(tmp_path: Path) -> None:
    commands = transcript()
    assert [words[0] for words, _ in commands] == ["curl", "curl", "curl", "recalld"]
    with serving(tmp_path) as base:
        for words, shown in commands:
            if words[0] == "recalld":
                printed = recalld(tmp_path, *words[1:]).stdout
                assert [line.split()[:2] for line in printed.splitlines()] == [
                    line.split()[:2] for line in shown.splitlines()
                ]
                continue
            curl, silent, form, body, url = words
            assert (curl, silent, form) == ("curl", "-s", "--json")
            answer = fetch(base + url.removeprefix(ADDRESS), body)
            assert without_ids(answer) == without_ids(json.loads(shown))


def test_the_http_page_lists_every_route_and_status_of_the_openapi_document(
    tmp_path: Path,
) -> None:
    page = (ROOT / "docs" / "http-api.md").read_text()
    with serving(tmp_path) as base:
        document = fetch(f"{base}/openapi.json")
    for path in document["paths"]:
        # The table of memories gives paths relative to /api/v1/banks.
        name = path.removeprefix("/api/v1/banks") or "/api/v1/banks"
        shown = f" {name}`" in page or f"`{name}`" in page
        assert shown or path.startswith("/tools/"), path
    rows = re.findall(r"^\| ([\d, ]+) \|", page, re.MULTILINE)
    documented = {status for row in rows for status in row.split(", ")}
    statuses = {
        status
        for operations in document["paths"].values()
        for operation in operations.values()
        for status in operation["responses"]
    }
    assert statuses - {"200", "201"} == documented


def test_the_figures_come_from_the_benchmark_page() -> None:
    table = README.partition("| measured |")[2].partition("\n\n")[0]
    figures = re.findall(r"\d+,\d{3}|\d+(?:\.\d+)? ms", table)
    assert len(figures) >= 8
    benchmarks = (ROOT / "scripts" / "README.md").read_text().replace(" / ", " ms / ")
    for figure in figures:
        assert figure in benchmarks, figure
