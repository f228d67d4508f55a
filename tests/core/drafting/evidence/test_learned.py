"""Learned: contexts become one probability a token, believed as far as they were seen."""

from __future__ import annotations

import pytest

from core.drafting.auto import AutoDrafter
from core.drafting.evidence.calibration import WEIGHTS, WEIGHTS_LEARNED, Calibration
from core.drafting.evidence.evidence import TAIL_TOKENS, Evidence
from core.drafting.evidence.learned import Learned
from core.drafting.tables.gram_table import GramTable
from core.settings.drafting import Auto
from core.tables.prebuilt.gram_count import GramCounter, Pruning

SAID = [[5, 6, 7, 8, 5, 6, 7, 9], [5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]] * 4


def table() -> GramTable:
    counter = GramCounter(TAIL_TOKENS)
    for answer in SAID:
        counter.add([], answer)
    return counter.table(Pruning(least_share=0.0, discount=0.0))


def test_a_context_is_believed_and_what_it_never_saw_is_not() -> None:
    outlook = Learned(table()).after((5, 6, 7))
    assert outlook.likely[8] > 0.6 > 0.3 > outlook.likely[9] > outlook.unknown
    assert sum(outlook.likely.values()) <= 1.0 + 1e-6
    assert all(0.0 < likely < 1.0 for likely in outlook.likely.values())


def test_an_unknown_context_falls_back_on_shorter_ones() -> None:
    learned = Learned(table())
    known, strange = learned.after((5, 6, 7)), learned.after((99, 98, 7))
    assert strange.likely[8] > 0.5
    assert learned.after((99, 98, 97)).likely[8] < strange.likely[8] <= known.likely[8] + 1e-9


def test_an_empty_table_knows_nothing() -> None:
    outlook = Learned(GramTable(())).after((1, 2))
    assert outlook.likely == {}
    assert 0.0 < outlook.unknown < 0.01


def test_evidence_guesses_what_only_the_table_knows() -> None:
    with_table, without = Evidence(100, Calibration(WEIGHTS_LEARNED), Learned(table())), Evidence(100)
    for evidence in (with_table, without):
        evidence.read([40, 41, 5, 6])
    assert 7 not in [guess.token for guess in without.here()]
    best = with_table.here()[0]
    assert best.token == 7
    # Behind an assumed token the table is asked with that token.
    onward = with_table.guesses(with_table.after(with_table.position(), 7))
    assert onward[0].token == 8
    assert onward[0].probability == pytest.approx(best.probability, abs=0.4)


def test_the_table_raises_what_both_know_and_lowers_what_it_does_not_expect() -> None:
    text = [5, 6, 7, 9, 1, 5, 6, 7, 8, 2, 5, 6, 7]
    lead = {}
    for name, learned in (("with", Learned(table())), ("without", None)):
        evidence = Evidence(100, Calibration(WEIGHTS_LEARNED), learned)
        evidence.read(text)
        odds, _ = evidence.weighed(evidence.position())
        lead[name] = odds[8] - odds[9]
    assert lead["with"] > lead["without"] + 0.05


def test_a_table_that_is_always_wrong_is_put_aside_and_a_right_one_is_not() -> None:
    def heard(answer: list[int]) -> Calibration:
        calibration = Calibration()
        drafter = AutoDrafter(Auto(), 1000, calibration=calibration, continuations=table())
        drafter.begin([30, 31])
        drafter.observe(answer)
        return calibration

    assert heard(SAID[0] * 4).weights == WEIGHTS_LEARNED
    assert heard([9, 40, 41, 42] * 10).weights == WEIGHTS
