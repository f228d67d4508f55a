"""What counts as the same logits."""

from __future__ import annotations

import mlx.core as mx
import pytest

from core.machine.compare import agree

INFINITE, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ([1.0, 2.0], [1.0, 2.00001], True),
        ([1.0, 2.0], [1.0, 2.01], False),
        ([-INFINITE, 2.0], [-INFINITE, 2.0], True),
        ([-INFINITE, 2.0], [-5.0, 2.0], False),
        ([1.0, 2.0], [-INFINITE, 2.0], False),
        ([NAN, 2.0], [NAN, 2.0], False),
        ([1.0, 2.0], [NAN, 2.0], False),
        ([INFINITE, 2.0], [2.0, 2.0], False),
    ],
)
def test_agreement(one: list[float], other: list[float], same: bool) -> None:
    assert agree(mx.array([one]), mx.array([other])) == same


def test_sixteen_bits_may_differ_by_more() -> None:
    one, other = mx.array([[10.0, 1.0]]), mx.array([[10.125, 1.0]])
    assert not agree(one, other)
    assert agree(one.astype(mx.bfloat16), other.astype(mx.bfloat16))


@pytest.mark.parametrize("rounding", [0.5, float("inf"), float("nan")])
def test_no_rounding_hides_a_fault(rounding: float) -> None:
    """A model may compute batches wrongly, or not at all."""
    one, off = mx.array([1.0, 0.5, -1.0]), mx.array([1.0, 0.35, -1.0])
    for dtype in (mx.float32, mx.bfloat16, mx.float16):
        assert not agree(one.astype(dtype), off.astype(dtype), rounding)
        assert not agree(one.astype(dtype), mx.full((3,), mx.nan, dtype), rounding)
