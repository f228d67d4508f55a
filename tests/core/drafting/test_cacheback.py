"""cacheback's trees: the paper's example, CRT and TDL, both tables, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from msgspec.structs import replace

from core.drafting import cacheback
from core.drafting.cacheback import (
    WEIGHTS_FROZEN,
    CachebackDrafter,
    FollowerGuesses,
    FrozenTable,
    Gram,
    pairs,
)
from core.drafting.draft import Draft
from core.errors import SettingError
from core.events import Occupancy
from core.settings.drafting import Cacheback
from tests.core.drafting.support import (
    any_ids,
    assert_well_formed,
    branches,
    budgets,
    few_ids,
    frozen_table,
    observe_in_pieces,
    survives,
)


@st.composite
def settings(draw: st.DrawFn) -> Cacheback:
    size = draw(st.integers(2, 40))
    return Cacheback(
        mode=draw(st.sampled_from(["dual", "dynamic", "frozen"])),
        tree=draw(st.sampled_from(["planned", "paper"])),
        leader_tokens=draw(st.integers(1, 3)),
        follower_tokens=draw(st.integers(1, 4)),
        leader_capacity=draw(st.integers(16, 40)),
        follower_capacity=draw(st.integers(1, 8)),
        tree_tokens=size,
        reserved_tokens=draw(st.integers(0, size - 2)),
    )


def frozen_of(tokens: list[int], settings: Cacheback) -> FrozenTable:
    return frozen_table(tokens, settings.leader_tokens, settings.follower_tokens)


def first_level_nodes(draft: Draft, follower_tokens: int) -> int:
    depths = [0]
    for parent in draft.parents:
        depths.append(depths[parent + 1] + 1)
    return sum(depth <= follower_tokens for depth in depths[1:])


@examples(max_examples=150)
@given(settings(), few_ids, few_ids, few_ids, budgets, st.booleans())
def test_every_tree_is_well_formed_and_spells_only_what_was_seen(
    settings: Cacheback, corpus: list[int], prompt: list[int], answer: list[int], budget: int, tree: bool
) -> None:
    frozen = frozen_of(corpus, settings)
    drafter = CachebackDrafter(settings, frozen, tree=tree)
    drafter.begin(prompt)
    history = list(prompt)
    leader, follower = settings.leader_tokens, settings.follower_tokens
    for token in [*answer[:20], 0]:
        draft = drafter.draft(budget)
        assert_well_formed(draft, min(budget, settings.tree_tokens - 1))
        assert tree or draft.is_chain
        seen = set() if settings.mode == "frozen" else set(pairs(history, leader, follower))
        if settings.mode != "dynamic":
            seen |= {(known, gram) for known, grams in frozen.entries().items() for gram in grams}
        if settings.tree == "planned":
            assert len(draft.confidence) == len(draft)
            assert all(0.0 < likely < 1.0 for likely in draft.confidence)
            spelt = {known + gram[:length] for known, gram in seen for length in range(1, follower + 1)}
            for path in branches(draft):
                # A shorter path is among the branches, too, so each node is the last of one.
                text = (*history, *path)
                assert any(text[-length:] in spelt for length in range(leader + 1, leader + follower + 1))
        else:
            for path in branches(draft):
                # Each stretch of FL tokens begins a follower of the LL tokens before it.
                for start in range(0, len(path), follower):
                    before = tuple([*history, *path[:start]][-leader:])
                    stretch = path[start : start + follower]
                    assert any(known == before and gram[: len(stretch)] == stretch for known, gram in seen)
            if tree and settings.reserved_tokens and len(draft) == settings.tree_tokens - 1:
                free = settings.tree_tokens - 1 - settings.reserved_tokens
                assert first_level_nodes(draft, follower) <= free
        drafter.observe([token])
        history.append(token)


@given(settings(), few_ids, few_ids, few_ids, st.lists(st.integers(0, 9), max_size=20))
def test_pieces_and_requests_leave_no_trace(
    settings: Cacheback, corpus: list[int], before: list[int], tokens: list[int], cuts: list[int]
) -> None:
    frozen = frozen_of(corpus, settings)
    used, fresh = CachebackDrafter(settings, frozen), CachebackDrafter(settings, frozen)
    used.begin(before)
    used.begin(())
    observe_in_pieces(used, tokens, cuts)
    fresh.begin(tokens)
    assert used.draft(96) == fresh.draft(96)
    assert used.occupancy() == fresh.occupancy()


@given(settings(), any_ids, any_ids, st.booleans())
def test_no_token_sequence_raises(
    settings: Cacheback, prompt: list[int], answer: list[int], tree: bool
) -> None:
    survives(CachebackDrafter(settings, frozen_of(answer, settings), tree=tree), prompt, answer)


PAPER = Cacheback(tree="paper")
AT, DAWN, THE, FOX, RAN, FAST, HID, DEEP, SAT, STILL, AND, SLEPT = range(12)


def test_the_papers_example() -> None:
    """LL 2, FL 2: "the fox" has three followers, and one of them goes on."""
    drafter = CachebackDrafter(Cacheback(tree="paper", leader_tokens=2, follower_tokens=2))
    drafter.begin([THE, FOX, SAT, STILL, AND, SLEPT, THE, FOX, HID, DEEP])
    drafter.observe([THE, FOX, RAN, FAST, AT, DAWN, THE, FOX])
    draft = drafter.draft(96)
    # Most recent first, level by level.
    assert draft.tokens[:10] == (RAN, FAST, HID, DEEP, SAT, STILL, AT, DAWN, THE, FOX)
    assert draft.parents[:10] == (-1, 0, -1, 2, -1, 4, 1, 6, 3, 8)
    assert {(SAT, STILL, AND, SLEPT), (RAN, FAST, AT, DAWN), (HID, DEEP, THE, FOX)} <= branches(draft)


def wide(fan: int, **changes: int) -> CachebackDrafter:
    """0 is followed by 10, 20, 30 …, the last the most recent; each of those by its own run."""
    drafter = CachebackDrafter(replace(PAPER, **changes))
    prompt: list[int] = []
    for i in range(1, fan + 1):
        prompt += [0, 10 * i, 10 * i + 1, 10 * i + 2, 10 * i + 3, 10 * i + 4, 10 * i + 5]
    drafter.begin([*prompt, 0])
    return drafter


def test_the_first_level_leaves_the_reserve_to_the_deeper_ones() -> None:
    draft = wide(60).draft(96)
    assert len(draft) == 95
    assert first_level_nodes(draft, 3) == 79
    # The most recent follower is the first to be continued.
    assert (600, 601, 602, 603, 604, 605) in branches(draft)
    assert first_level_nodes(wide(60, reserved_tokens=0).draft(96), 3) == 95
    # The reserve is a sixth, of a smaller tree, too.
    assert [first_level_nodes(wide(60).draft(total), 3) for total in (5, 6, 47)] == [5, 5, 40]


def test_a_first_level_that_leaves_room_gives_it_to_the_deeper_ones() -> None:
    drafter = CachebackDrafter(PAPER)
    drafter.begin([0, 1, 2, 3] * 3)
    draft = drafter.draft(96)
    assert len(draft) == 95
    assert first_level_nodes(draft, 3) == 3


def test_common_beginnings_share_nodes() -> None:
    drafter = CachebackDrafter(Cacheback(tree="paper", tree_tokens=16, reserved_tokens=4))
    drafter.begin([0, 1, 2, 3, 0, 1, 2, 4, 0, 1, 5, 6, 0])
    draft = drafter.draft(96)
    assert draft.tokens[:6] == (1, 5, 6, 2, 4, 3)
    assert draft.parents[:6] == (-1, 0, 1, 0, 3, 3)


def frozen(entries: dict[int, list[Gram]]) -> FrozenTable:
    return FrozenTable({(leader,): tuple(followers) for leader, followers in entries.items()})


def test_the_frozen_table_grows_what_the_dynamic_one_formed() -> None:
    table = frozen({0: [(8, 8, 8), (1, 2, 3)], 3: [(7, 7, 7)], 7: [(6, 6, 6)]})
    drafter = CachebackDrafter(PAPER, table)
    drafter.begin([0, 1, 2, 3, 0])
    draft = drafter.draft(96)
    dynamic_only = CachebackDrafter(Cacheback(tree="paper", mode="dynamic"), table)
    dynamic_only.begin([0, 1, 2, 3, 0])
    formed = dynamic_only.draft(96)
    assert draft.prefix(len(formed)) == formed
    assert {(8, 8, 8), (1, 2, 3, 7, 7, 7), (1, 2, 3, 7, 7, 7, 6, 6, 6)} <= branches(draft)
    assert not {(8,), (1, 2, 3, 7)} & branches(formed)


def test_frozen_mode_learns_nothing() -> None:
    drafter = CachebackDrafter(Cacheback(tree="paper", mode="frozen"), frozen({0: [(8, 8, 8)]}))
    drafter.begin([0, 1, 2, 3, 0, 1, 2, 3, 0])
    assert branches(drafter.draft(96)) == {(8,), (8, 8), (8, 8, 8)}
    assert drafter.occupancy() == Occupancy(0, 2**20)


def test_chains_ask_the_frozen_table_where_the_dynamic_one_is_silent() -> None:
    table = frozen({3: [(7, 7, 5), (1, 1, 1)], 0: [(9, 9, 9)]})
    drafter = CachebackDrafter(PAPER, table, tree=False)
    drafter.begin([0, 1, 2, 3, 0])
    assert drafter.draft(7).tokens == (1, 2, 3, 7, 7, 5)


def test_what_more_tokens_support_is_likelier() -> None:
    drafter = CachebackDrafter(Cacheback())
    drafter.begin([1, 2, 3, 4, 5, 6, 9, 3, 7, 7, 8, 3, 7, 7, 1, 2, 3])
    draft = drafter.draft(8)
    likely = {draft.tokens[node]: draft.confidence[node] for node in draft.children(-1)}
    # 7 followed 3 twice and last; 4 followed 1, 2, 3.
    assert likely[4] > 5 * likely.get(7, 0.0)
    assert draft.tokens[0] == 4


def test_what_both_tables_have_is_worth_more_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    def log_odds(both: float) -> dict[int, float]:
        monkeypatch.setattr(cacheback, "WEIGHTS_FROZEN", replace(WEIGHTS_FROZEN, both=both))
        tables = frozen({0: [(1, 2, 3), (5, 5, 5)]}), frozen({0: [(1, 2, 3), (8, 8, 8)]})
        return {guess.token: guess.log_odds for guess in FollowerGuesses(Cacheback(), *tables).guesses((0,))}

    without, with_it = log_odds(0.0), log_odds(2.0)
    more = {token: round(with_it[token] - without[token], 6) for token in without}
    assert more == {1: 2.0, 5: 0.0, 8: 0.0}


def test_confidences_learn_from_what_came() -> None:
    def first(truth: bool) -> float:
        drafter = CachebackDrafter(Cacheback(), tree=False)
        phrase = list(range(10, 60))
        drafter.begin(phrase * 2)
        for place in range(40):
            drafter.draft(4)
            drafter.observe([phrase[place] if truth else 1000 + place])
        drafter.observe([500, *phrase[:3]])
        return drafter.draft(1).confidence[0]

    assert first(truth=True) > first(truth=False) + 0.1


def test_drafting_keeps_a_leader_from_leaving() -> None:
    drafter = CachebackDrafter(Cacheback(tree="paper", leader_capacity=16, follower_tokens=1))
    drafter.begin([100, 101])
    for token in range(15):
        # 100 is looked up, so it never is the least recently used.
        drafter.observe([200 + token, 100])
        assert drafter.draft(8).tokens[0] in (101, *range(200, 215))
    drafter.observe(range(300, 310))
    drafter.observe([100])
    assert len(drafter.draft(8)) > 0


@pytest.mark.parametrize(("size", "reserved"), [(2, 1), (96, 95), (16, 200)])
def test_a_reserve_without_a_first_level_is_refused(size: int, reserved: int) -> None:
    with pytest.raises(SettingError, match=f"at most {size - 2}"):
        CachebackDrafter(Cacheback(tree_tokens=size, reserved_tokens=reserved))
