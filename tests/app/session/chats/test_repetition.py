"""A loop is found, and nothing that people write is taken for one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.session.chats.repetition import LEAST_TOKENS, LONGEST_PERIOD, Repetition

ROOT = Path(__file__).parents[4]


def alarm(ids: list[int]) -> int | None:
    """After how many tokens."""
    repetition = Repetition()
    return next((count for count, each in enumerate(ids, start=1) if repetition.add(each)), None)


@given(
    st.lists(st.integers(0, 9), max_size=60),
    st.lists(st.integers(10, 99), min_size=1, max_size=LONGEST_PERIOD),
)
def test_a_loop_is_found_as_soon_as_it_is_certain(before: list[int], loop: list[int]) -> None:
    found = alarm(before + loop * 1000)
    assert found is not None
    assert found <= len(before) + max(LEAST_TOKENS, 4 * len(loop))


@pytest.mark.sweep
@given(st.integers(1, LONGEST_PERIOD))
def test_one_token_that_differs_in_each_round_is_no_loop(period: int) -> None:
    ids = [token for round_ in range(60) for token in (*range(1000, 1000 + period), 2000 + round_)]
    assert alarm(ids) is None


@pytest.mark.sweep
@pytest.mark.parametrize("ending", ["py", "md", "json", "toml", "svg"])
def test_no_file_of_this_project_is_taken_for_a_loop(ending: str) -> None:
    """Word by word, which repeats more than tokens do."""
    files = [
        path
        for folder in ("app", "core", "docs", "resources")
        for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    files += ROOT.glob(f"*.{ending}")
    assert files
    for path in files:
        words: dict[str, int] = {}
        ids = [words.setdefault(word, len(words)) for word in path.read_text("utf-8")[:200_000].split()]
        assert alarm(ids) is None, path
