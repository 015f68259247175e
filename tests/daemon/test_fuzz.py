"""Frames no sane client sends neither crash us nor make us answer what was not asked.

A short seeded run on each transport; `scripts/fuzz.py --frames 100000` is the long one. The oracle
is tested as well, on conversations it has to object to.
"""

import sys

import pytest

from scripts.fuzzing import run
from scripts.fuzzing.oracle import Oracle, Violation
from scripts.kit.peer_packages import ROOT

SEED = 20260728
CALL = b'{"jsonrpc":"2.0","id":7,"method":"ping"}\n'
GOOD = b'{"jsonrpc":"2.0","id":7,"result":{}}'


@pytest.mark.faults
@pytest.mark.parametrize("transport", run.TRANSPORTS)
def test_mutated_frames_are_survived_and_answered_under_their_own_ids(transport: str) -> None:
    tally = run.fuzz(transport, frames=3_000, seed=SEED)

    assert tally.frames == 3_000
    assert tally.answers > 500
    assert tally.nameless > 100, "no malformed frame was refused: the run tested nothing"


@pytest.mark.faults
def test_a_daemon_killed_among_mutated_frames_leaves_each_call_one_answer() -> None:
    tally = run.fuzz("bridge", frames=1_000, seed=SEED, kills=0.1)

    assert tally.killed > 0


def test_a_server_that_dies_of_a_malformed_frame_is_found() -> None:
    # The bench's floor checks nothing and falls over at the first line that is not JSON.
    floor = f"{sys.executable} {ROOT / 'scripts' / 'peers' / 'floor.py'}"
    with pytest.raises(run.FuzzFailure, match=r"closed its output|stopped reading"):
        run.fuzz("stdio", frames=500, seed=SEED, command=floor)


def test_an_honest_conversation_passes() -> None:
    oracle = Oracle()
    oracle.sending(CALL)
    oracle.received(GOOD)
    oracle.received(b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}')
    oracle.received(b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}')
    oracle.settle()


@pytest.mark.parametrize(
    "line",
    [
        b"hello",
        b'{"jsonrpc":"2.0","id":7,"result":{}',
        b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":7,"id":7,"result":{}}',
        b'{"id":7,"result":{}}',
        b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":7}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":"x"}}',
        b'{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}',
        b'{"jsonrpc":"2.0","id":"7","result":{}}',
        b'{"jsonrpc":"2.0","id":8,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}',
        b"[]",
    ],
    ids=lambda line: line.decode(),
)
def test_the_oracle_objects_to(line: bytes) -> None:
    oracle = Oracle()
    oracle.sending(CALL)
    with pytest.raises(Violation):
        oracle.received(line)


def test_the_oracle_objects_to_a_second_answer() -> None:
    oracle = Oracle()
    oracle.sending(CALL)
    oracle.received(GOOD)
    with pytest.raises(Violation, match="more often"):
        oracle.received(GOOD)


def test_the_oracle_objects_to_silence() -> None:
    oracle = Oracle()
    oracle.require("V-1")
    with pytest.raises(Violation, match="never answered"):
        oracle.settle()
