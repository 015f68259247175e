"""A run compares the source with the ledger and writes the differences."""

import os
import shutil
from collections.abc import AsyncGenerator, Sequence

import pytest

from daemon.exit_codes import UNAVAILABLE, Exit
from daemon.sources.connectors.connector import (
    Entry,
    FileUnreadable,
    FileVanished,
    Listed,
    Unlisted,
)
from daemon.sources.connectors.factories import Connectors
from daemon.sources.definition import Definition
from store.model import Query
from tests.daemon.sources.kit import BANK, Bench

GUIDE = "# Authentication Guide\n\nIntro.\n\n## Tokens\n\nJWT tokens are signed with the key.\n"


async def test_a_first_run_stores_every_file_and_a_second_one_changes_nothing(docs: Bench) -> None:
    docs.write("docs/auth.md", GUIDE)
    docs.write("notes.txt", "about deployments")

    first = await docs.sync()
    assert (first.added, first.files, first.is_complete) == (2, 2, True)
    guide = (await docs.documents())["docs/auth.md"]
    assert (guide.title, guide.source, guide.body) == ("Authentication Guide", "docs", GUIDE)
    assert guide.url == (docs.root / "docs/auth.md").as_uri()

    second = await docs.sync()
    assert (second.unchanged, second.has_changed) == (2, False)


async def test_chunks_know_their_heading_and_their_lines(docs: Bench) -> None:
    long = "".join(f"## Part {number}\n\n{'word ' * 60}\n\n" for number in range(3))
    docs.write("guide.md", f"# Guide\n\n{'intro ' * 60}\n\n{long}")
    await docs.sync()

    (document,) = (await docs.documents()).values()
    chunks = await docs.engine.chunks(BANK, document.id)
    lines = document.body.split("\n")
    for chunk in chunks:
        first, last = chunk.details["lines"]
        heading = chunk.details["heading"].split(" > ")[-1]
        assert lines[first - 1].lstrip("# ") == heading
        assert lines[last - 1].strip() in chunk.text
    assert chunks[-1].details["heading"] == "Guide > Part 2"


async def test_a_changed_file_is_updated_and_keeps_its_id(docs: Bench) -> None:
    docs.write("a.md", "first version")
    await docs.sync()
    before = (await docs.documents())["a.md"].id

    docs.write("a.md", "second version", age=50)
    outcome = await docs.sync()

    assert (outcome.changed, outcome.added) == (1, 0)
    after = (await docs.documents())["a.md"]
    assert (after.id, after.body) == (before, "second version")
    assert await docs.found("second")
    assert not await docs.found("first")


async def test_a_touched_file_causes_no_chunking_and_no_embedding(docs: Bench) -> None:
    docs.write("a.md", GUIDE)
    await docs.sync(vectors=True)
    embedded = len(docs.embedder.texts)
    before = (await docs.documents())["a.md"]

    docs.write("a.md", GUIDE, age=10)  # the same bytes with another time
    outcome = await docs.sync(vectors=True)

    assert (outcome.unchanged, outcome.has_changed) == (1, False)
    assert (await docs.documents())["a.md"] == before
    assert len(docs.embedder.texts) == embedded


async def test_an_unchanged_file_is_not_read_again_unless_the_run_is_full(docs: Bench) -> None:
    file = docs.write("a.md", "first")
    await docs.sync()
    times = file.stat()
    file.write_bytes(b"other")  # the same size; the time and the inode are put back
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert (await docs.sync()).unchanged == 1
    assert (await docs.documents())["a.md"].body == "first"
    assert (await docs.sync(full=True)).changed == 1
    assert (await docs.documents())["a.md"].body == "other"


async def test_a_change_in_the_same_clock_tick_as_the_listing_is_found(docs: Bench) -> None:
    file = docs.write("a.md", "first", age=0)
    await docs.sync()
    times = file.stat()
    file.write_bytes(b"other")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))

    assert (await docs.sync()).changed == 1


