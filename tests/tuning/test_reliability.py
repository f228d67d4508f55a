"""Reliability: which nodes have a fate, and what a decile says of them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from core.drafting.draft import Draft
from tests.tuning.replay import Decile, Fate, deciles, fates


def worst_error(table: Sequence[Decile], least_nodes: int) -> float:
    """The largest absolute error of a decile with at least `least_nodes` nodes; 0 if there is none."""
    return max((abs(decile.error) for decile in table if decile.nodes >= least_nodes), default=0.0)


def test_only_nodes_below_accepted_ones_have_a_fate() -> None:
    tree = Draft((1, 2, 3, 4, 5), (-1, -1, 0, 1, 3), (0.6, 0.3, 0.9, 0.8, 0.7))
    assert fates(tree, [1, 3]) == [Fate(0.6, False), Fate(0.3, True), Fate(0.8, True), Fate(0.7, False)]
    assert fates(tree, []) == [Fate(0.6, False), Fate(0.3, False)]
    assert fates(Draft.chain([1, 2]), [0]) == []


def test_deciles_hold_their_means() -> None:
    table = deciles([Fate(0.25, True), Fate(0.29, False), Fate(1.0, True), Fate(0.95, True)])
    assert [(d.low, d.nodes, d.acceptance) for d in table] == [(0.2, 2, 0.5), (0.9, 2, 1.0)]
    assert table[0].mean_confidence == pytest.approx(0.27)
    assert table[0].error == pytest.approx(-0.23)
    assert worst_error(table, 2) == pytest.approx(0.23)
    assert worst_error(table, 3) == 0.0


def test_an_honest_drafter_is_found_honest_and_a_boaster_is_not() -> None:
    rng = random.Random(0)
    honest = [Fate(p, rng.random() < p) for p in (rng.random() for _ in range(20_000))]
    boasts = [Fate(min(1.0, fate.confidence + 0.1), fate.accepted) for fate in honest]
    assert worst_error(deciles(honest), 100) < 0.03
    assert worst_error(deciles(boasts), 100) > 0.08
