"""Eighteen look-ups in a manual: the right page is first, and its snippet contains the answer."""

import tomllib
from pathlib import Path
from typing import Any, cast

import pytest

from daemon.dialects import harness
from daemon.tools.toolkit import Toolkit
from store.model import NewDocument
from store.sqlite.engine import open_engine
from tests.daemon.dialects.awareness.test_laws import OneCaller
from tests.support.clock import Clock

pytestmark = pytest.mark.anyio

LOOKUPS = tomllib.loads(Path(__file__).with_name("lookups.toml").read_text("utf-8"))
FIRST = 17
ANSWERED = 16


@pytest.mark.parametrize("mode", ["hybrid", "semantic"])
async def test_a_search_returns_the_passage_that_answers(tmp_path: Path, mode: Any) -> None:
    async with open_engine(tmp_path, now=Clock()) as engine:
        for page in LOOKUPS["page"]:
            document = NewDocument(
                source="manual",
                source_id=page["path"],
                body=page["body"].strip(),
                title=harness.title_of(page["body"]),
                content_type="text/markdown",
            )
            await engine.upsert_document("bank", document)
        await engine.settle("bank")
        toolkit = Toolkit(engine=engine, now=Clock())
        wrong: list[str] = []
        unanswered: list[str] = []
        for lookup in LOOKUPS["lookup"]:
            arguments = harness.SearchArguments(query=lookup["question"], mode=mode)
            found = await harness.search(toolkit, arguments, cast("Any", OneCaller("bank")))
            row = found.results[0]
            if row.source_id != lookup["path"]:
                wrong.append(lookup["question"])
            if lookup["answer"] not in " ".join(row.snippet.split()):
                unanswered.append(lookup["question"])
        assert len(LOOKUPS["lookup"]) - len(wrong) >= FIRST, wrong
        assert len(LOOKUPS["lookup"]) - len(unanswered) >= ANSWERED, unanswered
