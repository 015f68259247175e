"""The documents of a source follow it to another bank."""

from tests.daemon.sources.kit import BANK, Bench


async def test_documents_follow_their_source_to_another_bank(docs: Bench) -> None:
    docs.write("a.md", "about apples")
    docs.write("b.md", "about pears")
    await docs.sync()

    await docs.restart(bank="work")
    outcome = await docs.sync()

    assert outcome.added == 2
    assert await docs.paths() == set()
    assert await docs.engine.source_files(BANK, "docs") == []
    moved = {header.source_id for header in await docs.engine.documents("work", limit=9)}
    assert moved == {"a.md", "b.md"}
    assert docs.sources.state("docs").bank == "work"
    assert await docs.is_sound()


async def test_the_former_bank_is_kept_while_the_new_one_lacks_its_documents(docs: Bench) -> None:
    for number in range(30):
        docs.write(f"{number}.md", f"about apples {number}")
    await docs.sync()
    for number in range(20):
        (docs.root / f"{number}.md").unlink()

    await docs.restart(bank="work")
    await docs.sync()
    assert len(await docs.paths()) == 30

    for number in range(20):
        docs.write(f"{number}.md", f"about apples {number}")
    await docs.sync()
    assert await docs.paths() == set()
    assert await docs.engine.count_synced("work", "docs") == 30
