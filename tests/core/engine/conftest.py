"""What the engine's tests share: the toy tokenizer, and an engine with a tiny model of each architecture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.drafting import draft_model
from core.engine.engine import Engine
from tests.core.engine.support import engine_of


@pytest.fixture(scope="session")
def tokenizer(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


@pytest.fixture(scope="module")
def engines() -> Iterator[dict[str, Engine]]:
    """Engines by architecture, made at first use."""
    made: dict[str, Engine] = {}
    yield made
    for engine in made.values():
        engine.unload()


@pytest.fixture
def engine(architecture: str, engines: dict[str, Engine], tokenizer: TokenizerWrapper) -> Engine:
    """The engine of `architecture`, without caches and learned tables."""
    if architecture not in engines:
        engines[architecture] = engine_of(architecture, tokenizer)
    engines[architecture].forget(tables=True)
    return engines[architecture]


@pytest.fixture(scope="module")
def unlikely_guesses() -> Iterator[None]:
    """Draft models and heads draft guesses of any probability: those of random ones are unlikely."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draft_model, "_STOP_BELOW", 0.0)
        yield
