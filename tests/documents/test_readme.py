"""The example in README.md shows real output: replaying it gives the same responses."""

import json
import re
import shlex
import time
import urllib.request
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


def test_the_example_gives_the_output_shown(tmp_path: Path) -> None:
    commands = transcript()
    assert [words[0] for words, _ in commands] == ["curl", "curl", "curl", "recalld"]
    with child(tmp_path, "serve", "--bind", "127.0.0.1:0") as daemon:
        deadline = time.monotonic() + PATIENCE
        while recalld(tmp_path, "health").returncode == 2:
            assert daemon.process.poll() is None, daemon.errors()
            assert time.monotonic() < deadline
        base = status(tmp_path)["http"]
        for words, shown in commands:
            if words[0] == "recalld":
                printed = recalld(tmp_path, *words[1:]).stdout
                assert [line.split()[:2] for line in printed.splitlines()] == [
                    line.split()[:2] for line in shown.splitlines()
                ]
                continue
            curl, silent, form, body, url = words
            assert (curl, silent, form) == ("curl", "-s", "--json")
            request = urllib.request.Request(
                base + url.removeprefix(ADDRESS),
                data=body.encode(),
                headers={"content-type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=30) as response:
                answer = json.load(response)
            assert without_ids(answer) == without_ids(json.loads(shown))
