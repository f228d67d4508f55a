"""Replay: exact acceptance from recorded answers, costs from named tables."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding.planner import Planner
from core.drafting.draft import Draft, Drafter
from core.drafting.registry import DRAFTERS
from core.settings.drafting import Gate
from tests.tuning.replay import COST_TABLES, planner_of, replay, replay_stream
from tests.tuning.streams import Stream, read_streams, write_streams

ALWAYS = Gate(mode="always")


class Fixed(Drafter):
    """Drafts one after the other of what it was given."""

    def __init__(self, *drafts: Draft) -> None:
        self._drafts = list(drafts)

    def draft(self, budget: int) -> Draft:
        return self._drafts.pop(0).prefix(budget) if self._drafts else Draft()


def cost(width: int, tree: bool = False) -> float:
    return 1.0 + 0.1 * (width - 1)


def test_plain_decoding_costs_a_step_a_token() -> None:
    tally = replay_stream(Drafter(), Stream([1, 2], [3, 4, 5]), cost, ALWAYS)
    assert (tally.tokens, tally.steps, tally.cost, tally.speed) == (3, 3, 3.0, 1.0)


def test_a_chain_is_accepted_to_its_first_error() -> None:
    drafter = Fixed(Draft.chain([3, 4, 9]))
    tally = replay_stream(drafter, Stream([1, 2], [3, 4, 5, 6, 7]), cost, ALWAYS)
    assert (tally.tokens, tally.steps, tally.accepted, tally.tested) == (5, 3, 2, 3)
    assert tally.cost == pytest.approx(cost(4) + 2)


def test_a_tree_is_walked_along_the_answer() -> None:
    tree = Draft((9, 3, 8, 4, 5), (-1, -1, 1, 1, 3))
    tally = replay_stream(Fixed(tree), Stream([1], [3, 4, 5, 6, 7, 8, 9]), cost, ALWAYS)
    assert (tally.accepted, tally.steps) == (3, 4)


def test_the_last_token_is_never_drafted() -> None:
    tally = replay_stream(Fixed(Draft.chain([3, 4, 5])), Stream([1], [3, 4]), cost, ALWAYS)
    assert (tally.tokens, tally.accepted, tally.steps) == (2, 1, 1)


@given(st.sampled_from(sorted(COST_TABLES)), st.integers(1, 200))
def test_tables_are_one_at_one_and_never_negative(name: str, width: int) -> None:
    table = COST_TABLES[name]
    assert table.cost(1) == 1.0
    assert table.cost(width) >= 1.0


@pytest.mark.parametrize("name", [name for name, spec in DRAFTERS.items() if not spec.needs_proposer])
def test_every_drafter_replays(name: str) -> None:
    phrase = [7, 8, 9, 10, 11, 12, 13, 14]
    stream = Stream(phrase * 6, phrase * 8, "loop")
    row = replay(name, [stream], COST_TABLES["cpu"], "always")
    assert row.kinds.keys() == {"loop"}
    assert row.speed == pytest.approx(1.0) if name == "off" else row.speed > 1.2


def test_a_planner_verifies_what_pays_and_asks_where_that_pays() -> None:
    sure = Draft((3, 4, 5), (-1, 0, 1), (0.99, 0.99, 0.01))
    stream = Stream([1, 2], [3, 4, 5, 6, 7])
    gated = Gate()  # rests at first: nothing in the prompt repeats
    tally = replay_stream(Fixed(sure), stream, cost, gated, Planner(cost))
    # The third guess was right, and rightly too unlikely to verify.
    assert (tally.accepted, tally.tested, tally.steps) == (2, 2, 3)
    assert [fate.accepted for fate in tally.fates] == [True, True]
    assert replay_stream(Fixed(sure), stream, cost, gated).steps == 5


def test_a_gate_asks_less_where_asking_takes_long_and_brings_nothing() -> None:
    sure = Draft((3, 4, 5), (-1, 0, 1), (0.99, 0.99, 0.01))
    wrong = Stream([1, 2], [9] * 200)
    planner = partial(planner_of, cost, 2.0)
    always, auto = (
        replay_stream(Fixed(sure), wrong, cost, gate, planner(), overhead=2.0) for gate in (ALWAYS, Gate())
    )
    assert auto.cost < 0.5 * always.cost


def test_streams_survive_the_disk(tmp_path: Path) -> None:
    streams = [Stream([1, 2], [3], "a", [[3, 4]]), Stream([5], [6, 7])]
    for name in ("s.jsonl", "s.jsonl.gz"):
        write_streams(tmp_path / name, streams)
        assert read_streams(tmp_path / name) == streams
