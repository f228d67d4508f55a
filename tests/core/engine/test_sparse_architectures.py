"""Sparse prefill through the engine on other kinds of cache: windows, recurrent state, latent keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.engine.engine import Engine
from tests.core.architectures import ARCHITECTURES, build
from tests.core.engine.support import loaded_of
from tests.core.engine.test_sparse_session import prompt_of, run, settings
from tests.thinned import thinned

CONTEXT_TOKENS = 2048
KINDS = ["gemma3_text", "gpt_oss", "qwen3_5", "nemotron_h", "deepseek_v3", "mistral3", "ministral3", "llama4"]


@cache
def long_once(name: str) -> Any:
    """The tiny model with a longer context."""
    spec = ARCHITECTURES[name]
    return build({**spec.config, "max_position_embeddings": CONTEXT_TOKENS}, spec.weight_scale)


_COLD: dict[tuple[str, tuple[int, ...]], list[int]] = {}


def cold(engine: Engine, name: str, prompt: list[int]) -> list[int]:
    """What the model writes to all of `prompt`, from nothing."""
    key = (name, tuple(prompt))
    if key not in _COLD:
        fresh = Engine()
        fresh.use(engine.loaded)
        _COLD[key] = run(fresh, prompt, settings(**{"prefill.mode": "off"}))[0]
    return _COLD[key]


@pytest.fixture
def engine(name: str, tokenizer: TokenizerWrapper) -> Iterator[Engine]:
    engine = Engine()
    engine.use(loaded_of(name, tokenizer, model=long_once(name), context_tokens=CONTEXT_TOKENS))
    yield engine
    engine.unload()


@pytest.mark.parametrize("name", [k for k in KINDS if k not in ("deepseek_v3", "mistral3")])
@pytest.mark.parametrize("looks", thinned([4, 9, 12], keep=[9]))
def test_a_cancel_leaves_the_prefix_that_was_there(engine: Engine, name: str, looks: int) -> None:
    """Caches that forget go back to their mark."""
    prompt = prompt_of(33, 200)
    off = {"prefill.mode": "off", "sampling.max_tokens": 1}
    run(engine, prompt, settings(**off))
    held = list(engine.sequence.tokens)
    longer = [*prompt, *prompt_of(34, 900)]
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > looks

    scorer = {"prefill.scorer": "lexical", "prefill.keep_pct": 7, "prefill.chunk_tokens": 64}
    _, finished, _ = run(engine, longer, settings(**scorer), cancelled)
    assert finished.reason == "cancelled"
    assert engine.sequence.tokens == longer[: len(engine.sequence.tokens)]
    assert len(engine.sequence.tokens) >= min(len(held), 199)
    assert engine.sequence.skipped == 0
    got, finished, _ = run(engine, longer, settings(**{"prefill.mode": "off"}))
    assert finished.stats.reused_tokens >= 199
    assert got == cold(engine, name, longer)
