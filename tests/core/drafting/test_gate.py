"""The gate: its score, when it rests, when it looks again, and what forcing means."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.gate import Gate, PricedGate, repetition
from core.settings.drafting import Gate as GateSettings
from tests.core.drafting.support import PASSAGE, any_ids, few_ids

REPETITIVE = [*PASSAGE, *PASSAGE]


@given(few_ids)
def test_the_score_is_the_share_of_runs_that_came_before(prompt: list[int]) -> None:
    runs = [tuple(prompt[i : i + 3]) for i in range(len(prompt) - 2)]
    repeats = sum(run in runs[:i] for i, run in enumerate(runs))
    assert repetition(prompt) == pytest.approx(repeats / len(runs) if runs else 0.0)


def test_a_repetitive_prompt_starts_drafting_and_others_wait() -> None:
    gate = Gate(GateSettings())
    gate.begin(REPETITIVE)
    assert gate.should_draft()
    assert gate.reason == "49% of the prompt repeats"
    gate.begin(PASSAGE)
    assert not gate.should_draft()
    assert gate.reason == "only 0% of the prompt repeats; testing again after 8 tokens"


def _steps_until(gate: Gate, drafting: bool, width: int, accepted: int, limit: int = 200) -> int:
    for step in range(limit):
        if gate.should_draft() == drafting:
            return step
        gate.record(width, accepted)
    raise AssertionError(f"still {gate.state}")


def test_drafts_that_pay_keep_it_open() -> None:
    gate = Gate(GateSettings())
    gate.begin(REPETITIVE)
    for _ in range(100):
        gate.record(8, 3)
        assert gate.should_draft()
    assert gate.reason == "drafting gives 2.17 times the plain speed"


def test_drafts_that_lose_close_it_and_rests_grow_to_a_bound() -> None:
    gate = Gate(GateSettings())
    gate.begin(REPETITIVE)
    rests = []
    for _ in range(6):
        assert _steps_until(gate, False, 8, 0) == 8
        assert "0.54 times the plain speed" in gate.reason
        rests.append(_steps_until(gate, True, 1, 0))
    assert rests == [8, 16, 32, 64, 64, 64]


def test_a_look_that_pays_makes_the_next_rest_short_again() -> None:
    gate = Gate(GateSettings())
    gate.begin(REPETITIVE)
    for _ in range(3):
        _steps_until(gate, False, 8, 0)
        _steps_until(gate, True, 1, 0)
    for _ in range(8):
        gate.record(8, 7)
    assert gate.should_draft()
    _steps_until(gate, False, 8, 0)
    assert _steps_until(gate, True, 1, 0) == 8


def test_the_machines_cost_decides() -> None:
    cheap, dear = Gate(GateSettings(), cost=lambda width: 1.1), Gate(GateSettings(), cost=lambda width: 6.0)
    for gate in (cheap, dear):
        gate.begin(REPETITIVE)
        for _ in range(8):
            gate.record(8, 1)
    assert cheap.should_draft()
    assert not dear.should_draft()


@pytest.mark.parametrize("prompt", [(), PASSAGE, REPETITIVE])
def test_a_gate_that_is_always_open_never_closes(prompt: Sequence[int]) -> None:
    gate = Gate(GateSettings(mode="always"))
    gate.begin(prompt)
    for _ in range(100):
        assert gate.should_draft()
        gate.record(8, 0)


def test_a_new_request_starts_afresh() -> None:
    used, fresh = Gate(GateSettings()), Gate(GateSettings())
    used.begin(REPETITIVE)
    for _ in range(50):
        used.record(8, 0)
    for gate in (used, fresh):
        gate.begin(REPETITIVE)
    assert (used.state, used.reason) == (fresh.state, fresh.reason)
    assert _steps_until(used, False, 8, 0) == _steps_until(fresh, False, 8, 0)
    assert _steps_until(used, True, 1, 0) == _steps_until(fresh, True, 1, 0) == 8


@given(any_ids, st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=200))
def test_it_always_looks_again_in_time(prompt: list[int], steps: list[tuple[int, int]]) -> None:
    gate = Gate(GateSettings())
    gate.begin(prompt)
    resting = 0
    for width, accepted in steps:
        assert gate.should_draft() == (gate.state == "drafting")
        if gate.state == "resting":
            resting += accepted + 1
        else:
            resting = 0
        gate.record(width, accepted)
        assert resting < 64 or gate.should_draft()


# ---- the gate of whole steps' costs


def _asks(gate: PricedGate, steps: int, worth: dict[float, float], sure: Sequence[float]) -> list[bool]:
    """Whether each step asks; `sure` repeats, and an asked step is worth what `worth` says of its token."""
    asked, before = [], 1.0
    for step in range(steps):
        asked.append(gate.should_draft())
        after = sure[step % len(sure)]
        gate.record(worth[before] if asked[-1] else None, after)
        before = after
    return asked


def test_asking_that_costs_nothing_is_never_given_up() -> None:
    assert all(_asks(PricedGate(GateSettings()), 500, {1.0: 0.0, 0.0: 0.0}, [0.0, 1.0]))


def test_only_tokens_that_are_worth_it_are_asked_for_and_others_tried_again() -> None:
    worth = {1.0: 0.5, 0.9: 0.5, 0.1: -0.2}
    asked = _asks(PricedGate(GateSettings()), 2000, worth, [0.9, 0.1])
    uncertain, certain = asked[20::2], asked[21::2]
    assert all(certain)
    assert 0.02 < sum(uncertain) / len(uncertain) < 0.2


def test_asking_that_loses_everywhere_becomes_rare_until_it_pays() -> None:
    gate = PricedGate(GateSettings())
    lost = _asks(gate, 1000, {1.0: -0.5, 0.9: -0.5, 0.1: -0.5}, [0.9, 0.1, 0.1])
    assert sum(lost[50:]) / len(lost[50:]) < 0.06
    assert gate.state == "resting"
    assert gate.reason == "drafts cost more than they bring"
    pays = _asks(gate, 300, {1.0: 0.5, 0.9: 0.5, 0.1: 0.5}, [0.9, 0.1, 0.1])
    assert all(pays[-50:])


def test_a_gate_that_opened_stays_open_until_a_step_could_ask() -> None:
    gate = PricedGate(GateSettings())
    gate.record(0.0, 0.1)
    while gate.should_draft():
        gate.record(-1.0, 0.1)
    gate.record(None, 0.9)
    assert gate.should_draft()
    gate.record(None, 0.1)  # of a pass that ran ahead
    assert gate.should_draft()
    gate.record(-1.0, 0.1)
    assert not gate.should_draft()


def test_plain_steps_are_made_until_they_are_timed() -> None:
    priced = False
    gate = PricedGate(GateSettings(), lambda: priced)
    asked = _asks(gate, 60, {1.0: 1.0, 0.9: 1.0}, [0.9])
    assert all(asked[:10])
    rested = len(asked) - sum(asked)
    assert 3 < rested < 10, "a loop that cannot run ahead would never ask again"
    assert gate.state == "drafting"
    gate.begin(())
    while gate.should_draft():
        gate.record(1.0, 0.9)
    priced = True
    gate.record(None, 0.9)
    assert gate.should_draft()


def test_a_priced_gate_that_is_forced_is_open_and_forgets_between_answers() -> None:
    forced = PricedGate(GateSettings(mode="always"), lambda: False)
    assert all(_asks(forced, 100, {1.0: -1.0, 0.1: -1.0}, [0.1]))
    assert forced.reason == "drafting at every step was requested"
    gate = PricedGate(GateSettings())
    assert not all(_asks(gate, 50, {1.0: -1.0, 0.1: -1.0}, [0.1]))
    gate.begin(())
    assert gate.should_draft()
    assert all(_asks(gate, 3, {1.0: -0.1, 0.1: -0.1}, [0.1]))
