"""The record of recent calls."""

from daemon.api.registry import build as build_api
from daemon.dialect_names import DIALECTS
from daemon.dialects.registry import build
from daemon.operations.activity import MINUTES, SEARCH_TOOLS, Activity, percentile
from tests.support.toolkit import any_toolkit


class Time:
    def __init__(self) -> None:
        self.now = 600_000_000

    def __call__(self) -> int:
        return self.now


def test_calls_are_counted_in_the_minute_in_which_they_end() -> None:
    now = Time()
    activity = Activity(now)
    activity.call_done("rest", "add_memory", 0.01, 10)
    now.now += 2 * 60_000
    activity.call_done("rest", "add_memory", 0.01, 10)
    activity.call_done("rest", "add_memory", 0.01, 10)

    assert len(activity.per_minute()) == MINUTES
    assert activity.per_minute()[-3:] == [1, 0, 2]
    now.now += 70 * 60_000
    assert activity.per_minute() == [0] * MINUTES
    assert activity.total == 3


def test_a_slow_call_is_kept_with_its_name_and_length_and_an_endless_one_is_not() -> None:
    activity = Activity(Time())
    activity.call_done("tools/call", "recall", 0.9, 77)
    activity.call_done("tools/call", "recall", 0.01, 5)
    activity.call_done("subscriptions/listen", "", 90.0, 5)

    assert [(call.name, call.milliseconds, call.length) for call in activity.slow] == [
        ("recall", 900.0, 77)
    ]
    assert [each.milliseconds for each in activity.searches] == [900.0, 10.0]


def test_percentiles_are_values_that_were_measured() -> None:
    assert percentile([], 0.5) is None
    assert percentile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert percentile([3.0, 1.0, 2.0], 0.95) == 3.0


def test_every_search_tool_is_registered() -> None:
    toolkit = any_toolkit()
    dialects = {spec.name for spec in build(DIALECTS, toolkit).specs()}
    operations = {operation.spec.name for operation in build_api(toolkit).listed}

    assert dialects | operations >= SEARCH_TOOLS
