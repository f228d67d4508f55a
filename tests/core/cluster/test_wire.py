"""The line: who does not know the secret learns nothing, and no message can be made, changed or repeated."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from core.cluster import wire as line_module
from core.cluster.wire import Line, LineEnd, greet_as_follower, greet_as_leader
from core.errors import ClusterError, ProtocolError

SECRET = b"a secret of some length"
Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """What the leader and the follower hold of one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    with here, there:
        yield here, there


def lines(pair: Pair) -> tuple[Line, Line]:
    """The leader's and the follower's, after the greeting."""
    found: list[tuple[bytes, bytes] | None] = []
    thread = threading.Thread(target=lambda: found.append(greet_as_follower(pair[1], SECRET)))
    thread.start()
    keys = greet_as_leader(pair[0], SECRET)
    thread.join()
    assert found[0] is not None
    return Line(pair[0], keys), Line(pair[1], found[0])


def test_messages_go_both_ways(pair: Pair) -> None:
    leader, follower = lines(pair)
    for message in (b"", b"x", b"y" * 100_000):
        threading.Thread(target=leader.send, args=(message,)).start()
        assert follower.receive() == message
        follower.send(message[:10])
        assert leader.receive() == message[:10]
    leader.close()
    with pytest.raises(LineEnd):
        follower.receive()


def test_another_secret_is_refused_by_both_sides(pair: Pair) -> None:
    found: list[object] = []

    def follow() -> None:
        found.append(greet_as_follower(pair[1], b"another secret, as long"))
        pair[1].close()

    thread = threading.Thread(target=follow)
    thread.start()
    with pytest.raises(ClusterError, match="wrong secret"):
        greet_as_leader(pair[0], SECRET)
    thread.join()
    assert found == [None]


def test_a_follower_that_only_says_yes_is_found_out(pair: Pair) -> None:
    pair[1].sendall(b"draftlight-cluster-1" + bytes(32) + bytes(32))
    with pytest.raises(ClusterError, match="has another secret"):
        greet_as_leader(pair[0], SECRET)


def test_who_says_nothing_is_hung_up_on(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "GREETING_S", 0.2)
    assert greet_as_follower(pair[1], SECRET) is None
    with pytest.raises(ClusterError):
        greet_as_leader(pair[0], SECRET)


def test_what_was_recorded_opens_no_other_connection(pair: Pair) -> None:
    """The nonces of each greeting are new, and with them the keys."""
    first, second = lines(pair)
    assert first._send_key != first._receive_key
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here = socket.create_connection(listener.getsockname())
        there, _ = listener.accept()
    with here, there:
        assert lines((here, there))[0]._send_key != first._send_key
    assert second._receive_key == first._send_key


@pytest.mark.parametrize("change", ["altered", "repeated", "dropped", "sent back"])
def test_a_message_that_was_tampered_with_is_noticed(pair: Pair, change: str) -> None:
    leader, follower = lines(pair)
    leader.send(b"first")
    raw = pair[1].recv(1000)
    match change:
        case "altered":
            pair[0].sendall(raw[:-1] + b"?")
        case "repeated":
            pair[0].sendall(raw + raw)
            assert follower.receive() == b"first"
        case "dropped":
            leader.send(b"second")
        case "sent back":
            pair[1].sendall(raw)
            with pytest.raises(ProtocolError, match="invalid authentication code"):
                leader.receive()
            return
    with pytest.raises(ProtocolError, match="invalid authentication code"):
        follower.receive()


def test_a_message_may_not_be_too_long(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    leader, follower = lines(pair)
    monkeypatch.setattr(line_module, "MOST_BYTES", 10)
    with pytest.raises(ProtocolError, match="limit of 10"):
        leader.send(b"x" * 11)
    pair[0].sendall((1 << 31).to_bytes(4, "big") + bytes(16))
    with pytest.raises(ProtocolError, match="limit of 10"):
        follower.receive()
