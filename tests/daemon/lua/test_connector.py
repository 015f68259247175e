"""Sources of kind `script`."""

from pathlib import Path
from typing import Any

import pytest

from daemon.lua.connector import script_connectors
from daemon.sources.connectors.connector import Entry, Listed, Skipped, SourceUnavailable, Unlisted
from daemon.sources.definition import Definition
from tests.support.scripts import settings_of


async def entries(folder: Path, body: str, under: tuple[str, ...] = (), **more: Any) -> list[Entry]:
    path = folder / "source.lua"
    text = f"connector = {{}}\nfunction connector.scan(config, context)\n{body}\nend\n"
    path.write_text(text)
    definition = Definition(name="tickets", kind="script", path=str(path), **more)
    connector = await script_connectors(settings_of(folder))(definition)
    try:
        return [entry async for entry in connector.entries(under)]
    finally:
        await connector.close()


async def test_a_script_lists_documents_with_their_text(tmp_path: Path) -> None:
    body = """return {
      { source_id = "a/1", body = config.greeting, title = "One", author = "Ada",
        source_url = "https://example.com/1", updated_at = "2026-11-16T10:30:00Z",
        created_at = 1700000000, metadata_json = '{"state": "open"}' },
      { source_id = "b/2", body = "two", updated_at = "2026-11-16 10:30:00" },
    }"""
    config = {"greeting": "hello"}
    first, second = await entries(tmp_path, body, config=config)
    assert first == Listed(
        source_id="a/1",
        text="hello",
        title="One",
        author="Ada",
        url="https://example.com/1",
        metadata={"state": "open"},
        created_at=1_700_000_000_000,
        updated_at=1_794_825_000_000,
    )
    assert isinstance(second, Listed)
    assert second.updated_at == 1_794_825_000_000
    assert await entries(tmp_path, body, ("b",), config=config) == [second]


async def test_a_bad_item_does_not_stop_the_others(tmp_path: Path) -> None:
    body = """return { { source_id = "1", body = "one" }, { body = "x" }, 3,
      { source_id = "2", body = " " }, { source_id = "3", body = "x", updated_at = "soon" } }"""
    found = await entries(tmp_path, body)
    assert [type(entry) for entry in found] == [Listed, Unlisted, Unlisted, Skipped, Skipped]


async def test_an_empty_source_has_no_documents(tmp_path: Path) -> None:
    assert await entries(tmp_path, "return {}") == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("error('no connection')", "source.lua:3: no connection"),
        ("sleep(60)", "source.lua: timed out after 1 seconds"),
        ("return {a = 1}", "source.lua: scan must return an array of documents"),
        (
            "local rows = context.search('x') return rows",
            "source.lua:3: search: there is no memory here",
        ),
    ],
)
async def test_a_scan_that_fails_makes_the_source_unavailable(
    tmp_path: Path, body: str, reason: str
) -> None:
    with pytest.raises(SourceUnavailable, match=reason):
        await entries(tmp_path, body, timeout=1)


async def test_a_missing_script_makes_the_source_unavailable(tmp_path: Path) -> None:
    definition = Definition(name="x", kind="script", path=str(tmp_path / "none.lua"))
    with pytest.raises(SourceUnavailable, match="No such file"):
        await script_connectors(settings_of(tmp_path))(definition)
