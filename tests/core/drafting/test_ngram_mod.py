"""ngram-mod against a plain model of the seed's rules; what is shared and what is the request's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.drafting.draft import Draft
from core.drafting.ngram_mod import Entries, NgramModDrafter, NgramTable
from core.events import TableFigures
from core.settings.drafting import NgramMod
from tests.core.drafting.support import (
    PASSAGE,
    any_ids,
    assert_well_formed,
    budgets,
    few_ids,
    observe_in_pieces,
    survives,
)
from tests.core.drafting.test_ngram_table import SLOTS, content, slot_of

# Large enough that nothing collides by chance where a test expects a certain draft.
ROOMY = 2**20
windows = st.sampled_from([1, 2, 3, 16, 32, 40])


class Model:
    """The seed's rules on a list and a dict."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.cells: dict[int, int] = {}
        self.history: list[int] = []
        self.i_last = 0

    def slot(self, window: Sequence[int]) -> int:
        return slot_of(tuple(window))

    def write(self) -> None:
        for i in range(self.i_last, len(self.history) - self.n):
            self.cells[self.slot(self.history[i : i + self.n])] = self.history[i + self.n]
        self.i_last = max(0, len(self.history) - self.n)

    def begin(self, prompt: list[int]) -> None:
        self.history, self.i_last = list(prompt), 0
        self.write()

    def observe(self, token: int) -> None:
        self.history.append(token)
        if self.i_last + 32 < len(self.history) and len(self.history) > self.n:
            self.write()

    def draft(self, length: int) -> list[int]:
        sequence = list(self.history)
        while len(self.history) >= self.n and len(sequence) < len(self.history) + length:
            token = self.cells.get(self.slot(sequence[-self.n :]))
            if token is None:
                break
            sequence.append(token)
        return sequence[len(self.history) :]


@given(windows, few_ids, few_ids, budgets)
def test_equals_the_model_after_every_token(
    n: int, prompt: list[int], answer: list[int], budget: int
) -> None:
    drafter, model = NgramModDrafter(NgramMod(k=8), NgramTable(n, SLOTS)), Model(n)
    for start in ([], prompt):
        drafter.begin(start)
        model.begin(start)
        for token in answer:
            drafter.observe([token])
            model.observe(token)
            draft = drafter.draft(budget)
            assert list(draft.tokens) == model.draft(min(8, budget))
            assert draft.is_chain
            assert_well_formed(draft, budget)
        assert drafter.occupancy().used == len(model.cells)
        assert drafter.occupancy().capacity == SLOTS


@given(windows, few_ids, st.lists(st.integers(0, 9), max_size=20))
def test_pieces_equal_the_whole(n: int, tokens: list[int], cuts: list[int]) -> None:
    tables = [NgramTable(n, SLOTS), NgramTable(n, SLOTS)]
    pieces, whole = (NgramModDrafter(NgramMod(), table) for table in tables)
    observe_in_pieces(pieces, tokens, cuts)
    whole.observe(tokens)
    contents = [content(table) for table in tables]
    assert contents[0] == contents[1]
    assert pieces.draft(64) == whole.draft(64)


@given(windows, any_ids, any_ids)
def test_no_token_sequence_raises(n: int, prompt: list[int], answer: list[int]) -> None:
    survives(NgramModDrafter(NgramMod(), NgramTable(n, SLOTS)), prompt, answer)


def _poor(drafter: NgramModDrafter, times: int) -> None:
    for _ in range(times):
        drafter.feedback(Draft.chain([1, 2, 3, 4]), 1)


