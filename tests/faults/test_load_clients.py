"""The clients of the soak runs and benchmarks detect wrong responses of a misbehaving peer."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec
import pytest

from scripts.kit import many_clients, stdio_client

Reply = Callable[[dict[str, object]], list[dict[str, object]]]


@contextmanager
def peer(reply: Reply) -> Iterator[socket.socket]:
    """A server on a socket pair that sends `reply(message)` for each request."""
    ours, theirs = socket.socketpair()

    def serve() -> None:
        # The client may close its end while a response is being sent.
        with suppress(OSError), theirs.makefile("rb") as stream:
            for line in stream:
                message = msgspec.json.decode(line, type=dict[str, object])
                for answer in reply(message) if "id" in message else []:
                    theirs.sendall(msgspec.json.encode({"jsonrpc": "2.0", **answer}) + b"\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield ours
    finally:
        ours.shutdown(socket.SHUT_RDWR)
        thread.join()
        ours.close()
        theirs.close()


def echoed(message: dict[str, object]) -> dict[str, object]:
    params = msgspec.convert(message["params"], dict[str, object])
    arguments = msgspec.convert(params.get("arguments", {}), dict[str, str])
    content = [{"type": "text", "text": arguments.get("text", "")}]
    return {"id": message["id"], "result": {"content": content}}


def talk(reply: Reply, patience: float = 5.0) -> many_clients.Talker:
    with peer(reply) as ours:
        talker = many_clients.Talker("a", ours.fileno(), ours.fileno(), window=4)
        many_clients.talk([talker], 0.1, patience=patience)
        return talker


def test_a_correct_peer_leaves_no_pending_calls_and_no_errors() -> None:
    talker = talk(lambda message: [echoed(message)])
    assert talker.results > 10
    assert not talker.pending
    assert not talker.errors


def test_a_duplicate_response_is_detected() -> None:
    with pytest.raises(many_clients.WrongResponse, match="never asked"):
        talk(lambda message: [echoed(message), echoed(message)])


def test_a_response_with_another_calls_content_is_detected() -> None:
    def crossed(message: dict[str, object]) -> list[dict[str, object]]:
        answer = echoed(message)
        if message["id"] == 3:
            answer["result"] = {"content": [{"type": "text", "text": "b/3"}]}
        return [answer]

    with pytest.raises(many_clients.WrongResponse, match="asked for"):
        talk(crossed)


def test_an_unanswered_call_stays_pending() -> None:
    talker = talk(lambda message: [] if message["id"] == 3 else [echoed(message)], patience=0.2)
    assert list(talker.pending) == [3]


def test_error_responses_are_counted_by_kind() -> None:
    def refusing(message: dict[str, object]) -> list[dict[str, object]]:
        if message["id"] == 0:
            return [echoed(message)]
        data = {"kind": "daemon_lost"}
        return [{"id": message["id"], "error": {"code": -32603, "message": "x", "data": data}}]

    talker = talk(refusing)
    assert set(talker.errors) == {"-32603 daemon_lost"}
    assert not talker.results


@pytest.mark.parametrize(
    ("received", "words"),
    [
        (b"", "never answered"),
        (b'{"id":1,"result":{"content":[{"text":"TEXT"}]}}\n' * 2, "twice"),
        (b'{"id":9,"result":{"content":[{"text":"TEXT"}]}}\n', "nobody asked"),
        (b'{"id":1,"result":{"content":[{"text":"other"}]}}\n', "another call's"),
        (b'{"id":1,"error":{}}\n', "no text"),
    ],
)
def test_a_wrong_response_stops_the_benchmark(received: bytes, words: str) -> None:
    with pytest.raises(stdio_client.WireFault, match=words):
        stdio_client.check_echoes(
            received.replace(b"TEXT", stdio_client.text_for(1).encode()), 1, 1
        )


def test_resident_memory_and_descriptors_are_read_from_the_process() -> None:
    assert stdio_client.resident_bytes(os.getpid()) > 1_000_000
    before = stdio_client.open_descriptors(os.getpid())
    reader, writer = os.pipe()
    assert stdio_client.open_descriptors(os.getpid()) == before + 2
    os.close(reader)
    os.close(writer)
