"""Expanded weights are MLX's own, bit for bit; what cannot be is left to MLX."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx_lm.utils import load_model

from core.folders.starter import ensure_starter
from core.models.loader import expand

GROUP = 32
BITS_AND_FORMATS = [(bits, dtype) for bits in (4, 8) for dtype in (mx.float16, mx.bfloat16)]


def layer(rows: int, columns: int, bits: int, scales: np.ndarray[Any, Any], dtype: mx.Dtype) -> Any:
    """A quantised layer with random codes and biases about as large as codes times scales."""
    random = np.random.default_rng(rows + columns + bits)
    made: Any = nn.QuantizedLinear(columns, rows, bias=False, group_size=GROUP, bits=bits)
    made.weight = mx.array(random.integers(0, 2**32, (rows, columns * bits // 32), dtype=np.uint32))
    made.scales = mx.array(scales.astype(np.float32)).astype(dtype)
    biases = -scales * random.uniform(0, 2**bits, scales.shape)
    made.biases = mx.array(biases.astype(np.float32)).astype(dtype)
    return made


def of_mlx(made: Any) -> Any:
    weight = mx.dequantize(made.weight, made.scales, made.biases, made.group_size, made.bits, made.mode)
    return np.array(weight.astype(mx.float32)).view(np.uint32)


def expanded(made: Any) -> Any:
    return expand(nn.Sequential(made)).layers[0]


@pytest.mark.parametrize(("bits", "dtype"), BITS_AND_FORMATS)
# One row, rows that are no whole pieces, and a row that is longer than a piece.
@pytest.mark.parametrize("shape", [(1, 64), (777, 192), (3, 1 << 17)])
def test_weights_are_the_same_bits(bits: int, dtype: mx.Dtype, shape: tuple[int, int]) -> None:
    rows, columns = shape
    scales = np.random.default_rng(1).normal(0, 0.02, (rows, columns // GROUP))
    made = layer(rows, columns, bits, scales, dtype)
    plain = expanded(made)
    assert type(plain) is nn.Linear
    assert plain.weight.dtype == mx.float32
    assert np.array_equal(np.array(plain.weight).view(np.uint32), of_mlx(made))


@pytest.mark.parametrize(("bits", "dtype"), BITS_AND_FORMATS)
def test_weights_of_every_size_are_the_same_bits(bits: int, dtype: mx.Dtype) -> None:
    """Down to what half precision has no more bits for."""
    random = np.random.default_rng(2)
    scales = 2.0 ** random.uniform(-24, 5, (400, 16)) * random.choice([-1.0, 0.0, 1.0], (400, 16))
    made = layer(400, 16 * GROUP, bits, scales, dtype)
    assert np.array_equal(np.array(expanded(made).weight).view(np.uint32), of_mlx(made))


def test_an_embedding_and_a_layer_with_a_bias_stay_what_they_are() -> None:
    model: Any = nn.Sequential(nn.Embedding(96, 64), nn.Linear(64, 32, bias=True))
    model.set_dtype(mx.float16)
    nn.quantize(model, GROUP, 4)
    expected = [of_mlx(each) for each in model.layers]
    bias, codes = model.layers[1].bias, mx.array([[3, 95]])
    embedding, linear = expand(model).layers
    assert (type(embedding), type(linear)) == (nn.Embedding, nn.Linear)
    for made, bits in zip((embedding, linear), expected):
        assert np.array_equal(np.array(made.weight).view(np.uint32), bits)
    assert mx.array_equal(linear.bias, bias)
    assert model(codes).shape == (1, 2, 32)


def left_alone(made: Any) -> bool:
    return expanded(made) is made


@pytest.mark.parametrize("bits", [2, 3, 6])
def test_other_bits_are_left_to_mlx(bits: int) -> None:
    made: Any = nn.QuantizedLinear.from_linear(nn.Linear(64, 64, bias=False), GROUP, bits)
    made.set_dtype(mx.float16)
    assert left_alone(made)


def test_other_formats_are_left_to_mlx() -> None:
    assert left_alone(layer(4, 64, 4, np.ones((4, 2)), mx.float32))
    assert left_alone(nn.QuantizedLinear.from_linear(nn.Linear(64, 64, bias=False), GROUP, 4, mode="mxfp4"))


@pytest.mark.parametrize("scale", [6000.0, float("nan"), float("inf")])
def test_values_that_half_precision_has_not_are_left_to_mlx(scale: float) -> None:
    scales = np.full((4, 2), 0.5)
    scales[3, 1] = scale
    assert left_alone(layer(4, 64, 4, scales, mx.float16))


@pytest.mark.sweep
def test_the_starter_is_what_mlx_lm_makes_of_it() -> None:
    folder = ensure_starter()
    ours = dict(expand(load_model(folder, lazy=True)[0]).named_modules())
    theirs = dict(load_model(folder, lazy=True)[0].named_modules())
    for name in ("model.embed_tokens", "model.layers.0.self_attn.q_proj", "model.layers.29.mlp.down_proj"):
        assert np.array_equal(np.array(ours[name].weight).view(np.uint32), of_mlx(theirs[name])), name
    assert not [name for name, each in ours.items() if "scales" in each]
