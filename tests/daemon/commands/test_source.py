"""`recalld source`, with and without a daemon, and the same sources over REST."""

import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import child, recalld


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("a", "b"):
        file = root / f"{name}.md"
        file.write_text(f"# Title {name}\n\ntext of {name}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return root


def run(home: Path, *arguments: str, code: int = 0) -> str:
    done = recalld(home, "source", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def add_sync_and_remove(home: Path, tree: Path) -> None:
    assert "name: docs" in run(home, "add", "docs", str(tree), "--exclude", "b.md")
    assert "1 added" in run(home, "sync", "docs", "--no-vectors")
    shown = json.loads(run(home, "show", "docs", "--json"))
    assert (shown["healthy"], shown["kind"], shown["outcome"]["files"]) == (True, "filesystem", 1)
    assert "exists already" in run(home, "add", "docs", str(tree), code=64)
    assert "can be read; 1 files" in run(home, "test", "docs")
    assert "no source named" in run(home, "sync", "other", code=64)
    tree.rename(tree.with_name("elsewhere"))
    assert "No such file or directory" in run(home, "sync", "docs", code=69)
    assert "not healthy" in run(home, "list")
    tree.with_name("elsewhere").rename(tree)
    assert "1 documents deleted" in run(home, "remove", "docs")


def test_a_source_is_added_synced_and_removed_without_a_daemon(tmp_path: Path, tree: Path) -> None:
    add_sync_and_remove(tmp_path / "home", tree)


def test_a_source_is_added_synced_and_removed_with_a_daemon(tmp_path: Path, tree: Path) -> None:
    with child(tmp_path / "home", "serve", "--no-http") as served:
        until_ready(tmp_path / "home")
        add_sync_and_remove(tmp_path / "home", tree)
        del served


def until_ready(home: Path) -> None:
    for _ in range(200):
        if recalld(home, "health").returncode == 0:
            return
        time.sleep(0.05)
    raise AssertionError("the daemon did not start")


def test_a_mistake_in_the_definition_ends_with_78(tmp_path: Path) -> None:
    assert "must be s3://" in run(
        tmp_path, "add", "x", "--kind", "s3", "--url", "https://h", code=78
    )


def ask(address: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(
        address + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"} if body is not None else {},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_owner_manages_sources_over_rest(tmp_path: Path, tree: Path) -> None:
    home = tmp_path / "home"
    with child(home, "serve", "--bind", "127.0.0.1:0") as served:
        until_ready(home)
        address = json.loads(recalld(home, "status", "--json").stdout)["http"]
        new = {"name": "docs", "definition": {"kind": "filesystem", "root": str(tree)}}
        assert ask(address, "POST", "/sources", new)[0] == 200
        assert ask(address, "POST", "/sources", new)[0] == 409
        assert ask(address, "POST", "/sources", {"name": "x", "definition": {}})[0] == 400
        assert ask(address, "POST", "/sources/docs/sync", {}) == (
            200,
            {"name": "docs", "started": True},
        )
        for _ in range(200):
            _, shown = ask(address, "GET", "/sources/docs")
            if shown["last_sync"] and not shown["running"]:
                break
            time.sleep(0.05)
        assert shown["outcome"]["added"] == 2
        (source,) = ask(address, "GET", "/tools/sources")[1]["sources"]
        assert (source["configured"], source["doc_count"], source["last_error"]) == (True, 2, None)
        (row,) = ask(address, "POST", "/tools/search", {"query": "text of a", "limit": 1})[1][
            "results"
        ]
        assert row["source_url"] == f"{(tree / 'a.md').as_uri()}#L1-L3"
        status, refused = ask(
            address, "POST", "/documents", {"source": "docs", "source_id": "x", "body": "y"}
        )
        assert (status, "configured source" in refused["error"]["message"]) == (400, True)
        assert ask(address, "DELETE", f"/documents/{row['id']}")[0] == 400
        status, added = ask(address, "POST", "/documents", {"source_id": "x", "body": "# New\n"})
        assert (status, added["outcome"]) == (200, "created")
        assert ask(address, "DELETE", f"/documents/{added['id']}")[1]["removed"] is True
        assert ask(address, "DELETE", f"/documents/{added['id']}")[0] == 404
        assert ask(address, "DELETE", "/sources/docs")[1]["documents_deleted"] == 2
        assert ask(address, "GET", "/sources/docs")[0] == 404
        del served
