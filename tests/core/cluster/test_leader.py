"""The leader against a follower that says what it should not, over a real connection."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

import core.cluster.leader as leader_module
from core.cluster.leader import Follower, Leader
from core.cluster.wire import (
    Do,
    Done,
    End,
    Failed,
    Line,
    LineEnd,
    decode_leader_message,
    encode,
    greet_as_follower,
)
from core.events import ClusterEnded
from core.kv.mirrored import MirroredCache
from core.settings.cluster import Machine

SECRET = b"a secret of some length"


class Led:
    """A leader of one follower, of which the test is the other end. `ended` is why it would have exited."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, deadline_s: float = 60.0) -> None:
        self.ended: list[ClusterEnded] = []
        self.exited = threading.Event()
        monkeypatch.setattr(leader_module.os, "_exit", lambda status: self.exited.set())
        monkeypatch.setattr(leader_module, "A_TOKEN_S", 0.0)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            found: list[Line] = []

            def follow() -> None:
                there, _ = listener.accept()
                keys = greet_as_follower(there, SECRET)
                assert keys is not None
                found.append(Line(there, keys))

            thread = threading.Thread(target=follow)
            thread.start()
            self.leader = Leader(
                [Follower(Machine("studio", address), SECRET)], deadline_s, self.ended.append
            )
            thread.join()
        self.there = found[0]
        self.leader.work()
        self.cache = MirroredCache([], self.leader)

    def close(self) -> None:
        self.leader.close()
        self.leader.followers[0].line.close()
        self.there.close()

    def forward(self) -> Do:
        """One forward is told; what the other end hears of it."""
        self.leader.forward(self.cache, (1, 2, 3))
        while True:
            message = decode_leader_message(self.there.receive())
            if isinstance(message, Do):
                return message

    def say(self, message: Done | Failed) -> None:
        self.there.send(encode(message))

    def end(self) -> ClusterEnded:
        assert self.exited.wait(20)
        (ended,) = self.ended
        return ended

    @property
    def settled(self) -> bool:
        until = time.monotonic() + 5
        while self.leader.followers[0].due and time.monotonic() < until:
            time.sleep(0.01)
        return not self.leader.followers[0].due and not self.ended


@pytest.fixture
def led(monkeypatch: pytest.MonkeyPatch) -> Iterator[Led]:
    led = Led(monkeypatch)
    yield led
    led.close()


def test_what_was_done_as_it_was_told_is_nothing_to_speak_of(led: Led) -> None:
    assert led.forward().number == 1
    led.leader.record_positions(1, (3, -1))
    led.say(Done(1, led.leader._check, 3, -1, 0.25))
    assert led.settled
    assert led.leader.use[0].step_s == 0.25


def test_a_follower_may_be_done_before_the_leader_knows_where_it_stands_itself(led: Led) -> None:
    led.forward()
    led.say(Done(1, led.leader._check, 3, -1, 0.25))
    time.sleep(0.2)
    led.leader.record_positions(1, (3, -1))
    assert led.settled


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Done(2, 0, 3, -1, 0.1), "did operation 2 where 1 was to be done"),
        (Done(1, 7, 3, -1, 0.1), "received other messages"),
        (Done(1, 0, 4, -1, 0.1), "is at position 4 after operation 1, not at 3"),
        (Done(1, 0, -2, -2, 0.1), "is at position -2"),
    ],
)
def test_another_answer_than_the_right_one_ends_all(led: Led, done: Done, said: str) -> None:
    led.forward()
    led.leader.record_positions(1, (3, -1))
    check = led.leader._check if done.check == 0 else done.check
    led.say(Done(done.number, check, done.appending, done.window, done.took_s))
    ended = led.end()
    assert (ended.machine, ended.end) == ("studio", "disagrees")
    assert said in ended.message


def test_an_operation_past_its_deadline_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    led = Led(monkeypatch, deadline_s=0.5)
    led.forward()
    led.leader.record_positions(1, (3, -1))
    ended = led.end()
    assert (ended.machine, ended.end) == ("studio", "deadline")
    assert "operation 1 within its deadline" in ended.message
    led.close()


def test_a_follower_that_fails_says_why(led: Led) -> None:
    led.say(Failed("It has no memory left.", "Close something."))
    ended = led.end()
    assert (ended.machine, ended.end, ended.hint) == ("studio", "failed", "Close something.")
    assert ended.message == "studio: It has no memory left."


def test_a_line_that_ends_is_a_machine_that_is_lost(led: Led) -> None:
    led.there.close()
    assert (led.end().machine, led.end().end) == ("studio", "lost")


def test_an_orderly_end_is_told_and_ends_no_process(led: Led) -> None:
    led.leader.close()
    heard: list[object] = []
    with suppress(LineEnd):
        while True:
            heard.append(decode_leader_message(led.there.receive()))
    assert isinstance(heard[-1], End)
    assert not led.ended
