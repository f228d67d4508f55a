"""Answers and models that do not fit the memory, with an injected limit: freed, made smaller or refused."""

from __future__ import annotations

import gc
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import mlx.core as mx
import pytest

from core.decoding.answer import MemoryGuard
from core.engine.engine import Engine
from core.errors import ModelTooLargeError, NotEnoughMemoryError
from core.events import Change, Finished, MemoryNeed, PrefillProgress, Token
from core.settings import Settings, assign_all
from tests.core.headed_models import PLACES, Layout, write_headed_model
from tests.core.toy import write_toy_model

PLENTY = 1 << 40
PROMPT = [4 + at * 7 % 250 for at in range(900)]


class Memory:
    """The memory that is left, as a test sets it."""

    def __init__(self) -> None:
        self.left_bytes = PLENTY

    def __call__(self) -> int:
        return self.left_bytes


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(path, max_position_embeddings=2048)
    return path


@pytest.fixture
def engine(folder: Path, memory: Memory) -> Iterator[Engine]:
    engine = Engine(left_bytes=memory)
    engine.load(str(folder))
    engine.loaded.eos = frozenset()
    yield engine
    engine.unload()


def settings(**values: object) -> Settings:
    chosen = {"sampling.max_tokens": 16, "drafting.drafter": "off", "prefill.mode": "off", **values}
    return assign_all(Settings(), list(chosen.items()))


def answer(
    engine: Engine, prompt: list[int], chosen: Settings
) -> tuple[list[int], Finished, list[PrefillProgress]]:
    events = list(engine.generate_ids(prompt, chosen))
    finished = events[-1]
    assert isinstance(finished, Finished)
    progress = [event for event in events if isinstance(event, PrefillProgress)]
    return [event.id for event in events if isinstance(event, Token)], finished, progress


def needed(engine: Engine, tokens: int, chunk_tokens: int) -> int:
    """Bytes of a prompt's cache with a short answer, and of one chunk."""
    need = engine.loaded.need
    assert need is not None
    return need.growth(0, tokens + 64) + chunk_tokens * need.working_at(tokens + 64, 1)


def test_the_largest_chunk_that_fits_is_used_and_reported(engine: Engine, memory: Memory) -> None:
    expected, _, _ = answer(engine, PROMPT, settings(**{"prefill.chunk_tokens": 128}))
    engine.forget()
    memory.left_bytes = needed(engine, len(PROMPT), 128)
    tokens, finished, progress = answer(engine, PROMPT, settings())
    assert tokens == expected
    reason = "the memory does not suffice for larger chunks"
    assert Change("prefill.chunk_tokens", "512", "128", reason) in finished.effective.changes
    done = [0, *(each.done_tokens for each in progress)]
    assert max(after - before for before, after in pairwise(done)) == 128
    # What is cached needs no memory again, and a short rest no large chunk.
    need = engine.loaded.need
    assert need is not None
    memory.left_bytes = needed(engine, len(PROMPT) + 40, 40) - need.cache_at(len(PROMPT))
    _, finished, _ = answer(engine, [*PROMPT, *PROMPT[:40]], settings())
    assert finished.stats.reused_tokens >= len(PROMPT)
    assert finished.effective.changes == ()


def test_what_does_not_fit_at_all_is_refused_with_the_figures_and_costs_nothing(
    engine: Engine, memory: Memory
) -> None:
    expected, _, _ = answer(engine, [*PROMPT[:300], *PROMPT], settings())
    engine.forget()
    answer(engine, PROMPT[:300], settings())
    memory.left_bytes = needed(engine, 1200, 31) - engine.loaded.need.cache_at(300)  # type: ignore[union-attr]
    with pytest.raises(
        NotEnoughMemoryError, match=r"1,200 tokens needs [\d.]+ GB more.* GB are left"
    ) as caught:
        answer(engine, [*PROMPT[:300], *PROMPT], settings())
    assert "Shorten the prompt" in caught.value.hint
    memory.left_bytes = PLENTY
    tokens, finished, _ = answer(engine, [*PROMPT[:300], *PROMPT], settings())
    assert (tokens, finished.stats.reused_tokens) == (expected, 300)


def test_a_sparse_prefill_needs_memory_only_for_what_it_reads(engine: Engine, memory: Memory) -> None:
    sparse = {"prefill.mode": "on", "prefill.scorer": "lexical", "prefill.passages": "fixed"}
    memory.left_bytes = needed(engine, 750, 32)
    with pytest.raises(NotEnoughMemoryError):
        answer(engine, PROMPT, settings())
    _, finished, _ = answer(engine, PROMPT, settings(**sparse, **{"prefill.keep_pct": 5}))
    assert finished.stats.skipped_tokens > 150
    assert [each.setting for each in finished.effective.changes] == ["prefill.chunk_tokens"]
    # The figures of a refusal are those of the passages, too, and nothing of them is kept.
    engine.forget()
    memory.left_bytes = needed(engine, 100, 32)
    with pytest.raises(NotEnoughMemoryError) as caught:
        answer(engine, PROMPT, settings(**sparse, **{"prefill.keep_pct": 5}))
    found = re.search(r"A context of (\d+) tokens", caught.value.message)
    assert found is not None
    assert int(found[1]) < 750
    assert engine.sequence.tokens == []