async def test_a_renamed_file_keeps_id_chunks_and_vectors(docs: Bench) -> None:
    docs.write("old/name.txt", "a text whose title is the name of its file")
    await docs.sync(vectors=True)
    before = (await docs.documents())["old/name.txt"]
    chunks = {chunk.id for chunk in await docs.engine.chunks(BANK, before.id)}
    embedded = len(docs.embedder.texts)

    (docs.root / "old").rename(docs.root / "new")
    outcome = await docs.sync(vectors=True)

    assert (outcome.moved, outcome.added, outcome.deleted) == (1, 0, 0)
    after = (await docs.documents())["new/name.txt"]
    assert (after.id, after.title) == (before.id, "new/name.txt")
    assert {chunk.id for chunk in await docs.engine.chunks(BANK, after.id)} == chunks
    await docs.engine.search(Query(bank=BANK, text="vim", mode="semantic"))
    assert docs.embedder.texts[embedded:] == ["vim"]
    assert await docs.is_sound()


async def test_an_equal_file_at_the_old_place_of_a_renamed_one_is_another_document(
    docs: Bench,
) -> None:
    docs.write("a.md", GUIDE)
    await docs.sync()
    first = (await docs.documents())["a.md"].id
    (docs.root / "a.md").rename(docs.root / "b.md")
    await docs.sync()
    docs.write("a.md", GUIDE)
    outcome = await docs.sync()

    assert outcome.added == 1
    documents = await docs.documents()
    assert documents["b.md"].id == first != documents["a.md"].id
    assert await docs.is_sound()


async def test_a_renamed_file_that_is_edited_later_keeps_its_unchanged_chunks(docs: Bench) -> None:
    parts = [f"## Part {number}\n\n{f'word{number} ' * 60}\n\n" for number in range(4)]
    docs.write("a.md", "# T\n\n" + "".join(parts))
    await docs.sync()
    (docs.root / "a.md").rename(docs.root / "b.md")
    await docs.sync()
    (document,) = (await docs.documents()).values()
    before = {chunk.id for chunk in await docs.engine.chunks(BANK, document.id)}

    docs.write("b.md", "# T\n\n" + "".join(parts[:3]) + "## Part 3\n\nnew text\n", age=50)
    await docs.sync()

    after = {chunk.id for chunk in await docs.engine.chunks(BANK, document.id)}
    assert len(before & after) == 3


async def test_deleted_files_disappear(docs: Bench) -> None:
    for number in range(20):
        docs.write(f"{number}.md", f"text{number}")
    await docs.sync()
    (docs.root / "7.md").unlink()

    assert (await docs.sync()).deleted == 1
    assert not await docs.found("text7")
    assert len(await docs.paths()) == 19
    assert await docs.is_sound()


async def test_many_deletions_are_withheld_and_applied_up_to_the_reported_number(
    docs: Bench,
) -> None:
    for number in range(40):
        docs.write(f"{number}.md", f"text{number}")
    await docs.sync()
    for number in range(11):
        (docs.root / f"{number}.md").unlink()
    docs.write("new.md", "a new file")

    withheld = await docs.sync()
    assert (withheld.withheld, withheld.deleted, withheld.added) == (11, 0, 1)
    assert len(await docs.paths()) == 41
    (report,) = await docs.sources.reports(BANK)
    assert (report.is_healthy, report.withheld_deletions) == (True, 11)

    (docs.root / "20.md").unlink()  # one more than was reported
    assert (await docs.sync(allow_deletions=True)).withheld == 12
    assert (await docs.sync(allow_deletions=True)).deleted == 12
    assert len(await docs.paths()) == 29
    (report,) = await docs.sources.reports(BANK)
    assert report.withheld_deletions == 0


async def test_allowing_deletions_that_were_never_reported_applies_none(docs: Bench) -> None:
    for number in range(20):
        docs.write(f"{number}.md", f"text{number}")
    await docs.sync()
    for number in range(20):
        (docs.root / f"{number}.md").unlink()

    assert (await docs.sync(allow_deletions=True)).withheld == 20


