"""Tiny models: random weights for a tiny config, lively enough for varied answers.

mlx-lm's initial matrices are too small for a model to say anything but one token, and the right size
differs by type; the first of some scales whose answer is varied is taken. Float32, evaluated.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.generate import generate_step

from tests.attack.support.tiny_configs import VOCABULARY, variant_config

_MOST_PARAMETERS = 3_000_000
_SCALES = (2.0, 1.4, 3.0, 1.0, 5.0, 0.6, 8.0, 0.3, 0.1)
_TRIAL_TOKENS = 24
# Of an answer: a scale that gives so many is taken; with fewer than these none is of use.
_ENOUGH_TOKENS = 6
_FEWEST_TOKENS = 3


class NotBuiltError(Exception):
    """There is no tiny model of that config; the message says why."""


def tiny_model(variant: str, seed: int) -> Any:
    """The model of one of `variants()`; the same (variant, seed) gives the same. Raises `NotBuiltError`."""
    return tiny_model_of(lambda: variant_config(variant), seed)


def tiny_model_of(make_config: Callable[[], dict[str, Any]], seed: int) -> Any:
    """A model of the config that `make_config` returns. Raises `NotBuiltError`."""
    most, liveliest = 0, None
    for scale in _SCALES:
        try:
            model = _random_model(make_config(), scale, seed)
            distinct = _distinct_tokens(model)
        except (NotBuiltError, TimeoutError):
            raise
        except Exception as error:  # whatever a model's code raises at a config or a backend
            raise NotBuiltError(f"{type(error).__name__}: {error}") from error
        if distinct > most:
            most, liveliest = distinct, model
        if most >= _ENOUGH_TOKENS:
            break
    if most < _FEWEST_TOKENS:
        raise NotBuiltError(f"at none of the scales {_SCALES} it says more than {most} different tokens")
    return liveliest


def _random_model(config: dict[str, Any], scale: float, seed: int) -> Any:
    module = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    mx.random.seed(seed)
    model = module.Model(module.ModelArgs.from_dict(config))
    flat: list[tuple[str, mx.array]] = tree_flatten(model.parameters())  # type: ignore[assignment]
    # Nothing was computed yet: a field left at a real checkpoint's size costs nothing.
    parameters = sum(value.size for _, value in flat)
    if parameters > _MOST_PARAMETERS:
        raise NotBuiltError(f"its smallest config here has {parameters:,} parameters")
    weights = {key: _lively(value, scale) for key, value in flat}
    embedding = next((value for value in weights.values() if value.shape == (_rows(config), 32)), None)
    # A head of its own would make answers that never repeat themselves.
    for key, value in weights.items():
        if embedding is not None and key.endswith("lm_head.weight") and value.shape == embedding.shape:
            weights[key] = embedding
    model.update(tree_unflatten(list(weights.items())))
    mx.eval(model.parameters())
    return model


def _rows(config: dict[str, Any]) -> int:
    return int({**config, **config.get("text_config", {})}.get("vocab_size", VOCABULARY))


def _lively(weight: mx.array, scale: float) -> mx.array:
    """Scaled if a matrix; random if mlx-lm leaves it zero (routers, attention sinks)."""
    if not mx.issubdtype(weight.dtype, mx.floating):
        return weight
    if not mx.any(weight).item():
        return mx.random.normal(weight.shape) * (0.1 if weight.ndim == 1 else 0.5)
    weight = weight.astype(mx.float32)
    return weight * scale if weight.ndim >= 2 else weight


def _distinct_tokens(model: Any) -> int:
    """In an answer of plain decoding; 0 if a logit is not a number."""
    tokens = set()
    for token, logprobs in generate_step(mx.array(list(range(5, 45))), model, max_tokens=_TRIAL_TOKENS):
        if mx.any(mx.isnan(logprobs)).item():
            return 0
        tokens.add(int(token))
    return len(tokens)
