"""The clients as the web UI shows them."""

import json
from pathlib import Path

import pytest

from daemon.setup.clients import CLIENTS, Places
from daemon.setup.overview import Overview
from store.errors import NotFound


def overview(home: Path) -> Overview:
    places = Places(home=home, project=home, variables={"PATH": ""}, platform="linux")
    return Overview(home / "state", places)


def test_every_client_has_a_file_and_an_entry_that_starts_recalld(tmp_path: Path) -> None:
    shown = overview(tmp_path).clients().clients

    assert [each.name for each in shown] == [client.name for client in CLIENTS]
    for each in shown:
        assert each.files
        assert "stdio" in each.entry
        assert not each.is_installed
        assert not each.is_connected


def test_a_client_whose_file_has_the_entry_is_connected(tmp_path: Path) -> None:
    before = {each.name: each for each in overview(tmp_path).clients().clients}["cursor"]
    file = Path(before.files[0].path)
    file.parent.mkdir(parents=True)
    file.write_text(before.entry)

    after = {each.name: each for each in overview(tmp_path).clients().clients}["cursor"]

    assert after.is_installed
    assert after.is_connected
    assert after.files[0].state == "has the entry"


def test_a_foreign_entry_is_reported_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"recalld": {"url": "http://secret-token@x/"}}}))

    shown = {each.name: each for each in overview(tmp_path).clients().clients}["cursor"]

    assert shown.files[0].state == "has another entry"
    assert "secret" not in repr(shown.files)


def test_a_file_that_cannot_be_parsed_is_reported_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text("{ broken")

    shown = {each.name: each for each in overview(tmp_path).clients().clients}["cursor"]

    assert shown.files[0].state == "cannot be read"
    assert file.read_text() == "{ broken"


def test_an_unknown_client_cannot_be_tested(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        overview(tmp_path).test("nothing")
