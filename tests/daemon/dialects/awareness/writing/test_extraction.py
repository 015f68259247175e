"""The extraction instruction."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.dialects.awareness.writing import extraction
from store.model import Item


@given(
    st.lists(st.text(max_size=300), max_size=10),
    st.text(max_size=5000),
    st.integers(min_value=1, max_value=5000),
)
def test_an_extraction_instruction_stays_under_two_kilobytes(
    titles: list[str], session: str, count: int
) -> None:
    known = [
        Item(
            rowid=i,
            id=f"kc_{'0' * 32}",
            kind="card",
            text="",
            title=title,
            category="personal_preference",
            occurred_at=0,
            created_at=0,
            updated_at=0,
        )
        for i, title in enumerate(titles)
    ]
    ids = [f"evt_{i:032x}" for i in range(count)]
    assert len(extraction.instruction(ids, session, known).encode("utf-8", "replace")) < 2048
