"""The sliding window: exact, and never more than the limit."""

from hypothesis import given
from hypothesis import strategies as st

from daemon.rpc.limiter import Limiter, SlidingWindow
from tests.support.clock import FakeClock


def window(clock: FakeClock, limit: int = 100, seconds: float = 60.0) -> SlidingWindow:
    return SlidingWindow(limit=limit, seconds=seconds, clock=clock)


def test_the_101st_call_in_a_minute_waits_for_the_first_to_age_out() -> None:
    clock = FakeClock()
    calls = window(clock)
    assert all(calls.admit() == 0.0 for _ in range(100))

    assert calls.admit() == 60.0
    clock.advance(59.875)
    assert calls.admit() == 0.125

    clock.advance(0.125)
    assert calls.admit() == 0.0


def test_a_refusal_uses_no_slot() -> None:
    clock = FakeClock()
    calls = window(clock, limit=1)
    calls.admit()
    for _ in range(50):
        assert calls.admit() > 0
    clock.advance(60)
    assert calls.admit() == 0.0
    assert calls.count() == 1


@given(
    limit=st.integers(1, 7),
    steps=st.lists(st.floats(0, 30, allow_nan=False), max_size=80),
    start=st.floats(0, 1e9),
)
def test_no_window_ever_holds_more_than_the_limit(
    limit: int, steps: list[float], start: float
) -> None:
    clock = FakeClock(start)
    calls = window(clock, limit=limit, seconds=60.0)
    admitted: list[float] = []
    for step in steps:
        clock.advance(step)
        wait = calls.admit()
        if wait == 0.0:
            admitted.append(clock.now)
        else:
            assert 0 < wait <= 60.0
    for first, beyond in zip(admitted, admitted[limit:], strict=False):
        assert first + 60.0 <= beyond


@given(steps=st.lists(st.floats(0, 30, allow_nan=False), max_size=60))
def test_a_call_is_admitted_after_the_wait_it_was_given(steps: list[float]) -> None:
    clock = FakeClock(0.0)
    calls = window(clock, limit=3, seconds=60.0)
    for step in steps:
        clock.advance(step)
        wait = calls.admit()
        if wait:
            clock.advance(wait + 1e-6)
            assert calls.admit() == 0.0


def test_memory_is_bounded_by_the_limit() -> None:
    clock = FakeClock()
    calls = window(clock, limit=10)
    for _ in range(10_000):
        calls.admit()
    assert calls.count() == 10


def test_sessions_do_not_share_a_window_and_zero_is_no_limit() -> None:
    clock = FakeClock()
    limiter = Limiter(limit=1, clock=clock)
    one, other = limiter.window("a"), limiter.window("b")
    assert one is not None
    assert other is not None
    assert one.admit() == other.admit() == 0.0
    assert one.admit() > 0
    assert limiter.current() == 2
    assert limiter.window("a") is one
    assert Limiter(limit=0, clock=clock).window("a") is None
    assert Limiter(limit=0, clock=clock).rename("a", "b") is None


def test_a_window_survives_a_reconnect() -> None:
    clock = FakeClock()
    limiter = Limiter(limit=1, clock=clock)
    first = limiter.window("connection-1")
    assert first is not None
    first.admit()
    assert limiter.rename("connection-1", "session") is first
    limiter.prune(alive=set())
    limiter.window("connection-2")
    again = limiter.rename("connection-2", "session")
    assert again is first
    assert again.admit() > 0
    clock.advance(61)
    limiter.prune(alive=set())
    assert limiter.window("session") is not first