async def test_a_missing_root_changes_nothing_and_is_reported(docs: Bench) -> None:
    docs.write("a.md", "text")
    await docs.sync()
    docs.root.rename(docs.directory / "elsewhere")

    with pytest.raises(Exit) as refused:
        await docs.sync()

    assert refused.value.code == UNAVAILABLE
    assert await docs.paths() == {"a.md"}
    (report,) = await docs.sources.reports(BANK)
    assert not report.is_healthy
    assert report.last_error == f"{docs.root}: No such file or directory"

    (docs.directory / "elsewhere").rename(docs.root)
    await docs.sync()
    (report,) = await docs.sources.reports(BANK)
    assert report.is_healthy


async def test_another_folder_in_the_place_of_the_root_deletes_nothing(docs: Bench) -> None:
    docs.write("a.md", "text")
    await docs.sync()
    shutil.move(docs.root, docs.directory / "elsewhere")
    docs.root.mkdir()  # as after unmounting: the mount point is an empty folder

    outcome = await docs.sync()

    assert (outcome.withheld, outcome.deleted) == (1, 0)
    assert "another folder" in outcome.withheld_reason
    assert (await docs.sync(allow_deletions=True)).deleted == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every folder")
async def test_a_folder_that_cannot_be_listed_stops_all_deletions(docs: Bench) -> None:
    docs.write("open/a.md", "text a")
    docs.write("shut/b.md", "text b")
    await docs.sync()
    (docs.root / "open/a.md").unlink()
    (docs.root / "shut").chmod(0)
    try:
        outcome = await docs.sync()
    finally:
        (docs.root / "shut").chmod(0o700)

    assert (outcome.is_complete, outcome.deleted, outcome.failed) == (False, 0, 1)
    assert await docs.paths() == {"open/a.md", "shut/b.md"}
    (report,) = await docs.sources.reports(BANK)
    assert "shut: Permission denied" in (report.last_error or "")


async def test_another_definition_asks_before_it_deletes(docs: Bench) -> None:
    docs.write("a.md", "text a")
    docs.write("b.md", "text b")
    await docs.sync()

    await docs.restart(exclude=["b.md"])
    outcome = await docs.sync()
    assert (outcome.withheld, outcome.unchanged) == (1, 1)
    assert outcome.withheld_reason == "the definition of the source has changed"
    assert (await docs.sync(allow_deletions=True)).deleted == 1
    assert await docs.paths() == {"a.md"}


async def test_a_file_that_cannot_be_decoded_is_counted_and_named_and_stores_nothing(
    docs: Bench,
) -> None:
    docs.write("bad.txt", bytes(range(1, 256)) * 20 + b"\xff\xfe\x00")
    docs.write("binary.md", b"a\0b")
    docs.write("empty.md", b"")
    docs.write("good.md", "text")

    outcome = await docs.sync()

    assert (outcome.added, outcome.failed) == (1, 3)
    reasons = {problem.source_id: problem.reason for problem in outcome.problems}
    assert reasons["binary.md"] == "is binary"
    assert reasons["empty.md"] == "has no text"
    assert await docs.paths() == {"good.md"}
    assert (await docs.sync()).failed == 0  # unchanged files are not parsed again


async def test_a_file_that_becomes_unusable_takes_its_document_along(docs: Bench) -> None:
    docs.write("a.md", "text")
    await docs.sync()
    docs.write("a.md", b"a\0b", age=50)

    assert (await docs.sync()).failed == 1
    assert await docs.paths() == set()
    docs.write("a.md", "text again", age=40)
    assert (await docs.sync()).added == 1


async def test_a_dry_run_names_the_changes_and_applies_none(docs: Bench) -> None:
    docs.write("a.md", "text a")
    docs.write("b.md", "text b")
    docs.write("c.md", "text c")
    await docs.sync()
    docs.write("a.md", "text a2", age=50)
    (docs.root / "b.md").rename(docs.root / "b2.md")
    (docs.root / "c.md").unlink()
    docs.write("d.md", "text d")

    outcome = await docs.sync(dry_run=True)

    assert set(outcome.changes) == {"~ a.md", "> b.md -> b2.md", "- c.md", "+ d.md"}
    assert await docs.paths() == {"a.md", "b.md", "c.md"}


