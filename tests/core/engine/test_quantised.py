"""Quantised caches in the engine: another precision is not reused, and what is not supported is named."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.models.cache import QuantizedKVCache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.engine.engine import Engine
from core.events import Finished
from core.kv.mlx_lm_caches import leaves
from core.kv.saved_files import SavedFiles
from core.settings import Settings
from core.settings.prefill import KvCache
from tests.core.architectures import CONTEXT_TOKENS, wide
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import engine_of, run, settings
from tests.core.engine.test_saved_chats import run as ask
from tests.core.engine.test_saved_chats import started
from tests.core.engine.test_sparse_session import prompt_of

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

REFUSED = ("gpt_oss", "deepseek_v3")


@cache
def wide_once(architecture: str, context_tokens: int = CONTEXT_TOKENS) -> Any:
    return wide(architecture, context_tokens)


@pytest.fixture
def engine(architecture: str, tokenizer: TokenizerWrapper) -> Iterator[Engine]:
    found = engine_of(architecture, tokenizer, model=wide_once(architecture))
    for bits in ("8", "4"):
        found.try_out(KvCache(bits))  # type: ignore[arg-type]
    yield found
    found.unload()


def chosen(drafter: str, draft_model: Path, bits: str = "8", **more: Any) -> Settings:
    values = {"kv.bits": bits, "sampling.max_tokens": 100, **more}
    return settings(drafter, draft_model, **values)


def cold(engine: Engine, prompt: list[int], wanted: Settings) -> list[int]:
    engine.forget()
    found, _ = run(engine, prompt, wanted)
    engine.forget()
    return found


def quantised(engine: Engine) -> list[bool]:
    return [isinstance(entry, QuantizedKVCache) for entry in leaves(engine.sequence.cache)]


def changes(finished: Finished) -> dict[str, str]:
    return {each.setting: f"{each.used}: {each.reason}" for each in finished.effective.changes}


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", ["llama"])
def test_another_precision_is_not_reused(engine: Engine, architecture: str, toy_folder: Path) -> None:
    prompt = prompt_with_repetition(random.Random(1))
    some = {"sampling.max_tokens": 8}
    each = [chosen("cacheback", toy_folder, bits, **some) for bits in ("off", "8", "4")]
    answers = [cold(engine, prompt, wanted) for wanted in each]
    assert answers[0] != answers[2], "the precisions must differ"
    for first in range(3):
        for second in range(3):
            engine.forget()
            run(engine, prompt, each[first])
            got, finished = run(engine, prompt, each[second])
            assert got == answers[second]
            shared = len(prompt) - 1 if first == second else 0
            assert finished.stats.reused_tokens == shared


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", REFUSED)
def test_an_unsupported_model_answers_in_full_precision_and_says_so(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))
    expected, finished = run(engine, prompt, chosen("cacheback", toy_folder, "off"))
    assert "kv.bits" not in changes(finished)
    got, finished = run(engine, prompt, chosen("cacheback", toy_folder, "4"))
    assert got == expected
    assert finished.stats.reused_tokens == len(prompt) - 1
    assert changes(finished)["kv.bits"].startswith("off: its attention does not support quantised keys")
    assert finished.effective.settings.kv.bits == "off"
    assert not any(quantised(engine))


@pytest.mark.parametrize("architecture", ["llama"])
def test_trees_wait_for_their_trial_on_quantised_caches(
    architecture: str, tokenizer: TokenizerWrapper, toy_folder: Path, tmp_path: Path
) -> None:
    # A folder of its own, for which no verdict was saved.
    engine = engine_of(architecture, tokenizer, str(tmp_path), model=wide_once(architecture))
    prompt = prompt_with_repetition(random.Random(architecture))
    wanted = chosen("cacheback", toy_folder)
    _, finished = run(engine, prompt, wanted)
    assert changes(finished)["drafting.drafter"].startswith("(chain): it was not tested on this model yet")
    engine.try_out(KvCache("8"))
    _, finished = run(engine, prompt, wanted)
    assert "drafting.drafter" not in changes(finished)
    engine.unload()


@pytest.mark.parametrize("architecture", ["llama"])
def test_another_precision_replaces_the_file(
    architecture: str, tokenizer: TokenizerWrapper, toy_folder: Path, tmp_path: Path
) -> None:
    loaded = engine_of(architecture, tokenizer, str(toy_folder), model=wide_once(architecture)).loaded
    files, prompt = SavedFiles(tmp_path / "contexts"), prompt_of(31, 200)
    for bits, is_found in (("4", False), ("4", True), ("8", False), ("8", True)):
        engine = started(loaded, files)
        wanted = chosen("cacheback", toy_folder, bits, **{"sampling.max_tokens": 20})
        _, finished = ask(engine, prompt, wanted)
        assert bool(finished.stats.disk_tokens) == is_found
        engine.unload()
