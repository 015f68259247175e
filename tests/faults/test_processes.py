"""Crowds, deaths, stampedes and deaf clients, in short (at length: `scripts/soak.py wire`)."""

import pytest

from scripts.soaks import wire

pytestmark = pytest.mark.faults


def test_every_answer_in_a_crowd_reaches_the_one_who_asked_once() -> None:
    verdict = wire.crowd(clients=32, window=8, seconds=3.0)
    assert verdict.faults == []


def test_bridges_outlive_their_daemon_and_leave_no_call_unanswered() -> None:
    verdict = wire.deaths(bridges=3, seconds=5.0, every=2.0)
    assert verdict.faults == []


def test_bridges_that_start_at_once_end_up_on_one_daemon() -> None:
    verdict = wire.stampede(bridges=10, rounds=1)
    assert verdict.faults == []


def test_clients_that_never_read_cost_no_memory_and_delay_nobody() -> None:
    verdict = wire.readers(clients=20, seconds=2.0)
    assert verdict.faults == []


def test_connections_that_come_and_go_leave_nothing_behind() -> None:
    verdict = wire.visitors(visits=200)
    assert verdict.faults == []