async def test_documents_of_other_callers_under_the_same_name_are_left_alone(docs: Bench) -> None:
    from store.model import NewDocument

    await docs.engine.upsert_document(
        BANK, NewDocument(source="docs", source_id="elsewhere", body="not from a file")
    )
    docs.write("a.md", "text")
    await docs.sync()

    assert await docs.paths() == {"a.md", "elsewhere"}


async def test_an_erased_document_is_gone_from_the_ledger_too(docs: Bench) -> None:
    docs.write("a.md", "text")
    await docs.sync()
    document = (await docs.documents())["a.md"]
    await docs.engine.erase(BANK, documents=[document.id])

    assert await docs.engine.source_files(BANK, "docs") == []


async def test_an_imported_bank_is_taken_over_without_a_new_embedding(docs: Bench) -> None:
    docs.write("a.md", GUIDE)
    docs.write("gone.md", "text")
    await docs.sync()
    await docs.engine.export(BANK, docs.directory / "export.jsonl")
    await docs.engine.delete_bank(BANK)
    await docs.engine.import_file(BANK, docs.directory / "export.jsonl")
    before = (await docs.documents())["a.md"]
    (docs.root / "gone.md").unlink()

    outcome = await docs.sync()

    assert (await docs.documents())["a.md"] == before
    assert (outcome.withheld, outcome.deleted) == (1, 0)


class HalfBlind:
    """A connector that cannot list a part of its source."""

    @property
    def place(self) -> str:
        return ""

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        yield Listed(source_id="a.md", text="text a", version="1")
        yield Unlisted(source_id="shut", reason="Permission denied")

    async def read(self, listed: Listed) -> bytes:
        raise AssertionError("the listing has delivered the text")

    async def close(self) -> None:
        pass


class Vanishing(HalfBlind):
    """A connector one of whose files is deleted after the listing, and another is unreadable."""

    async def entries(self, under: Sequence[str] = ()) -> AsyncGenerator[Entry]:
        for name in ("a.md", "gone.md", "shut.md"):
            yield Listed(source_id=name, version="2")

    async def read(self, listed: Listed) -> bytes:
        match listed.source_id:
            case "gone.md":
                raise FileVanished(listed.source_id)
            case "shut.md":
                raise FileUnreadable("Permission denied")
            case _:
                return b"text a"


def use_connector(docs: Bench, connector: HalfBlind) -> None:
    async def factory(_definition: Definition) -> HalfBlind:
        return connector

    docs.sources._connectors = Connectors(docs.directory, {"filesystem": factory})


async def test_a_run_that_could_not_list_everything_deletes_nothing(docs: Bench) -> None:
    docs.write("a.md", "text a")
    docs.write("b.md", "text b")
    await docs.sync()
    use_connector(docs, HalfBlind())

    outcome = await docs.sync()

    assert (outcome.is_complete, outcome.deleted, outcome.withheld) == (False, 0, 0)
    assert await docs.paths() == {"a.md", "b.md"}
    (report,) = await docs.sources.reports(BANK)
    assert (report.is_healthy, "shut: Permission denied" in (report.last_error or "")) == (
        False,
        True,
    )


async def test_a_file_that_vanishes_or_cannot_be_read_keeps_its_document_for_now(
    docs: Bench,
) -> None:
    for name in ("a.md", "gone.md", "shut.md"):
        docs.write(name, f"text {name}")
    await docs.sync()
    use_connector(docs, Vanishing())

    outcome = await docs.sync()

    assert (outcome.failed, outcome.deleted, outcome.is_complete) == (1, 0, True)
    assert await docs.paths() == {"a.md", "gone.md", "shut.md"}
