"""Newer results first: among nearly equal ones, and before the statements that they correct."""

from store.model import Item, Kind
from store.ranking.candidates import Ranked
from store.ranking.freshness import successors_first


def result(
    rowid: int, text: str, *, value: float, day: int, kind: Kind = "memory"
) -> tuple[Ranked, Item]:
    when = day * 86_400_000
    item = Item(
        rowid=rowid,
        id=str(rowid),
        kind=kind,
        text=text,
        occurred_at=when,
        created_at=when,
        updated_at=when,
    )
    return Ranked(id=rowid, value=value, score=value, parts={}), item


def order(*results: tuple[Ranked, Item]) -> list[int]:
    return [item.rowid for _, item in successors_first(results)]


def test_a_correction_comes_before_the_statement_that_it_corrects() -> None:
    old = result(1, "We deploy on Tuesdays", value=0.8, day=1)
    new = result(2, "We deploy on Wednesdays now", value=0.6, day=9)
    assert order(old, new) == [2, 1]


def test_an_older_correction_stays_behind_a_newer_statement() -> None:
    new = result(1, "We deploy on Tuesdays", value=0.8, day=9)
    old = result(2, "We deploy on Wednesdays now", value=0.6, day=1)
    assert order(new, old) == [1, 2]


def test_of_two_statements_on_one_subject_the_newer_one_comes_first_if_nearly_equal() -> None:
    old = result(1, "The retry limit of the importer is 3", value=0.8, day=1)
    new = result(2, "The retry limit of the importer is 5", value=0.75, day=2)
    assert order(old, new) == [2, 1]


def test_a_more_relevant_older_result_on_another_subject_stays_first() -> None:
    old = result(1, "The cache lives in Redis", value=0.8, day=1)
    new = result(2, "The importer now reads CSV", value=0.75, day=2)
    assert order(old, new) == [1, 2]


def test_a_much_less_relevant_correction_does_not_move() -> None:
    old = result(1, "We deploy on Tuesdays", value=0.9, day=1)
    new = result(2, "We deploy on Wednesdays now", value=0.5, day=9)
    assert order(old, new) == [1, 2]


def test_turns_with_a_speaker_and_chunks_keep_their_order() -> None:
    for text, kind in (("[8 May] Ana: I run on {}", "memory"), ("Deploy on {}", "chunk")):
        old = result(1, text.format("Monday"), value=0.8, day=1, kind=kind)  # type: ignore[arg-type]  # a kind
        new = result(2, text.format("Friday"), value=0.8, day=2, kind=kind)  # type: ignore[arg-type]  # a kind
        assert order(old, new) == [1, 2]


def test_scores_never_rise_down_the_list() -> None:
    moved = successors_first(
        [
            result(1, "We deploy on Tuesdays", value=0.8, day=1),
            result(3, "Redis holds the sessions", value=0.7, day=1),
            result(2, "We deploy on Wednesdays now", value=0.6, day=9),
        ]
    )
    assert [(item.rowid, entry.score) for entry, item in moved] == [(2, 0.8), (1, 0.7), (3, 0.6)]