def test_other_chats_are_freed_first(engine: Engine, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = engine._session.prefix_cache
    answer(engine, PROMPT[:200], settings())
    answer(engine, PROMPT[200:400], settings())
    assert len(cache) == 2
    full = needed(engine, 300, 300)
    monkeypatch.setattr(engine, "_left_bytes", lambda: full if len(cache) == 1 else full - 1)
    _, finished, _ = answer(engine, PROMPT[400:700], settings())
    assert finished.effective.changes == ()
    assert len(cache) == 1


@pytest.mark.sweep
def test_an_answer_is_limited_to_what_fits(engine: Engine, memory: Memory) -> None:
    need = engine.loaded.need
    assert need is not None
    memory.left_bytes = needed(engine, 100, 100)
    tokens, finished, _ = answer(engine, PROMPT[:100], settings(**{"sampling.max_tokens": 1800}))
    assert finished.reason == "length"
    [change] = finished.effective.changes
    assert (change.setting, change.asked, change.used) == ("sampling.max_tokens", "1800", str(len(tokens)))
    assert "memory" in change.reason
    assert need.cache_at(100 + len(tokens)) <= need.cache_at(100) + memory.left_bytes
    assert 64 <= len(tokens) < 1800


def test_a_model_that_does_not_fit_is_refused_before_the_loaded_one_is_freed(
    engine: Engine, memory: Memory, tmp_path: Path
) -> None:
    write_toy_model(tmp_path / "second", seed=1)
    memory.left_bytes = 0
    with pytest.raises(ModelTooLargeError, match=r"needs [\d.]+ GB of memory, and [\d.]+ GB are left"):
        engine.load(str(tmp_path / "second"))
    assert engine.loaded.info.name == "long toy"
    # Together with the caches of the loaded model, it fits.
    memory.left_bytes = PLENTY
    answer(engine, PROMPT * 2, settings())
    memory.left_bytes = (16 << 20) - engine._session.nbytes
    engine.load(str(tmp_path / "second"))
    assert engine.loaded.info.name == "second"


@pytest.mark.parametrize("second", ["draft model", "head"])
def test_what_drafts_is_loaded_once_it_fits(second: str, folder: Path, tmp_path: Path) -> None:
    left: list[int] = []
    engine = Engine(left_bytes=lambda: left.pop() if left else PLENTY)
    write_headed_model(tmp_path / "Tiny-4bit", "qwen3_5", Layout(PLACES[0]))
    engine.load(str(folder if second == "draft model" else tmp_path / "Tiny-4bit"))
    draft = str(folder) if second == "draft model" else ""
    chosen = settings(**{"drafting.drafter": "auto", "draft_model.model": draft})
    for fits in (False, True):
        left += [] if fits else [0]
        _, finished, _ = answer(engine, PROMPT[:10], chosen)
        reasons = " ".join(change.reason for change in finished.effective.changes)
        assert ("GB of memory" in reasons) == (not fits), reasons
    engine.unload()


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("layers", "kv_heads", "head_dim", "chunk_tokens", "kv"),
    [
        (2, 2, 16, 512, {}),
        (2, 8, 64, 512, {}),
        (2, 8, 64, 128, {"kv.bits": "8"}),
    ],
)
def test_the_estimate_is_the_peak_of_mlxs_memory(
    layers: int, kv_heads: int, head_dim: int, chunk_tokens: int, kv: dict[str, object], tmp_path: Path
) -> None:
    """Of the cache with the copy of a layer, a chunk's activations, and its attention scores."""
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": layers, "head_dim": head_dim}
    heads = {"num_attention_heads": 8, "num_key_value_heads": kv_heads, "max_position_embeddings": 4096}
    write_toy_model(tmp_path / "toy", **sizes, **heads)
    engine = Engine(left_bytes=lambda: PLENTY)
    engine.load(str(tmp_path / "toy"))
    chosen = settings(**{"sampling.max_tokens": 1, "prefill.chunk_tokens": chunk_tokens, **kv})
    answer(engine, [4, 5, 6], chosen)  # tries quantised caches
    for length in (1000, 2000):
        engine.forget()
        gc.collect()  # models of earlier tests, which would otherwise be freed during the answer
        before = mx.get_active_memory()
        mx.reset_peak_memory()
        answer(engine, [4 + at * 7 % 250 for at in range(length)], chosen)
        assert engine.loaded.need is not None
        need = engine.loaded.need.with_cache(chosen.kv)
        estimated = need.growth(0, length) + need.working_at(length, chunk_tokens)
        # The peak varies by a tenth with the order in which MLX's threads free arrays.
        assert 0.88 < estimated / (mx.get_peak_memory() - before) < 1.25
    engine.unload()


def test_a_model_without_an_estimate_is_not_limited() -> None:
    guard = MemoryGuard(None, lambda: 0, lambda: None)
    assert guard.chunk_tokens(0, 1000, 512) == 512
    assert guard.answer_tokens(1000, 500) == 500


def test_windows_and_states_do_not_grow() -> None:
    need = MemoryNeed(windowed=100, window_tokens=50, state=1000, working=512)
    released: list[bool] = []
    # A chunk is in the windows until the next one.
    guard = MemoryGuard(need, lambda: 6000 + 32 * 101, lambda: released.append(True))
    assert guard.chunk_tokens(0, 100_000, 512) == 32
    assert guard.chunk_tokens(100_000, 200_000, 64) == 64
    assert guard.answer_tokens(100, 1_000_000) == 1_000_000
    assert released == [True]
