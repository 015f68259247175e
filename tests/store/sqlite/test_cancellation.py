"""Cancelled at any await, the engine leaves all or nothing, and the next caller is served."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from store.errors import BankNotFound, StoreError
from store.model import NewCard, NewDocument, NewMemory
from store.sqlite.engine import EmbeddedEngine, open_engine
from tests.support.clock import Clock
from tests.support.plain_ranking import PlainRanking

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

    def __init__(
        self, coroutine: Coroutine[Any, Any, object], cancel: Callable[[], object], at: int
    ) -> None:
        self.coroutine = coroutine
        self.cancel = cancel
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
                self.cancel()
            try:
                value, error = (yield step), None
            except BaseException as raised:  # noqa: BLE001  (thrown on into the coroutine)
                error = raised


@pytest.mark.parametrize(
    "verb",
    [put, put_many, document, cards, forget, erase, new_bank],
    ids=lambda verb: verb.__name__,
)
async def test_an_operation_cancelled_at_its_nth_await_leaves_an_intact_bank(
    engine: EmbeddedEngine, verb: Verb
) -> None:
    await engine.put("w", NewMemory(text="there before"))

    for at in range(1, 60):
        with anyio.CancelScope() as scope:
            await CancelAt(_run(verb, engine, at), scope.cancel, at)
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


# --- the names of banks: memory and catalogue say the same -------------------------------------


async def create(engine: EmbeddedEngine) -> None:
    await engine.create_bank("new")


async def create_by_put(engine: EmbeddedEngine) -> None:
    await engine.put("new", NewMemory(text="the first"))


async def delete(engine: EmbeddedEngine) -> None:
    await engine.delete_bank("old")


async def rename(engine: EmbeddedEngine) -> None:
    await engine.rename_bank("old", "new")


async def set_quota(engine: EmbeddedEngine) -> None:
    await engine.set_quota("old", 1_000_000)


async def cancelled_scope(verb: Coroutine[Any, Any, object], at: int) -> bool:
    with anyio.CancelScope() as scope:
        await CancelAt(verb, scope.cancel, at)
    return scope.cancel_called


async def cancelled_task(verb: Coroutine[Any, Any, object], at: int) -> bool:
    """The same by the means of asyncio, which no shield of anyio keeps away."""
    cancelled: list[bool] = []

    async def run() -> None:
        await CancelAt(verb, lambda: cancelled.append(task.cancel()), at)

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    return bool(cancelled)


@pytest.mark.parametrize("cancelled", [cancelled_scope, cancelled_task], ids=["scope", "task"])
@pytest.mark.parametrize(
    "verb",
    [create, create_by_put, delete, rename, set_quota],
    ids=lambda verb: verb.__name__,
)
async def test_a_change_of_a_bank_cancelled_at_its_nth_wait_is_the_same_after_a_restart(
    tmp_path: Path,
    clock: Clock,
    verb: Callable[[EmbeddedEngine], Coroutine[Any, Any, object]],
    cancelled: Callable[[Coroutine[Any, Any, object], int], Awaitable[bool]],
) -> None:
    for at in range(1, 40):
        directory = tmp_path / str(at)
        async with open_engine(directory, ranking=PlainRanking, now=clock) as engine:
            await engine.put("old", NewMemory(text="there before"))
            with anyio.fail_after(10):
                was_cancelled = await cancelled(verb(engine), at)
            banks = await engine.banks()
            for name in ("old", "new"):  # the same names are used again after any outcome
                with anyio.fail_after(10):
                    await engine.put(name, NewMemory(text=f"acknowledged in {name} after"))
            kept = await _texts(engine)
            used = await engine.banks()

        assert set(banks) <= set(used), f"cancelled at wait {at}"
        async with open_engine(directory, ranking=PlainRanking, now=clock) as engine:
            assert (await engine.banks()) == used, f"cancelled at wait {at}"
            assert await _texts(engine) == kept, f"cancelled at wait {at}"
            files = {path.name for path in (directory / "banks").iterdir()}
            assert files == {bank.id for bank in used}, f"cancelled at wait {at}"
        if not was_cancelled:
            break
    else:
        pytest.fail("the verb never came through untouched")


async def test_a_bank_whose_deletion_was_cancelled_after_its_commit_is_unknown_at_once(
    engine: EmbeddedEngine,
) -> None:
    await engine.put("old", NewMemory(text="there before"))
    at = 0
    while await engine.banks():
        at += 1
        await cancelled_scope(engine.delete_bank("old"), at)
    with pytest.raises(BankNotFound):
        await engine.recent("old")


async def _texts(engine: EmbeddedEngine) -> dict[str, list[str]]:
    return {
        bank.name: sorted(item.text for item in (await engine.recent(bank.name)).items)
        for bank in await engine.banks()
    }
