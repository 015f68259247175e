"""A bank with some items of every kind."""

from store.model import (
    AgentProfile,
    Evidence,
    NewCard,
    NewDocument,
    NewMemory,
    NewTask,
)
from store.sqlite.engine import EmbeddedEngine


async def fill_bank(engine: EmbeddedEngine) -> None:
    for n in range(30):
        await engine.put(
            "w", NewMemory(text=f"memory {n} é\u2028", metadata={"n": n}, tags=("t",), user="u")
        )
    again = NewMemory(text="memory 3 é\u2028", metadata={"n": 3}, tags=("t",), user="u")
    await engine.put("w", again)
    await engine.upsert_document("w", NewDocument(source="s", source_id="d", body="# H\n\nbody"))
    card = NewCard(category="c", title="old", summary="one two", evidence=(Evidence(snippet="x"),))
    (old,) = await engine.put_cards("w", [card])
    await engine.put_cards(
        "w", [NewCard(category="c", title="new", summary="three four", supersedes=old.id)]
    )
    await engine.put_tasks("w", [NewTask(title="do it")])
    await engine.put_profile("w", AgentProfile(agent_role="r"))
    gone = await engine.put("w", NewMemory(text="forgotten"))
    await engine.forget("w", [gone.id])
