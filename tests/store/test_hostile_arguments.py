"""Hostile arguments raise a `StoreError` and nothing else, and a refusal changes nothing."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from store.database import Connection
from store.embedding.hashed import HashedFeatures
from store.engine import Engine
from store.errors import InvalidInput, NumberNotFinite, StoreError
from store.model import (
    AgentProfile,
    DocumentHead,
    Evidence,
    Filters,
    NewCard,
    NewDocument,
    NewMemory,
    NewNarrative,
    NewNotes,
    NewRisk,
    NewSkill,
    NewTask,
    Provenance,
    Query,
    SourceBatch,
    SourceFile,
    SyncedFile,
)
from store.rows.table import RowDamaged
from store.search.hybrid import HybridRanking
from store.sqlite.engine import EmbeddedEngine, open_engine

HALF: Final = "\ud800"  # half a surrogate pair


def deep(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"a": value}
    return value


HOSTILE: Final[tuple[Any, ...]] = (
    HALF, f"x{HALF}", "\x00", "a\x00b", "", " ", "bogus", "../../x", "x" * 5_000, b"x", b"\xff",
    0, -1, 2**31, 2**63, -(2**63) - 1, 2**70, 10**400, True, None,
    float("nan"), float("inf"), float("-inf"), 1e308, 2.5, -0.0, 5e-324,
    (), [], [HALF], ["\x00"], [1], [None], ("w", "w"), [[]], ["a"] * 1_500,
    {}, {HALF: 1}, {"a": HALF}, {"a": float("nan")}, {"a": 2**70}, {"a": [2**70]}, {1: 2},
    {"a": {1, 2}}, {str(n): n for n in range(1_500)}, deep(100), {"methods": 5},
    object(), sys, len, Path(), Path("/"), Path("/none such/x"), Path("a\x00b"), Path(HALF),
    NewMemory(text="a memory in another's place"), Filters(since=2**70), Provenance(client=HALF),
)  # fmt: skip

MEMORY: Final = NewMemory(
    text="apples are red", title="t", metadata={"a": 1}, tags=("t",), idempotency_key="k",
    provenance=Provenance(client="c"),
)  # fmt: skip
CARD: Final = NewCard(
    category="c", title="port", summary="it is 80", evidence=(Evidence(snippet="apples"),)
)
TASK: Final = NewTask(title="do it")
RISK: Final = NewRisk(title="it may break")
FILTERS: Final = Filters(user="u", sources=("s",), metadata={"a": 1}, contains="apples", since=1)
FILE: Final = SourceFile(source_id="3", version="v", digest="00", ledger="l")
SYNCED: Final = SyncedFile(
    file=FILE, document=NewDocument(source="s", source_id="3", body="b"), moved_from="4"
)
HEAD: Final = SyncedFile(
    file=msgspec.structs.replace(FILE, document="d"),
    head=DocumentHead(author="a", url="u", updated_at=1),
)
PAGE: Final = {"filters": FILTERS, "limit": 5, "offset": 0}

#: A valid call of each operation; the tests replace one value in it.
CALLS: Final[dict[str, dict[str, Any]]] = {
    "bank": {"name": "w"},
    "create_bank": {"name": "v", "quota_bytes": 10**9},
    "rename_bank": {"name": "none", "new_name": "v"},
    "set_quota": {"name": "w", "quota_bytes": 10**9},
    "delete_bank": {"name": "none"},
    "put": {"bank": "w", "memory": MEMORY},
    "put_many": {"bank": "w", "new": (MEMORY,), "progress": None},
    "search": {"query": Query(bank="w", text="apples", filters=FILTERS, keywords="red")},
    "settle": {"bank": "w", "watch": None},
    "get": {"bank": "w", "id": "i"},
    "recent": {"bank": "w", "kinds": ("memory",), **PAGE},
    "timeline": {"bank": "w", "kinds": ("memory",), "newest_first": True, **PAGE},
    "change": {"bank": "w", "id": "i", "text": "x", "title": "y", "status": "z", "metadata": {}},
    "forget": {"bank": "w", "ids": ("i",)},
    "forget_where": {"bank": "w", "kinds": ("memory",), "filters": FILTERS},
    "tag": {
        "bank": "w", "ids": ("i",), "kinds": ("memory",), "filters": FILTERS, "add": ("t",),
        "remove": ("u",),
    },
    "move": {"bank": "w", "to": "v", "ids": ("i",), "kinds": ("memory",), "filters": FILTERS},
    "facets": {"bank": "w", "kinds": ("memory",), "filters": FILTERS},
    "growth": {"bank": "w", "days": 5},
    "map": {"bank": "w", "limit": 5},
    "undo": {"bank": "w", "token": "t"},
    "erase": {"bank": "w", "ids": ("i",), "documents": ("d",), "reason": "r"},
    "erase_forgotten": {"bank": "w", "reason": "r"},
    "upsert_document": {
        "bank": "w",
        "document": NewDocument(source="s", source_id="2", body="b", id="d2", created_at=1),
        "progress": None,
    },
    "document": {"bank": "w", "id": "d"},
    "find_document": {"bank": "w", "source": "s", "source_id": "1"},
    "document_headers": {"bank": "w", "ids": ("d",)},
    "documents": {"bank": "w", "source": "s", "limit": 5, "offset": 0},
    "chunks": {"bank": "w", "document": "d"},
    "delete_documents": {"bank": "w", "ids": ("none",)},
    "sweep_documents": {"bank": "w", "source": "none", "run": "r"},
    "sources": {"bank": "w"},
    "source_files": {"bank": "w", "source": "s", "under": ("a",)},
    "count_synced": {"bank": "w", "source": "s"},
    "sync_documents": {
        "bank": "w",
        "batch": SourceBatch(source="s", files=(SYNCED,), removed=("5",)),
    },
    "put_notes": {
        "bank": "w",
        "notes": NewNotes(
            cards=(CARD,), tasks=(TASK,), risks=(RISK,), events=(MEMORY,),
            profiles=(AgentProfile(agent_role="qa"),), task_statuses=(("i", "completed"),),
        ),
        "progress": None,
    },
    "days": {"bank": "w", "kinds": ("memory",), "filters": FILTERS, "each": 2, "limit": 2},
    "put_cards": {"bank": "w", "new": (CARD,)},
    "card": {"bank": "w", "id": "c"},
    "cards": {"bank": "w", **PAGE},
    "card_history": {"bank": "w", "id": "c"},
    "change_card": {"bank": "w", "id": "c", "status": "open"},
    "put_tasks": {"bank": "w", "new": (TASK,)},
    "tasks": {"bank": "w", **PAGE},
    "change_task": {"bank": "w", "id": "i", "status": "x", "priority": "low", "detail": "d"},
    "put_risks": {"bank": "w", "new": (RISK,)},
    "risks": {"bank": "w", **PAGE},
    "change_risk": {"bank": "w", "id": "i", "status": "active"},
    "put_skills": {"bank": "w", "new": (NewSkill(name="n", summary="s", methods=("m",)),)},
    "skills": {"bank": "w", "filters": FILTERS, "limit": 5},
    "put_narrative": {"bank": "w", "narrative": NewNarrative(span="day", name="n", text="t")},
    "narratives": {"bank": "w", "span": "day", "limit": 5, "filters": FILTERS},
    "put_profile": {"bank": "w", "profile": AgentProfile(agent_role="dev")},
    "profile": {"bank": "w", "agent_role": "dev"},
    "profiles": {"bank": "w"},
    "delete_profile": {"bank": "w", "agent_role": "none"},
    "stats": {"bank": "w"},
    "sessions_in": {"bank": "w", "limit": 5},
    "check": {"bank": "w"},
    "repair": {"bank": "w"},
    "rebuild": {"bank": "w"},
    "export": {"bank": "w", "path": Path("/none such/file")},
    "import_file": {"bank": "w", "path": Path("/none such/file"), "progress": None},
    "back_up": {"bank": "w"},
    "backups": {"bank": "w"},
    "restore": {"bank": "w", "name": "none"},
}  # fmt: skip

Make = Callable[[Any], Any]


def places(value: Any) -> Iterator[Make]:
    """Every place in a value, as a function that returns a copy with another value there."""
    yield lambda hostile: hostile
    if isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from (in_field(value, name, make) for make in places(getattr(value, name)))
    elif isinstance(value, tuple) and value:
        yield from (in_first(value, make) for make in places(value[0]))


def in_field(value: Any, name: str, make: Make) -> Make:
    return lambda hostile: msgspec.structs.replace(value, **{name: make(hostile)})


def in_first(value: tuple[Any, ...], make: Make) -> Make:
    return lambda hostile: (make(hostile), *value[1:])


SPOTS: Final = [
    (verb, argument, make)
    for verb, arguments in CALLS.items()
    for argument, value in arguments.items()
    for make in places(value)
] + [("sync_documents", "batch", make) for make in places(SourceBatch(source="s", files=(HEAD,)))]


def dump(connection: Connection) -> dict[str, list[Any]]:
    """The contents of a bank without derived data."""
    tables = (
        "items",
        "documents",
        "evidence",
        "profiles",
        "put_keys",
        "origins",
        "tombstones",
        "source_files",
    )
    return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}


async def contents(engine: EmbeddedEngine) -> tuple[Any, ...]:
    return (await engine.bank("w")), await engine._read("w", dump)


async def fill(engine: EmbeddedEngine) -> None:
    await engine.put("w", NewMemory(text="apples are green", id="i", user="u", source="s"))
    document = NewDocument(source="s", source_id="1", body="pears", id="d")
    await engine.upsert_document("w", document)
    await engine.put_cards("w", [CARD])
    await engine.put_profile("w", AgentProfile(agent_role="dev"))


async def call(engine: EmbeddedEngine, verb: str, arguments: dict[str, Any]) -> None:
    await getattr(engine, verb)(**arguments)


#: Operations without arguments.
PLAIN: Final = {"sessions", "banks", "health", "close", "source_records", "recover_banks"}


def test_every_operation_of_the_engine_is_covered() -> None:
    verbs = {name for name in vars(Engine) if not name.startswith("_")}
    assert set(CALLS) == verbs - PLAIN - {"pending_vectors"}


hostile = st.one_of(
    st.sampled_from(HOSTILE), st.text(st.characters(), max_size=5), st.integers(), st.floats()
)


# Shrinking would open an engine for each try, and the message names the call anyway.
@settings(
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(tries=st.lists(st.tuples(st.sampled_from(SPOTS), hostile), min_size=20, max_size=40))
def test_a_hostile_value_raises_a_store_error_and_changes_nothing(
    tries: list[tuple[tuple[str, str, Make], Any]],
) -> None:
    async def run(directory: Path) -> None:
        async with open_engine(
            directory, ranking=lambda background: HybridRanking(background, HashedFeatures())
        ) as engine:
            await fill(engine)
            before = await contents(engine)
            for (verb, argument, make), value in tries:
                try:
                    await call(engine, verb, {**CALLS[verb], argument: make(value)})
                except StoreError:
                    assert await contents(engine) == before, (verb, argument, value)
                except Exception as error:
                    raise AssertionError(f"{verb}, {argument}: {value!r:.80}") from error
                else:
                    before = await contents(engine)
            assert (await engine.check("w")).problems == ()

    with TemporaryDirectory() as directory:
        anyio.run(run, Path(directory) / "data")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("verb", "arguments", "kind", "field"),
    [
        ("get", {"bank": "w", "id": HALF}, InvalidInput, "id"),
        ("forget", {"bank": "w", "ids": ["i", "\x00"]}, InvalidInput, "ids[1]"),
        ("undo", {"bank": "w", "token": HALF}, InvalidInput, "token"),
        ("erase", {"bank": "w", "ids": [HALF]}, InvalidInput, "ids[0]"),
        ("profile", {"bank": "w", "agent_role": HALF}, InvalidInput, "agent_role"),
        ("find_document", {"bank": "w", "source": HALF, "source_id": "1"}, InvalidInput, "source"),
        ("recent", {"bank": "w", "filters": Filters(since=2**70)}, InvalidInput, "filters.since"),
        ("recent", {"bank": "w", "filters": Filters(user=HALF)}, InvalidInput, "filters.user"),
        ("recent", {"bank": "w", "kinds": ["bogus"]}, InvalidInput, "kinds[0]"),
        ("set_quota", {"name": "w", "quota_bytes": 2**63}, InvalidInput, "quota_bytes"),
        ("set_quota", {"name": "w", "quota_bytes": float("nan")}, NumberNotFinite, "quota_bytes"),
        ("days", {"bank": "w", "each": 2**70}, InvalidInput, "each"),
        ("days", {"bank": "w", "each": -1}, InvalidInput, "each"),
        (
            "search",
            {"query": Query(bank="w", text="x", mode="bogus")},  # type: ignore[arg-type]
            InvalidInput,
            "mode",
        ),
        (
            "search",
            {"query": Query(bank="w", text="x", keyword_weight=float("inf"))},
            NumberNotFinite,
            "keyword_weight",
        ),
        (
            "search",
            {"query": Query(bank="w", text="x", vector_weight=-1.0)},
            InvalidInput,
            "vector_weight",
        ),
        (
            "upsert_document",
            {"bank": "w", "document": NewDocument(source="s", source_id="2", body="b", id="d")},
            InvalidInput,
            "id",
        ),
    ],
)
async def test_a_refusal_names_the_field(
    engine: EmbeddedEngine,
    verb: str,
    arguments: dict[str, Any],
    kind: type[InvalidInput],
    field: str,
) -> None:
    await fill(engine)

    with pytest.raises(kind) as refused:
        await call(engine, verb, arguments)

    assert refused.value.field == field


@pytest.mark.anyio
async def test_sessions_refuse_values_that_cannot_be_stored(engine: EmbeddedEngine) -> None:
    sessions = engine.sessions
    await sessions.mint(transport="stdio", id="mine")

    with pytest.raises(InvalidInput, match="id: is the id of another session"):
        await sessions.mint(transport="stdio", id="mine")
    with pytest.raises(InvalidInput, match="transport"):
        await sessions.mint(transport=HALF)
    with pytest.raises(InvalidInput, match="id"):
        await sessions.resume(HALF)
    with pytest.raises(InvalidInput, match="limit"):
        await sessions.recent(limit=2**70)
    assert await sessions.expire(max_idle_seconds=1e300, max_count=10) == 0


@pytest.mark.anyio
async def test_a_rebuild_refuses_a_damaged_row(engine: EmbeddedEngine) -> None:
    await fill(engine)

    def damage(connection: Connection) -> None:
        connection.execute("UPDATE items SET tags = '[\"' WHERE public_id = 'i'")

    await engine._write("w", lambda changes: damage(changes.connection))

    with pytest.raises(RowDamaged):
        await engine.rebuild("w")
