"""Framing of a byte stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.framing import END_BYTES, LineFramer, Oversized
from tests.support.strategies import chopped


def frames_of(framer: LineFramer, *chunks: bytes) -> list[bytes | Oversized]:
    found = [frame for chunk in chunks for frame in framer.feed(chunk)]
    return found + list(framer.end())


@given(st.data())
def test_frames_do_not_depend_on_the_division_into_chunks(data: st.DataObject) -> None:
    line = st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" "))
    end = data.draw(st.sampled_from([b"\n", b"\r\n"]))
    stream = end.join(data.draw(st.lists(line, max_size=6)))
    pieces = data.draw(chopped(stream))
    assert frames_of(LineFramer(16), *pieces) == frames_of(LineFramer(16), stream)


@pytest.mark.parametrize(
    ("stream", "frames"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a", b"b"]),
        (b"\n \n\t\r\n a\n", [b" a"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"\xe2\x80\xa8x\n\x0b\n", [b"\xe2\x80\xa8x", b"\x0b"]),
        (b"last", [b"last"]),
        (b"", []),
    ],
)
def test_only_a_line_feed_ends_a_frame(stream: bytes, frames: list[bytes]) -> None:
    assert frames_of(LineFramer(), stream) == frames


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_frame_of_exactly_the_limit_fits_and_one_more_byte_does_not(end: bytes) -> None:
    for chunks in ([b"x" * 8 + end], [b"x" * 4, b"x" * 4, end]):
        assert frames_of(LineFramer(8), *chunks) == [b"x" * 8]
    for chunks in ([b"x" * 9 + end], [b"x" * 4, b"x" * 5, end]):
        (found,) = frames_of(LineFramer(8), *chunks)
        assert isinstance(found, Oversized)
        assert found.limit == 8


def test_an_endless_line_is_counted_but_not_stored() -> None:
    framer = LineFramer(1000)
    for _ in range(1000):
        assert list(framer.feed(b"x" * 1000)) == []
        assert sum(map(len, framer._pieces)) <= 1001
        assert len(framer._head) + len(framer._tail) <= 2 * END_BYTES + 1
    (long, short) = framer.feed(b"the end\nnext\n")
    assert short == b"next"
    assert isinstance(long, Oversized)
    assert (long.size, long.limit) == (1_000_007, 1000)
    assert (long.head[:4], long.tail[-8:]) == (b"xxxx", b"xthe end")
