"""Counting in runs on disk gives the table that counting in memory gives."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.drafting.cacheback import pairs
from core.errors import TableError
from core.tables.leader_count import LeaderCount, Shape

Gram = tuple[int, ...]


def by_hand(texts: Sequence[Sequence[int]], shape: Shape) -> dict[Gram, tuple[Gram, ...]]:
    totals: Counter[Gram] = Counter()
    followers: dict[Gram, Counter[Gram]] = {}
    for text in texts:
        for leader, follower in pairs(text, shape.leader_tokens, shape.follower_tokens):
            totals[leader] += 1
            followers.setdefault(leader, Counter())[follower] += 1
    kept = {
        leader: [
            gram
            for gram, count in sorted(held.items(), key=lambda item: (-item[1], item[0]))
            if count >= shape.least_count
        ][: shape.followers]
        for leader, held in followers.items()
    }
    best = sorted((k for k in kept if kept[k]), key=lambda leader: (-totals[leader], leader))[: shape.leaders]
    return {leader: tuple(kept[leader]) for leader in best}


def counted(
    texts: Sequence[Sequence[int]], shape: Shape, rows: int, vocabulary: int = 300
) -> dict[Gram, tuple[Gram, ...]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        LeaderCount(shape, vocabulary, Path(folder), rows=rows) as count,
    ):
        for text in texts:
            count.add(text)
        return dict(count.table().entries())


@pytest.mark.parametrize("rows", [7, 100, 10_000])
@pytest.mark.parametrize(
    "shape",
    [
        Shape(1, 3, 50, 4),
        Shape(2, 1, 5, 128),
        Shape(3, 2, 1000, 2, 2),
        Shape(1, 1, 3, 1),
    ],
)
@pytest.mark.parametrize("vocabulary", [300, 100_000])
def test_as_by_hand(rows: int, shape: Shape, vocabulary: int) -> None:
    rng = random.Random(rows)
    texts = [
        [rng.choice([0, 1, 2, 3, 255, 256, vocabulary - 1]) for _ in range(rng.randrange(300))]
        for _ in range(5)
    ]
    found = counted(texts, shape, rows, vocabulary)
    expected = by_hand(texts, shape)
    assert found == expected
    assert list(found) == list(expected), "most frequent leaders first"


@given(st.lists(st.lists(st.integers(0, 5), max_size=40), max_size=5), st.integers(1, 30))
@settings(deadline=None, max_examples=40)
def test_any_text_any_run_length(texts: list[list[int]], rows: int) -> None:
    shape = Shape(1, 2, 4, 3)
    assert counted(texts, shape, rows) == by_hand(texts, shape)


@pytest.mark.parametrize("cut", [1, 2, 3, 4, 10, 99])
def test_a_text_in_pieces_is_the_same_text(tmp_path: Path, cut: int) -> None:
    rng = random.Random(0)
    text = [rng.randrange(5) for _ in range(100)]
    shape = Shape(1, 3, 50, 10)
    with LeaderCount(shape, 300, tmp_path, rows=20) as count:
        for start in range(0, len(text), cut):
            count.add(text[start : start + cut], starts=start == 0)
        assert dict(count.table().entries()) == by_hand([text], shape)


@pytest.mark.parametrize("most", [1, 10, 37, 100])
def test_the_rarest_followers_go_first(most: int) -> None:
    rng = random.Random(2)
    text = [min(int(rng.expovariate(0.3)), 30) for _ in range(3000)]
    whole = by_hand([text], Shape(1, 2, 1000, 1000))
    times = Counter(pairs(text, 1, 2))
    found = counted([text], Shape(1, 2, 1000, 1000, most=most), 100)
    kept = [times[leader, gram] for leader, held in found.items() for gram in held]
    assert (
        sorted(kept, reverse=True)
        == sorted((times[leader, gram] for leader, held in whole.items() for gram in held), reverse=True)[
            :most
        ]
    )
    for leader, held in found.items():
        assert held == whole[leader][: len(held)]


PAIRS = Shape(1, 2)
PIECES = [[random.Random(i).randrange(9) for _ in range(10)] for i in range(30)]


def count_some(folder: Path, most: int, *, basis: str = "a", shape: Shape = PAIRS) -> LeaderCount:
    """Go on with `PIECES`, one text, for at most so many pieces, and leave it there."""
    with LeaderCount(shape, 300, folder, basis=basis, rows=25) as count:
        for at in range(count.mark.pieces, min(count.mark.pieces + most, len(PIECES))):
            count.add(PIECES[at], starts=at == 0)
        return count


@pytest.mark.parametrize("most", [1, 2, 3, 7, 29, 30])
def test_a_count_that_was_stopped_goes_on(tmp_path: Path, most: int) -> None:
    """Only what came after the last run is counted again, and nothing twice."""
    seen = [count_some(tmp_path, most).mark.pieces for _ in range(40)]
    whole = by_hand([[token for piece in PIECES for token in piece]], Shape(1, 2))
    with LeaderCount(Shape(1, 2), 300, tmp_path, basis="a", rows=25) as count:
        assert count.mark.pieces >= 27 or most < 3, "three pieces fill a run"
        for at in range(count.mark.pieces, len(PIECES)):
            count.add(PIECES[at], starts=at == 0)
        assert count.mark.tokens == 300
        assert dict(count.table().entries()) == whole
        count.discard()
    assert seen[0] == most
    assert not tmp_path.exists()


def test_a_run_that_was_written_and_not_noted_is_written_again(tmp_path: Path) -> None:
    count_some(tmp_path, 3)
    state = (tmp_path / "state.json").read_bytes()
    count_some(tmp_path, 3)
    (tmp_path / "state.json").write_bytes(state)
    # This time in longer runs, so that what is left of the other one fits nowhere.
    with LeaderCount(Shape(1, 2), 300, tmp_path, basis="a", rows=45) as count:
        assert count.mark.pieces == 3
        for piece in PIECES[3:20]:
            count.add(piece, starts=False)
    with LeaderCount(Shape(1, 2), 300, tmp_path, basis="a", rows=45) as count:
        assert count.mark.pieces > 3
        for piece in PIECES[count.mark.pieces :]:
            count.add(piece, starts=False)
        assert dict(count.table().entries()) == by_hand(
            [[token for piece in PIECES for token in piece]], Shape(1, 2)
        )


def test_what_was_counted_of_something_else_or_is_damaged_is_dropped(tmp_path: Path) -> None:
    for damage in (
        lambda: {"basis": "b"},
        lambda: {"shape": Shape(1, 3)},
        lambda: (tmp_path / "0.rows").write_bytes(b"x") and {},
        lambda: (tmp_path / "0.counts").unlink() or {},
        lambda: (tmp_path / "state.json").write_bytes(b"{") and {},
    ):
        count_some(tmp_path, 20)
        assert (tmp_path / "0.rows").exists()
        assert count_some(tmp_path, 1, **damage()).mark.pieces == 1
        assert not (tmp_path / "0.rows").exists()


def test_two_at_once_are_told(tmp_path: Path) -> None:
    with LeaderCount(Shape(), 300, tmp_path), pytest.raises(TableError, match="another Draftlight"):
        count_some(tmp_path, 1)


def test_a_frequent_leader_fills_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One leader with more rows than a merge block holds."""
    monkeypatch.setattr("core.tables.leader_count._BLOCK_ROWS", 10)
    rng = random.Random(1)
    text = [token for _ in range(400) for token in (7, rng.randrange(200), rng.randrange(200))]
    shape = Shape(1, 2, 5, 6)
    with LeaderCount(shape, 300, tmp_path, rows=50) as count:
        for start in range(0, len(text), 60):
            count.add(text[start : start + 60], starts=start == 0)
        found = dict(count.table().entries())
    expected = by_hand([text], shape)
    assert list(found) == list(expected)
    assert found[(7,)] == expected[(7,)]