def test_poor_drafts_pause_the_request_and_never_touch_the_table() -> None:
    table = NgramTable(16, ROOMY)
    drafter, neighbour = NgramModDrafter(NgramMod(), table), NgramModDrafter(NgramMod(), table)
    for one in (drafter, neighbour):
        one.begin([*PASSAGE, *PASSAGE[:16]])
    used = table.used
    _poor(drafter, 2)
    assert len(drafter.draft(6)) == 6
    _poor(drafter, 1)
    assert drafter.paused
    assert len(drafter.draft(6)) == 0
    assert table.used == used
    assert neighbour.draft(6).tokens == PASSAGE[16:22]
    drafter.observe(PASSAGE[16:23])
    assert drafter.paused
    drafter.observe(PASSAGE[23:24])
    assert drafter.draft(6).tokens == PASSAGE[24:30]


def _pause_length(drafter: NgramModDrafter) -> int:
    length = 0
    while drafter.paused:
        drafter.observe([1])
        length += 1
    return length


def test_pauses_grow_to_a_bound_and_a_good_draft_forgives() -> None:
    drafter = NgramModDrafter(NgramMod(), NgramTable(16, ROOMY))
    drafter.begin(())
    lengths = []
    for _ in range(5):
        _poor(drafter, 3)
        lengths.append(_pause_length(drafter))
    assert lengths == [8, 16, 32, 32, 32]
    drafter.feedback(Draft.chain([1, 2, 3, 4]), 2)
    _poor(drafter, 3)
    assert _pause_length(drafter) == 8


def test_only_poor_drafts_in_a_row_count() -> None:
    drafter = NgramModDrafter(NgramMod(), NgramTable(16, ROOMY))
    for _ in range(4):
        _poor(drafter, 2)
        drafter.feedback(Draft(), 0)
        drafter.feedback(Draft.chain([1, 2]), 1)
    assert not drafter.paused
    drafter.feedback(Draft(), 0)
    _poor(drafter, 3)
    drafter.begin(())
    assert not drafter.paused


WRONG = 999


def _all_wrong(n: int) -> NgramTable:
    """A table that guesses the same token everywhere."""
    table = NgramTable(n, SLOTS)
    every = np.arange(SLOTS, dtype=np.uint32)
    ages = np.zeros(SLOTS, np.uint8)
    table.restore(Entries(every, np.full(SLOTS, WRONG, np.uint32), ages), TableFigures(SLOTS, SLOTS))
    return table


def test_a_table_that_is_always_wrong_costs_one_draft() -> None:
    drafter = NgramModDrafter(NgramMod(), _all_wrong(16))
    drafter.begin(PASSAGE[:20])
    drafts = 0
    for step in range(300):
        draft = drafter.draft(6)
        drafts += bool(draft.tokens)
        drafter.feedback(draft, 0)
        drafter.observe([step % 500])
    assert drafts == 1


def test_a_guess_that_comes_true_in_silence_ends_the_doubt() -> None:
    drafter = NgramModDrafter(NgramMod(), _all_wrong(4))
    drafter.begin([1, 2, 3, 4])
    drafter.feedback(drafter.draft(6), 0)
    drafter.observe([5])
    assert not drafter.draft(6)
    drafter.observe([6, WRONG, 7])
    assert drafter.draft(6).tokens == (WRONG,) * 6
    drafter.feedback(drafter.draft(6), 1)
    drafter.observe([WRONG, 8])
    assert drafter.draft(6), "something came of it"
    drafter.feedback(drafter.draft(6), 0)
    assert not drafter.draft(6)
    drafter.begin([1, 2, 3, 4])
    assert drafter.draft(6), "doubt is the request's"


@given(windows, few_ids, few_ids)
def test_doubt_changes_nothing_that_is_learned(n: int, prompt: list[int], answer: list[int]) -> None:
    tables = NgramTable(n, SLOTS), NgramTable(n, SLOTS)
    for table, doubted in zip(tables, (True, False)):
        drafter = NgramModDrafter(NgramMod(), table)
        drafter.begin(prompt)
        if doubted:
            drafter.feedback(Draft.chain([1]), 0)
        drafter.observe(answer)
    assert content(tables[0]) == content(tables[1])
