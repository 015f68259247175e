"""Search quality on a small bank with the real model and known answers.

The bounds are a little below the figures measured when this was written, so that they detect a
change that makes search worse. `scripts/bench.py recall` measures quality in full.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from store.model import MODES, Mode, NewMemory, Query
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine

BANK = "work"
MEMORIES = (
    "Priya prefers tabs over spaces and a line length of one hundred.",
    "The staging database runs PostgreSQL 16 on host quartz.",
    "Production deploys happen on Tuesdays after the stand-up, never on Fridays.",
    "The API rate limit is 120 requests per minute for each key.",
    "Tomas is allergic to peanuts, so no satay when ordering lunch.",
    "The invoice job failed because the tax table had no row for Estonia.",
    "Use `uv sync --frozen` in CI; plain pip install broke the cache.",
    "Our Kubernetes cluster is called marmot and has six worker nodes.",
    "The logo colour is #1f6feb, and the dark theme uses #0d1117.",
    "Ingrid is on parental leave until the end of March.",
    "The mobile app crashed on Android 9 when the locale was Turkish.",
    "We chose msgspec instead of pydantic because decoding was nine times faster.",
    "The backup bucket is encrypted and its key rotates every ninety days.",
    "Feature flag new_checkout is on for ten percent of users.",
    "The office plants are watered by Luis every Monday morning.",
    "A memory leak in the image resizer was fixed by closing file handles.",
    "The customer in Lisbon asked for a refund of order 48213.",
    "Unit tests must not touch the network; use the recorded fixtures.",
    "The wifi password of the meeting room is written under the projector.",
    "Search latency went from 80 to 12 milliseconds after adding an index.",
    "The contract with the translation agency ends in September.",
    "Config lives in settings/base.toml, secrets come from the environment.",
    "The on-call phone is handed over on Wednesday at noon.",
    "Amara found that the CSV import drops rows with a semicolon in quotes.",
    "The retro decided to keep pull requests under four hundred lines.",
    "Timestamps are stored in UTC and shown in the reader's time zone.",
    "The legacy SOAP service will be switched off in June.",
    "Jonas wrote the parser in parse_header() and documented the grammar.",
    "The demo for investors is on the 14th, in the big room upstairs.",
    "Emails bounce when the sender domain lacks a DKIM record.",
    "We pay about 900 euros a month for cloud storage.",
    "The night build takes forty minutes, most of it compiling the C++ engine.",
    "Users complained that the export button is hidden on small screens.",
    "Maya's cat Miso likes to sit on the keyboard during calls.",
    "The French translation still says brouillon instead of ébauche.",
    "Version v2.4.1 introduced the bug with duplicate notifications.",
)
QUESTIONS = (
    ("what code style does Priya like", 0),
    ("which database version is on the staging machine", 1),
    ("when do we release to production", 2),
    ("how many calls per minute may a client make", 3),
    ("food allergies in the team", 4),
    ("why did billing break", 5),
    ("how should dependencies be installed on the build server", 6),
    ("how big is the k8s cluster", 7),
    ("brand colours", 8),
    ("who is away with a baby", 9),
    ("phone application failing for people in Turkey", 10),
    ("reason for picking the serialization library", 11),
    ("how often is the encryption key changed", 12),
    ("new_checkout rollout", 13),
    ("who takes care of the greenery", 14),
    ("RAM growing without end in picture scaling", 15),
    ("money back for a Portuguese client", 16),
    ("may tests use the internet", 17),
    ("how did we make queries faster", 19),
    ("where do I put credentials", 21),
    ("when does the pager change hands", 22),
    ("problem with reading comma separated files", 23),
    ("maximum size of a PR", 24),
    ("which time zone do we save dates in", 25),
    ("parse_header", 27),
    ("presentation for the people who fund us", 28),
    ("mail is rejected by the other server", 29),
    ("monthly cost of object storage", 30),
    ("why is the nightly build slow", 31),
    ("pets of colleagues", 33),
    ("v2.4.1", 35),
)
NONSENSE = ("blorp fnord xyzzy", "asdf qwer zxcv", "qqqq wwww", "!!!!", "zzkj ppqr")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EmbeddedEngine]:
    async with open_engine(tmp_path, ranking=HybridRanking) as engine:
        await engine.put_many(BANK, [NewMemory(text=text) for text in MEMORIES])
        await engine.settle(BANK)
        yield engine


async def found_at(engine: EmbeddedEngine, question: str, right: int, mode: Mode) -> int | None:
    found = await engine.search(Query(bank=BANK, text=question, mode=mode, limit=5))
    order = [hit.item.text for hit in found.hits]
    return order.index(MEMORIES[right]) if MEMORIES[right] in order else None


async def test_hybrid_search_finds_texts_by_meaning(engine: EmbeddedEngine) -> None:
    first: dict[Mode, int] = {}
    within_five: dict[Mode, int] = {}
    for mode in MODES:
        places = [await found_at(engine, question, right, mode) for question, right in QUESTIONS]
        first[mode] = sum(place == 0 for place in places)
        within_five[mode] = sum(place is not None for place in places)
    count = len(QUESTIONS)
    assert within_five["hybrid"] >= 0.93 * count, within_five
    assert first["hybrid"] >= 0.8 * count, first
    assert within_five["hybrid"] >= max(within_five.values()) - 1, within_five
    assert within_five["hybrid"] > within_five["keyword"], "meaning must add something"


async def test_nonsense_scores_low_and_clear_answers_high(engine: EmbeddedEngine) -> None:
    for text in NONSENSE:
        found = await engine.search(Query(bank=BANK, text=text))
        assert all(hit.score < 0.3 for hit in found.hits), text
    clear = ("Priya tabs or spaces", "new_checkout rollout", "Tomas peanut allergy", "v2.4.1")
    for text in clear:
        found = await engine.search(Query(bank=BANK, text=text))
        assert found.hits[0].score >= 0.7, (text, found.hits[0].score)
