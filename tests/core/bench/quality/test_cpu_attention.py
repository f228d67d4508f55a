"""The benches' own attention gives what MLX's gives, and steps aside where it cannot."""

from __future__ import annotations

import mlx.core as mx
import pytest

from core.bench.quality import cpu_attention as subject
from core.bench.quality.cpu_attention import cpu_attention


def arrays(heads: int, shared: int, rows: int, columns: int) -> tuple[mx.array, mx.array, mx.array]:
    mx.random.seed(rows)
    q = mx.random.normal((1, heads, rows, 8))
    # As a cache hands them out: the beginning of something longer.
    k, v = (mx.random.normal((1, heads // shared, columns + 24, 8))[:, :, :columns] for _ in range(2))
    return q, k, v


@pytest.mark.parametrize("rows", [16, 64, 150])
@pytest.mark.parametrize("mask", [None, "causal", "window"])
def test_the_values_are_mlxs(rows: int, mask: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = arrays(6, 3, rows, 200)
    given = mask if mask != "window" else _window(rows, 200)
    wanted = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    worked: list[int] = []
    own = subject._attention
    monkeypatch.setattr(subject, "_attention", lambda *all: worked.append(1) or own(*all))
    with cpu_attention():
        found = mx.fast.scaled_dot_product_attention(q, k, v, scale=0.3, mask=given)
    assert worked == [1]
    assert found.shape == wanted.shape
    assert mx.abs(found - wanted).max().item() < 2e-6


def test_it_steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """One token, another dtype, an additive mask: MLX's own."""
    monkeypatch.delattr(subject, "_attention")
    q, k, v = arrays(4, 2, 20, 40)
    halves = [array.astype(mx.float16) for array in (q, k, v)]
    added = mx.zeros((20, 40))
    own = mx.fast.scaled_dot_product_attention
    with cpu_attention():
        attend = mx.fast.scaled_dot_product_attention
        assert attend is not own
        assert mx.array_equal(attend(q[:, :, :1], k, v, scale=1.0), own(q[:, :, :1], k, v, scale=1.0))
        assert attend(*halves, scale=1.0, mask="causal").dtype == mx.float16
        assert mx.array_equal(attend(q, k, v, scale=1.0, mask=added), own(q, k, v, scale=1.0, mask=added))
    assert mx.fast.scaled_dot_product_attention is own


def _window(rows: int, columns: int) -> mx.array:
    """Each query sees the 30 keys up to its own place."""
    at = mx.arange(rows)[:, None] + columns - rows
    keys = mx.arange(columns)[None]
    return (keys <= at) & (keys > at - 30)
