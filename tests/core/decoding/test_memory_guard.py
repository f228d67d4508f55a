"""What is fitted into the memory that is left: the largest chunk and answer, freed memory first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.decoding.answer import MemoryGuard
from core.errors import NotEnoughMemoryError
from core.events import MemoryNeed
from core.events.models import CHUNK_TOKENS

_LEAST_CHUNK, _LEAST_ANSWER = 32, 64
NEEDS = st.builds(
    MemoryNeed,
    growing=st.integers(0, 50),
    growing_layers=st.integers(0, 3),
    working=st.integers(0, 40).map(lambda a_token: a_token * CHUNK_TOKENS),
    working_growing=st.integers(0, 2).map(lambda a_token: a_token * CHUNK_TOKENS),
)


class Machine:
    """Memory of which `freed` bytes more are left after a release."""

    def __init__(self, left: int, freed: int = 0) -> None:
        self.left, self._freed, self.released = left, freed, 0

    def __call__(self) -> int:
        return self.left

    def release(self) -> None:
        self.left += self._freed
        self.released += 1

    def guard(self, need: MemoryNeed | None) -> MemoryGuard:
        return MemoryGuard(need, self, self.release)


@given(
    NEEDS,
    st.integers(0, 300),
    st.integers(1, 400),
    st.sampled_from([32, 64, 128, 512]),
    st.sampled_from([0, 0, 20, 90]),
    st.integers(0, 60_000),
    st.integers(0, 20_000),
)
def test_the_chunk_is_the_largest_that_fits(
    need: MemoryNeed, held: int, more: int, wanted: int, undivided: int, left: int, freed: int
) -> None:
    columns = held + more
    grown = need.growth(held, columns + _LEAST_ANSWER)
    a_token = max(1, need.working_at(columns + _LEAST_ANSWER, 1))
    smallest = max(undivided, _LEAST_CHUNK)
    longest = max(smallest, min(wanted, more))

    def fits(tokens: int, bytes_left: int) -> bool:
        return grown + a_token * tokens <= bytes_left

    machine = Machine(left, freed)
    guard = machine.guard(need)
    if not fits(smallest, left + freed):
        with pytest.raises(NotEnoughMemoryError) as raised:
            guard.chunk_tokens(held, columns, wanted, undivided)
        assert f"A context of {columns:,} tokens" in raised.value.message
        assert (f"with images of {undivided} tokens each" in raised.value.message) == (
            undivided > _LEAST_CHUNK
        )
        assert machine.released == 1
        return
    chunk = guard.chunk_tokens(held, columns, wanted, undivided)
    assert machine.released == (not fits(longest, left))  # nothing is freed in vain
    if fits(longest, machine.left):
        assert chunk == wanted
    else:
        assert fits(chunk, machine.left)
        assert chunk & (chunk - 1) == 0
        assert not fits(2 * chunk, machine.left)
    guard.chunk_tokens(held, columns, wanted, undivided)
    assert machine.released <= 1


@given(NEEDS, st.integers(0, 300), st.integers(1, 300), st.integers(0, 60_000), st.integers(0, 20_000))
def test_the_answer_is_the_longest_that_fits(
    need: MemoryNeed, held: int, wanted: int, left: int, freed: int
) -> None:
    def fits(tokens: int, bytes_left: int) -> bool:
        peak = need.growth(held, held + tokens) + need.working_at(held + tokens, _LEAST_CHUNK)
        return peak <= bytes_left

    machine = Machine(left, freed)
    tokens = machine.guard(need).answer_tokens(held, wanted)
    assert machine.released == (not fits(wanted, left))
    assert 1 <= tokens <= wanted
    assert tokens == 1 or fits(tokens, machine.left)
    assert tokens == wanted or not fits(tokens + 1, machine.left)


def test_a_model_without_an_estimate_is_not_limited() -> None:
    machine = Machine(0)
    guard = machine.guard(None)
    assert guard.chunk_tokens(0, 100_000, 512) == 512
    assert guard.answer_tokens(100_000, 4096) == 4096
    assert machine.released == 0
    assert MemoryGuard(MemoryNeed(growing=1)).chunk_tokens(0, 10_000, 512) == 512


@pytest.mark.parametrize("undivided", [0, 32, 33])
def test_what_is_missing_is_told_in_gigabytes(undivided: int) -> None:
    machine = Machine(2_400_000_000)
    need = MemoryNeed(growing=10_000_000)
    with pytest.raises(NotEnoughMemoryError) as raised:
        machine.guard(need).chunk_tokens(36, 300, 512, undivided)
    images = " with images of 33 tokens each" if undivided == 33 else ""
    assert raised.value.message.startswith(
        f"A context of 300 tokens{images} needs 3.1 GB more memory, and 2.2 GB"
    )
