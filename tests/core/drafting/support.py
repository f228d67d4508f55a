"""What the drafters' tests share: strategies for token sequences, and what holds for every draft."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import strategies as st

from core.drafting.cacheback import FrozenTable, Gram, pairs
from core.drafting.draft import Draft, Drafter, sanitise

# Few different ids, so that everything repeats and every table collides.
few_ids = st.lists(st.integers(0, 4), max_size=120)
# Anything a broken caller might pass.
any_ids = st.lists(
    st.one_of(st.integers(0, 3), st.integers(-5, 300_000), st.integers(-(2**70), 2**70)), max_size=80
)
budgets = st.integers(0, 130)
# A passage without any repetition in it.
PASSAGE = tuple(range(1000, 1060))


def assert_well_formed(draft: Draft, budget: int, vocabulary: int = 5) -> None:
    """Parents before children, no equal siblings, ids known, budget kept: nothing to sanitise."""
    assert len(draft.tokens) == len(draft.parents) <= max(0, budget)
    assert all(-1 <= parent < node for node, parent in enumerate(draft.parents))
    siblings = list(zip(draft.parents, draft.tokens))
    assert len(set(siblings)) == len(siblings)
    assert sanitise(draft, vocabulary=vocabulary, budget=budget) == draft


def frozen_table(text: Sequence[int], leader: int, follower: int, most: int = 64) -> FrozenTable:
    """What follows the runs of `leader` tokens of `text`, most frequent first; at most `most` a leader."""
    held: dict[Gram, Counter[Gram]] = {}
    for first, second in pairs(text, leader, follower):
        held.setdefault(first, Counter())[second] += 1
    most_common = {first: counts.most_common(most) for first, counts in held.items()}
    return FrozenTable({first: tuple(gram for gram, _ in grams) for first, grams in most_common.items()})


def observe_in_pieces(drafter: Drafter, tokens: Sequence[int], cuts: Sequence[int]) -> None:
    """Tell `tokens` in pieces whose lengths `cuts` gives, the rest at once."""
    start = 0
    for cut in cuts:
        drafter.observe(tokens[start : start + cut])
        start += cut
    drafter.observe(tokens[start:])


def survives(drafter: Drafter, prompt: Sequence[int], answer: Sequence[int]) -> None:
    """A whole request on any ids, with every call of the protocol."""
    drafter.begin(prompt)
    for position, token in enumerate(answer):
        draft = drafter.draft(position % 9 - 1)
        drafter.feedback(draft, min(len(draft), position % 3))
        drafter.observe_top([[token, -1], []], [(token, [3, -1]), (-1, [])])
        drafter.observe([token])
    drafter.draft(1_000_000)
    used = drafter.occupancy()
    assert 0 <= used.used <= used.capacity


def branches(draft: Draft) -> set[tuple[int, ...]]:
    """The token path from the root to every node."""
    paths: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens, draft.parents):
        paths.append((paths[parent] if parent >= 0 else ()) + (token,))
    return set(paths)
