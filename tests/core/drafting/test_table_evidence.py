"""Evidence from tables: interpolated prebuilt contexts, and the n-gram table across chats."""

from __future__ import annotations

import random

import pytest

from core.drafting.auto import AutoDrafter
from core.drafting.calibration import WEIGHTS_LEARNED, Calibration
from core.drafting.evidence import TAIL_TOKENS, Evidence
from core.drafting.gram_table import GramTable
from core.drafting.ngram_mod import NgramTable
from core.drafting.table_evidence import Learned, Remembered
from tests.tuning.gram_count import GramCounter, Pruning

ANSWERS = [[5, 6, 7, 8, 5, 6, 7, 9], [5, 6, 7, 8], [1, 2, 3, 4, 5, 6, 7, 8]] * 4


def table() -> GramTable:
    counter = GramCounter(TAIL_TOKENS)
    for answer in ANSWERS:
        counter.add([], answer)
    return counter.table(Pruning(least_share=0.0, discount=0.0))


def test_a_context_is_believed_and_what_it_never_saw_is_not() -> None:
    outlook = Learned(table()).after((5, 6, 7))
    assert outlook.probabilities[8] > 0.6 > 0.3 > outlook.probabilities[9] > outlook.other
    assert sum(outlook.probabilities.values()) <= 1.0 + 1e-6
    assert all(0.0 < likely < 1.0 for likely in outlook.probabilities.values())


def test_an_unknown_context_falls_back_on_shorter_ones() -> None:
    learned = Learned(table())
    known, strange = learned.after((5, 6, 7)), learned.after((99, 98, 7))
    assert strange.probabilities[8] > 0.5
    assert (
        learned.after((99, 98, 97)).probabilities[8]
        < strange.probabilities[8]
        <= known.probabilities[8] + 1e-9
    )


def test_an_empty_table_knows_nothing() -> None:
    outlook = Learned(GramTable(())).after((1, 2))
    assert outlook.probabilities == {}
    assert 0.0 < outlook.other < 0.01


def test_evidence_guesses_what_only_the_table_knows() -> None:
    with_table, without = Evidence(100, Calibration(WEIGHTS_LEARNED), Learned(table())), Evidence(100)
    for evidence in (with_table, without):
        evidence.read([40, 41, 5, 6])
    assert 7 not in [guess.token for guess in without.current_guesses()]
    best = with_table.current_guesses()[0]
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
        odds, _ = evidence.log_odds_of_guesses(evidence.position())
        lead[name] = odds[8] - odds[9]
    assert lead["with"] > lead["without"] + 0.05


def test_a_table_that_is_always_wrong_is_put_aside_and_a_right_one_is_not() -> None:
    def drafts_from_table(answer: list[int]) -> bool:
        """Whether a context of the table is drafted from after `answer`."""
        drafter = AutoDrafter(1000, continuations=table())
        drafter.begin([30, 31])
        drafter.observe([*answer, 1, 2])
        return "table" in drafter.draft(16).sources

    assert drafts_from_table(ANSWERS[0] * 4)
    assert not drafts_from_table([9, 40, 41, 42] * 10)


N = 4
SLOTS = 1 << 16
SAID = random.Random(8).sample(range(10, 5000), 200)


def taught(n: int = N) -> NgramTable:
    table = NgramTable(n, SLOTS)
    Remembered(table).read(SAID)
    return table


def test_a_run_grows_while_the_table_is_right_and_ends_where_it_is_not() -> None:
    remembered = Remembered(taught())
    remembered.read([1, 2, *SAID[:N]])
    assert remembered.guess(remembered.table_cursor()) == SAID[N]
    for expected, token in enumerate(SAID[N : N + 5], 1):
        remembered.observe(token)
        assert remembered.table_cursor().run == expected
    remembered.observe(3)
    assert remembered.table_cursor().run == 0
    assert remembered.guess(remembered.table_cursor()) is None


def test_a_place_after_guesses_is_the_place_the_text_comes_to() -> None:
    table = taught()
    ahead, real = Remembered(table), Remembered(table)
    for each in (ahead, real):
        each.read([1, 2, *SAID[:N]])
    table_cursor, window = ahead.table_cursor(), SAID[:N]
    for token in [*SAID[N : N + 6], 7, 8, 9]:
        table_cursor = ahead.after(table_cursor, window, token)
        window = [*window, token]
        real.observe(token)
        assert table_cursor == real.table_cursor()


def test_too_short_a_text_asks_nothing() -> None:
    remembered = Remembered(taught())
    remembered.read(SAID[: N - 1])
    assert remembered.table_cursor().hash is None
    assert remembered.guess(remembered.table_cursor()) is None
    assert remembered.after(remembered.table_cursor(), SAID[: N - 1], 5).hash is None


def test_figures_count_what_came_where_there_was_a_guess() -> None:
    table = taught()
    remembered = Remembered(table)
    remembered.read([1, 2, *SAID[:N]])
    before = table.figures()
    for token in (SAID[N], SAID[N + 1], 3, 4):
        remembered.observe(token)
    after = table.figures()
    assert (after.tested - before.tested, after.accepted - before.accepted) == (3, 2)


def test_auto_drafts_what_another_chat_said_and_teaches_its_own() -> None:
    table = NgramTable(16, SLOTS)
    first = AutoDrafter(4000, memory=table)
    first.begin([1, 2, 3])
    first.observe(SAID)
    assert 100 < table.used < 200, "the newest transitions wait"
    second = AutoDrafter(4000, memory=table)
    second.begin([5, 6, 7])
    second.observe(SAID[:40])
    assert second.draft(16).tokens[:8] == tuple(SAID[40:48])
    without = AutoDrafter(4000)
    without.begin([5, 6, 7])
    without.observe(SAID[:40])
    assert SAID[40] not in without.draft(16).tokens


def test_where_the_session_knows_as_much_the_table_is_not_asked() -> None:
    table = taught()
    evidence = Evidence(1000, Calibration(), None, Remembered(table))
    evidence.read([*SAID[:20], 1, *SAID[:10]])
    asked = table.figures().lookups
    evidence.guesses(evidence.position())
    assert table.figures().lookups == asked
