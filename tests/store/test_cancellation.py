"""Cancelled at any await, the engine leaves all or nothing, and the next caller is served."""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio
import pytest

from store.embedded import EmbeddedEngine
from store.errors import StoreError
from store.model import NewCard, NewDocument, NewMemory

pytestmark = pytest.mark.anyio

Verb = Callable[[EmbeddedEngine, int], Awaitable[object]]


def put(engine: EmbeddedEngine, n: int) -> Awaitable[object]:
    return engine.put("w", NewMemory(text=f"memory {n}"))


def put_many(engine: EmbeddedEngine, n: int) -> Awaitable[object]:
    return engine.put_many("w", [NewMemory(text=f"memory {n} of {k}") for k in range(3)])


def document(engine: EmbeddedEngine, n: int) -> Awaitable[object]:
    return engine.upsert_document("w", NewDocument(source="s", source_id=str(n), body=f"body {n}"))


def cards(engine: EmbeddedEngine, n: int) -> Awaitable[object]:
    return engine.put_cards("w", [NewCard(category="c", title=f"t{n}", summary=f"summary {n}")])


async def forget(engine: EmbeddedEngine, n: int) -> None:
    made = await engine.put("w", NewMemory(text=f"to forget {n}"))
    await engine.forget("w", [made.id])


async def erase(engine: EmbeddedEngine, n: int) -> None:
    made = await engine.put("w", NewMemory(text=f"to erase {n}"))
    await engine.erase("w", [made.id])


def new_bank(engine: EmbeddedEngine, n: int) -> Awaitable[object]:
    return engine.put(f"bank {n}", NewMemory(text="first in it"))


class CancelAt:
    """Runs an awaitable and cancels it at its n-th wait; says whether it came to its end."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], scope: anyio.CancelScope, at: int):
        self.coroutine = coroutine
        self.scope = scope
        self.at = at

    def __await__(self) -> Generator[Any, Any, None]:
        waits = 0
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                step = self.coroutine.send(value) if error is None else self.coroutine.throw(error)
            except StopIteration:
                return
            waits += 1
            if waits == self.at:
                self.scope.cancel()
            try:
                value, error = (yield step), None
            except BaseException as raised:  # noqa: BLE001  (thrown on into the coroutine)
                error = raised


@pytest.mark.parametrize(
    "verb",
    [put, put_many, document, cards, forget, erase, new_bank],
    ids=lambda verb: verb.__name__,
)
async def test_a_verb_cancelled_at_its_nth_wait_leaves_a_whole_bank(
    engine: EmbeddedEngine, verb: Verb
) -> None:
    await engine.put("w", NewMemory(text="there before"))

    for at in range(1, 60):
        with anyio.CancelScope() as scope:
            await CancelAt(_run(verb, engine, at), scope, at)
        with anyio.fail_after(10):
            checked = await engine.check("w")
            assert checked.problems == (), f"cancelled at wait {at}"
            await engine.put("w", NewMemory(text=f"served after {at}"))
        if not scope.cancelled_caught and not scope.cancel_called:
            break
    else:
        pytest.fail("the verb never came through untouched")

    served = {item.text for item in (await engine.recent("w", limit=1000)).items}
    assert {f"served after {n}" for n in range(1, at + 1)} <= served
    assert "there before" in served


async def _run(verb: Verb, engine: EmbeddedEngine, n: int) -> None:
    try:
        await verb(engine, n)
    except StoreError as error:
        raise AssertionError("a cancelled verb must not fail otherwise") from error
