"""Remembered: what an earlier chat said comes back in another, with how far it has been right."""

from __future__ import annotations

import random

from core.drafting.auto import AutoDrafter
from core.drafting.evidence.calibration import Calibration
from core.drafting.evidence.evidence import Evidence
from core.drafting.evidence.remembered import Remembered
from core.drafting.tables.ngram_table import NgramTable
from core.settings.drafting import Auto

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
    assert remembered.guess(remembered.trail()) == SAID[N]
    for expected, token in enumerate(SAID[N : N + 5], 1):
        remembered.hear(token)
        assert remembered.trail().run == expected
    remembered.hear(3)
    assert remembered.trail().run == 0
    assert remembered.guess(remembered.trail()) is None


def test_a_place_after_guesses_is_the_place_the_text_comes_to() -> None:
    table = taught()
    ahead, real = Remembered(table), Remembered(table)
    for each in (ahead, real):
        each.read([1, 2, *SAID[:N]])
    trail, window = ahead.trail(), SAID[:N]
    for token in [*SAID[N : N + 6], 7, 8, 9]:
        trail = ahead.after(trail, window, token)
        window = [*window, token]
        real.hear(token)
        assert trail == real.trail()


def test_too_short_a_text_asks_nothing() -> None:
    remembered = Remembered(taught())
    remembered.read(SAID[: N - 1])
    assert remembered.trail().hash is None
    assert remembered.guess(remembered.trail()) is None
    assert remembered.after(remembered.trail(), SAID[: N - 1], 5).hash is None


def test_figures_count_what_came_where_there_was_a_guess() -> None:
    table = taught()
    remembered = Remembered(table)
    remembered.read([1, 2, *SAID[:N]])
    before = table.figures()
    for token in (SAID[N], SAID[N + 1], 3, 4):
        remembered.hear(token)
    after = table.figures()
    assert (after.tested - before.tested, after.accepted - before.accepted) == (3, 2)


def test_auto_drafts_what_another_chat_said_and_teaches_its_own() -> None:
    table = NgramTable(16, SLOTS)
    first = AutoDrafter(Auto(), 4000, memory=table)
    first.begin([1, 2, 3])
    first.observe(SAID)
    assert 100 < table.used < 200, "the newest transitions wait"
    second = AutoDrafter(Auto(), 4000, memory=table)
    second.begin([5, 6, 7])
    second.observe(SAID[:40])
    assert second.draft(16).tokens[:8] == tuple(SAID[40:48])
    without = AutoDrafter(Auto(), 4000)
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
