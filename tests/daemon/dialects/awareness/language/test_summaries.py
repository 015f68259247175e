"""Extractive summaries and clipped texts."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.awareness.language import summaries
from store.model import Item


def event(number: int, text: str, **more: str) -> Item:
    return Item(
        rowid=number,
        id=f"evt_{number}",
        kind="event",
        text=text,
        occurred_at=number,
        created_at=number,
        updated_at=number,
        **more,  # type: ignore[arg-type]  # the fields have different types
    )


def test_a_narrative_prefers_decisions_and_keeps_the_order_of_events() -> None:
    events = [event(i, f"Chatter number {i} about nothing in particular") for i in range(20)]
    events.append(event(30, "Decision: use SQLite.", event_type="decision"))
    events.append(event(25, "TODO: measure it properly", event_type="planning", status="open"))

    told = summaries.summarise(events, 120)

    assert told.index("TODO: measure it properly.") < told.index("Decision: use SQLite.")
    assert len(told) <= 120


@given(st.lists(st.text(min_size=1, max_size=300), max_size=20), st.integers(20, 500))
def test_a_narrative_never_exceeds_its_length_limit(texts: list[str], room: int) -> None:
    told = summaries.summarise([event(i, text) for i, text in enumerate(texts)], room)
    assert len(told) <= room


@given(st.text(max_size=300), st.integers(2, 100))
def test_a_clipped_text_fits_and_ends_with_an_ellipsis(text: str, room: int) -> None:
    cut = summaries.clip(text, room)
    assert len(cut) <= room
    assert cut == text or cut.endswith("…")
