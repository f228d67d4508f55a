"""The worker's queue, as a state machine: clients ask, take turns and cancel at every point."""

from __future__ import annotations

from collections import deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from core.events import Cancel, CountTokens, Generate, Queued, TakeTurn
from core.worker.queue import CommandQueue, Entry

REQUESTS = st.sampled_from("abcd")


class Queueing(RuleBasedStateMachine):
    """`waiting` are the turns in order, `held` has the turn, `running` is what the main thread does."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = CommandQueue(self.hear)
        self.waiting: list[tuple[str, type]] = []
        self.others: deque[str] = deque()
        self.running: Entry | None = None
        self.cancelled = False
        self.held = ""
        self.told: dict[str, int] = {}
        self.count = 0

    def hear(self, event: Queued) -> None:
        self.told[event.request] = event.ahead

    def known(self) -> set[str]:
        return {name for name, _ in self.waiting} | {self.runs(), self.held}

    def runs(self) -> str:
        """The request that is carried out; a `Cancel` is of none."""
        running = self.running
        return running.request if running and not isinstance(running.command, Cancel) else ""

    @rule(request=REQUESTS, kind=st.sampled_from((Generate, TakeTurn)))
    def ask(self, request: str, kind: type) -> None:
        if request in self.known() and (request != self.held or kind is TakeTurn):
            return
        if request == self.held and any(name == request for name, _ in self.waiting):
            return
        self.told.pop(request, None)
        self.queue.put(kind(request, () if kind is Generate else "m"), 0.0)
        if request == self.held:
            self.waiting.insert(0, (request, kind))
        else:
            self.waiting.append((request, kind))

    @precondition(lambda self: self.held and self.held not in {name for name, _ in self.waiting})
    @rule()
    def ask_in_the_held_turn(self) -> None:
        self.ask(self.held, Generate)

    @precondition(lambda self: self.runs())
    @rule()
    def cancel_what_runs(self) -> None:
        self.cancel(self.runs())

    @rule()
    def count_tokens(self) -> None:
        self.count += 1
        self.others.append(f"count-{self.count}")
        self.queue.put(CountTokens(self.others[-1], "text"), 0.0)

    @precondition(lambda self: self.running is None)
    @rule()
    def begin(self) -> None:
        entry = self.queue.next(0.0)
        free = not self.held or (self.waiting and self.waiting[0][0] == self.held)
        turn = self.waiting[0] if self.waiting and free else None
        if entry is None:
            assert turn is None
            assert not self.others
            return
        self.running, self.cancelled = entry, False
        if self.others and entry.request == self.others[0]:
            self.others.popleft()
            return
        # Its turn, and no other command that came while it waited is left.
        assert turn == (entry.request, type(entry.command))
        assert not (self.others and entry.waited)
        self.waiting.pop(0)
        self.held = ""

    @precondition(lambda self: self.running is not None)
    @rule(fails=st.booleans())
    def end(self, fails: bool) -> None:
        assert self.running
        request = self.running.request
        assert self.queue.is_cancelled(request) == self.cancelled
        if isinstance(self.running.command, TakeTurn) and not fails:
            assert self.queue.hold(request) == (not self.cancelled)
            self.held = "" if self.cancelled else request
        assert self.queue.done(self.running) == self.cancelled
        self.running = None

    @rule(request=REQUESTS)
    def cancel(self, request: str) -> None:
        place = next((at for at, (name, _) in enumerate(self.waiting) if name == request), None)
        found = self.queue.cancel(request)
        is_held, runs = self.held == request, self.runs() == request
        if place is not None:
            assert isinstance(found, Entry)
            assert (found.request, type(found.command)) == self.waiting.pop(place)
        else:
            assert found is (is_held or runs)
            if found is False:
                self.queue.put(Cancel(request), 0.0)
                self.others.append(request)
        self.cancelled = self.cancelled or runs
        self.held = "" if is_held else self.held

    @invariant()
    def every_turn_that_waits_knows_its_place(self) -> None:
        own = bool(self.waiting) and self.waiting[0][0] == self.held
        turns = self.running is not None and isinstance(self.running.command, Generate | TakeTurn)
        at_work = int(turns or bool(self.held and not own))
        for place, (request, _) in enumerate(self.waiting):
            ahead = place + at_work
            assert self.told.get(request, 0) == ahead or not ahead
        assert self.queue.is_held == bool(self.held)
        assert self.queue.is_empty == (not self.waiting and not self.others and not self.held)


TestQueueing = Queueing.TestCase
TestQueueing.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_an_answer_that_comes_before_its_turn_is_reported_can_be_cancelled() -> None:
    queue = CommandQueue(lambda event: None)
    queue.put(TakeTurn("a", "m"), 0.0)
    taking = queue.next(0.0)
    assert taking
    assert queue.hold("a")
    queue.put(Generate("a", ()), 0.0)
    assert not queue.done(taking)
    assert queue.next(0.0)
    assert queue.cancel("a") is True
    assert queue.is_cancelled("a")
