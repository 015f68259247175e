"""Chunks: cut at headings, with an overlap, and with ids that survive edits elsewhere."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from store.chunking import CHUNK_LIMIT, OVERLAP, chunk_ids, chunks

GUIDE = """# Guide

Intro paragraph about the guide.

## Install

Run the installer. It takes a minute.

```
# not a heading
pip install thing
```

## Use

""" + "\n\n".join(
    f"Paragraph {n} tells about feature number {n}. " + "More words here. " * 12 for n in range(12)
)


def test_a_document_is_cut_at_its_headings_and_not_inside_code() -> None:
    pieces = chunks(GUIDE)

    assert [piece.heading for piece in pieces][:1] == ["Guide"]
    assert pieces[-1].heading == "Guide > Use"
    assert not any("not a heading" in piece.heading for piece in pieces)
    assert all(len(piece.text) <= CHUNK_LIMIT + OVERLAP + 1 for piece in pieces)


def test_a_chunk_begins_with_the_end_of_the_chunk_before_it_in_the_section() -> None:
    pieces = [piece for piece in chunks(GUIDE) if piece.heading == "Guide > Use"]

    assert len(pieces) > 2
    for before, after in pairwise(pieces):
        overlap = after.text[: len(after.text) - len(GUIDE[after.start : after.end].strip())]
        assert overlap.strip()
        assert overlap.strip() in before.text


@given(st.text(alphabet=st.sampled_from("ab. \n#`é。x"), max_size=4000))
def test_every_character_of_a_body_is_in_exactly_one_chunk(body: str) -> None:
    pieces = chunks(body)

    covered = "".join(body[piece.start : piece.end] for piece in pieces)
    assert "".join(covered.split()) == "".join(body.split())
    for piece in pieces:
        assert piece.end - piece.start <= CHUNK_LIMIT
        assert body[piece.start : piece.end].strip() in piece.text
    ids = chunk_ids("s", "d", pieces)
    assert len(set(ids)) == len(ids)


def test_an_edit_keeps_the_ids_of_the_other_sections() -> None:
    edited = GUIDE.replace("It takes a minute.", "It takes two minutes now.")

    before = set(chunk_ids("s", "d", chunks(GUIDE)))
    after = set(chunk_ids("s", "d", chunks(edited)))

    assert len(before - after) == 1
    assert len(before & after) >= 3
