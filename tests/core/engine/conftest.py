"""What the engine's tests share: the toy tokenizer, and an engine with a tiny model of each architecture."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.drafting import draft_model
from core.engine.engine import Engine
from core.events import Image
from core.kv.saved_files import SavedFiles
from tests.core.engine.support import engine_of
from tests.core.seeing import FAMILIES, image, write_seeing_model


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


@pytest.fixture(scope="module")
def seeing_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("seeing")


# Three axes with recurrent layers, and masks with sliding windows; the others are in the sweeps.
SEEING_QUICK = ("qwen3_5", "gemma4 both ways")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(family, marks=() if family in SEEING_QUICK else pytest.mark.sweep) for family in FAMILIES
    ],
)
def seeing_engine(request: pytest.FixtureRequest, seeing_folder: Path) -> Iterator[Engine]:
    """An engine with a tiny model that sees, whose drafts were tried out."""
    write_seeing_model(seeing_folder / request.param, request.param)
    made = Engine(saved_files=SavedFiles(seeing_folder / f"saved-{request.param}"))
    made.load(str(seeing_folder / request.param))
    made.loaded.eos = frozenset()
    made.try_out()
    yield made
    made.unload()


@pytest.fixture(scope="module")
def pictures(seeing_folder: Path) -> tuple[Image, Image, Image]:
    return image(seeing_folder, 1), image(seeing_folder, 2, 64, 32, at=4), image(seeing_folder, 3)
