"""A database of every released schema opens, migrates and keeps its content."""

import gzip
import sqlite3
from pathlib import Path

import pytest

from store.model import AgentProfile, Evidence, NewCard, NewDocument, NewMemory, NewTask, Query
from store.sqlite.engine import EmbeddedEngine, open_engine
from store.sqlite.migrate import migrations
from tests.support.plain_ranking import PlainRanking

pytestmark = pytest.mark.anyio

FIXTURES = Path(__file__).parent / "fixtures"
SCHEMAS = sorted(path.name for path in FIXTURES.iterdir())  # such as "bank1-catalogue1"


async def furnish(engine: EmbeddedEngine) -> None:
    """The contents of every fixture: a little of each kind."""
    bank = "fixture"
    await engine.sessions.mint(transport="stdio", id="session_fixture", client_name="editor")
    await engine.put(bank, NewMemory(text="The café opens at nine", metadata={"n": 1}, tags=("t",)))
    await engine.put(bank, NewMemory(kind="event", text="Tests pass", session="session_fixture"))
    await engine.upsert_document(
        bank, NewDocument(source="docs", source_id="a.md", title="A", body="# A\n\nA body of text.")
    )
    card = NewCard(
        category="decision", title="Database", summary="SQLite it is.",
        evidence=(Evidence(snippet="Tests pass"),),
    )  # fmt: skip
    await engine.put_cards(bank, [card])
    await engine.put_tasks(bank, [NewTask(title="Write it down", priority="high")])
    await engine.put_profile(bank, AgentProfile(agent_role="reviewer", title="Reviewer"))
    gone = await engine.put(bank, NewMemory(text="Forgotten"))
    await engine.forget(bank, [gone.id])


def test_there_is_a_small_fixture_for_the_first_and_the_present_schema() -> None:
    present = f"bank{len(migrations('bank'))}-catalogue{len(migrations('catalogue'))}"

    assert {"bank1-catalogue1", present} <= set(SCHEMAS)
    assert all(file.stat().st_size <= 100_000 for file in FIXTURES.rglob("*.gz"))


def unpack(schema: str, directory: Path) -> None:
    """A data directory as a program with that schema left it."""
    directory.mkdir()
    packed = FIXTURES / schema
    catalogue = directory / "catalogue.db"
    catalogue.write_bytes(gzip.decompress((packed / "catalogue.db.gz").read_bytes()))
    connection = sqlite3.connect(catalogue)
    (id,) = connection.execute("SELECT id FROM banks").fetchone()
    connection.close()
    bank = directory / "banks" / id / "bank.db"
    bank.parent.mkdir(parents=True)
    bank.write_bytes(gzip.decompress((packed / "bank.db.gz").read_bytes()))
    # The vectors in these files were made up by a fake that did not mind whether they are numbers,
    # and `check` does. No model made them, so they are to be made anew.
    connection = sqlite3.connect(bank)
    connection.execute("UPDATE vectors SET model = NULL, bytes = NULL")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("schema", SCHEMAS)
async def test_a_bank_of_an_earlier_schema_opens_with_its_content(
    tmp_path: Path, schema: str
) -> None:
    directory = tmp_path / "data"
    unpack(schema, directory)

    async with open_engine(directory, ranking=PlainRanking) as engine:
        assert (await engine.check("fixture")).problems == ()
        stats = await engine.stats("fixture")
        assert stats.by_kind == {"card": 1, "chunk": 1, "event": 1, "memory": 1, "task": 1}
        found = await engine.search(Query(bank="fixture", text="cafe opens"))
        assert [hit.item.text for hit in found.hits][:1] == ["The café opens at nine"]
        (card,), _ = await engine.cards("fixture")
        assert card.is_verified
        (task,), _ = await engine.tasks("fixture")
        assert (task.title, task.priority) == ("Write it down", "high")
        assert (await engine.profile("fixture", "reviewer")).title == "Reviewer"
        assert await engine.sessions.resume("session_fixture") is not None
