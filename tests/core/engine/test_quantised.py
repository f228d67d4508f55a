"""Answers on quantised caches equal their own plain run, for every drafter on every architecture.

The cache is quantised from the start, or at a column in the middle of the answer. What is not supported is
in the changes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.models.cache import QuantizedKVCache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine
from core.events import Finished
from core.kv.mlx_lm_caches import leaves, why_no_rollback
from core.kv.saved_files import SavedFiles
from core.settings import Settings
from core.settings.prefill import KvCache
from tests.core.architectures import ARCHITECTURES, CONTEXT_TOKENS, FULL, wide
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.test_conformance import (
    ONE_DRAFTER,
    SAMPLED,
    VARIANT_IDS,
    VARIANTS,
    ends_and_goes_on,
    engine_of,
    run,
    settings,
)
from tests.core.engine.test_saved_chats import run as ask
from tests.core.engine.test_saved_chats import started
from tests.core.engine.test_sparse_session import prompt_of
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 100
LONG_TOKENS = 2048
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


def _marks(architecture: str, variant: tuple[str, str]) -> tuple[pytest.MarkDecorator, ...]:
    few = variant == ONE_DRAFTER and architecture in ("llama", "gemma3_text", "qwen3_5")
    return () if few or (architecture, variant) == ("llama", ("auto", "fast")) else (pytest.mark.sweep,)


pairs = pytest.mark.parametrize(
    ("architecture", "variant"),
    [
        pytest.param(*pair, id=f"{name}-{pair[0]}", marks=_marks(*pair))
        for architecture in ARCHITECTURES
        if architecture not in REFUSED
        for variant, name in zip(VARIANTS, VARIANT_IDS)
        for pair in ((architecture, variant),)
    ],
)


def chosen(variant: tuple[str, str], draft_model: Path, bits: str = "8", **more: Any) -> Settings:
    values = {"kv.bits": bits, "sampling.max_tokens": TOKENS, **more}
    return settings(variant, draft_model, **values)


def cold(engine: Engine, prompt: list[int], wanted: Settings) -> list[int]:
    engine.forget()
    found, _ = run(engine, prompt, wanted)
    engine.forget()
    return found


def quantised(engine: Engine) -> list[bool]:
    return [isinstance(entry, QuantizedKVCache) for entry in leaves(engine.sequence.cache)]


def changes(finished: Finished) -> dict[str, str]:
    return {each.setting: f"{each.used}: {each.reason}" for each in finished.effective.changes}


@pairs
@pytest.mark.parametrize("values", [{}, SAMPLED], ids=["greedy", "sampled"])
def test_a_drafted_answer_equals_its_plain_run(
    engine: Engine,
    architecture: str,
    variant: tuple[str, str],
    values: dict[str, object],
    toy_folder: Path,
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))
    expected = cold(engine, prompt, chosen(("off", "fast"), toy_folder, **values))
    got, finished = run(engine, prompt, chosen(variant, toy_folder, **values))
    assert got == expected
    kinds = ARCHITECTURES[architecture].caches
    assert quantised(engine) == [kind == FULL for kind in kinds]
    if set(kinds) != {FULL}:
        count = sum(kind == FULL for kind in kinds)
        assert changes(finished)["kv.bits"].startswith(f"8 in {count} of {len(kinds)} layers: ")
    if why_no_rollback(engine.sequence.cache):
        assert finished.effective.drafter == "off"
        return
    assert finished.effective.drafter == variant[0]
    assert finished.stats.drafted > 0 or values
    if DRAFTERS[variant[0]].trees:
        refused = [c.reason for c in finished.effective.changes if c.asked.endswith("(tree)")]
        assert bool(refused) == (not ARCHITECTURES[architecture].trees)


@pairs
def test_stops_cancels_and_the_turn_after_them(
    engine: Engine, architecture: str, variant: tuple[str, str], toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))

    def plain(follow: list[int], tokens: int) -> list[int]:
        more = {"sampling.max_tokens": tokens}
        return cold(engine, follow, chosen(("off", "fast"), toy_folder, "4", **more))

    expected = plain(prompt, TOKENS)
    ends_and_goes_on(engine, architecture, prompt, expected, chosen(variant, toy_folder, "4"), plain)


@pytest.mark.parametrize("architecture", ["llama"])
def test_another_precision_is_not_reused(engine: Engine, architecture: str, toy_folder: Path) -> None:
    prompt = prompt_with_repetition(random.Random(1))
    some = {"sampling.max_tokens": 8}
    each = [chosen(ONE_DRAFTER, toy_folder, bits, **some) for bits in ("off", "8", "4")]
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


@pytest.mark.parametrize("architecture", REFUSED)
def test_an_unsupported_model_answers_in_full_precision_and_says_so(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))
    expected, finished = run(engine, prompt, chosen(ONE_DRAFTER, toy_folder, "off"))
    assert "kv.bits" not in changes(finished)
    got, finished = run(engine, prompt, chosen(ONE_DRAFTER, toy_folder, "4"))
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
    wanted = chosen(("cacheback", "fast"), toy_folder)
    _, finished = run(engine, prompt, wanted)
    assert changes(finished)["drafting.drafter"].startswith("(chain): it was not tested on this model yet")
    engine.try_out(KvCache("8"))
    _, finished = run(engine, prompt, wanted)
    assert "drafting.drafter" not in changes(finished)
    engine.unload()


SPARSE = {
    "prefill.mode": "on",
    "prefill.scorer": "lexical",
    "prefill.passages": "fixed",
    "prefill.keep_pct": 7,
    "prefill.chunk_tokens": 64,
    "tables.learn": False,
}


@pytest.mark.parametrize(
    "architecture", thinned([n for n in ARCHITECTURES if n not in REFUSED], keep=["llama", "qwen3_5"])
)
def test_sparse_reading_and_a_restart(
    architecture: str, tokenizer: TokenizerWrapper, toy_folder: Path, tmp_path: Path
) -> None:
    """Of 800 tokens, some 600 are read; a restart and more turns follow."""
    model = wide_once(architecture, LONG_TOKENS)
    loaded = engine_of(
        architecture, tokenizer, str(toy_folder), model=model, context_tokens=LONG_TOKENS
    ).loaded
    files, sparse = SavedFiles(tmp_path / "contexts"), {**SPARSE, "sampling.max_tokens": 20}
    dense = {**sparse, "prefill.mode": "off"}

    def plain(prompt: list[int], **values: Any) -> list[int]:
        fresh = started(loaded, SavedFiles(tmp_path / "none"))
        return ask(fresh, prompt, chosen(("off", "fast"), toy_folder, "4", **values), chat="")[0]

    engine, prompt = started(loaded, files), prompt_of(31, 800)
    wanted = chosen(ONE_DRAFTER, toy_folder, "4", **sparse)
    got, finished = ask(engine, prompt, wanted)
    assert got == plain(prompt, **sparse)
    assert finished.effective.reading == "sparse"
    assert finished.stats.skipped_tokens > 100
    engine.unload()

    engine = started(loaded, files)
    again, finished = ask(engine, [*prompt, *got[:5]], wanted)
    follow = [*prompt, *got[:5], *again, *prompt_of(32, 30)]
    assert finished.stats.disk_tokens > 0
    warm, finished = ask(engine, follow, chosen(ONE_DRAFTER, toy_folder, "4", **dense))
    assert warm == plain(follow, **dense)
    assert any(quantised(engine))
    engine.unload()

    engine = started(loaded, files)
    longer = [*follow, *warm, *prompt_of(33, 20)]
    warm, finished = ask(engine, longer, chosen(ONE_DRAFTER, toy_folder, "4", **dense))
    assert finished.stats.disk_tokens >= len(follow) - 1
    assert warm == plain(longer, **dense)
    engine.unload()


@pytest.mark.parametrize("architecture", ["llama"])
def test_another_precision_replaces_the_file(
    architecture: str, tokenizer: TokenizerWrapper, toy_folder: Path, tmp_path: Path
) -> None:
    loaded = engine_of(architecture, tokenizer, str(toy_folder), model=wide_once(architecture)).loaded
    files, prompt = SavedFiles(tmp_path / "contexts"), prompt_of(31, 200)
    for bits, is_found in (("4", False), ("4", True), ("8", False), ("8", True)):
        engine = started(loaded, files)
        wanted = chosen(ONE_DRAFTER, toy_folder, bits, **{"sampling.max_tokens": 20})
        _, finished = ask(engine, prompt, wanted)
        assert bool(finished.stats.disk_tokens) == is_found
        engine.unload()
