"""What the engine's tests share: engines with tiny random models, their settings, and mlx-lm's own loop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine
from core.events import Event, Finished, Generate, ModelInfo, Token
from core.folders.folder import fingerprint
from core.kv.mlx_lm_caches import why_no_rollback
from core.models.loader import LoadedModel
from core.settings import Settings, assign_all
from core.settings.prefill import KvCache
from tests.core.architectures import CONTEXT_TOKENS, VOCABULARY, tiny

# Full, sliding, recurrent and chunked caches.
ONE_OF_EACH = ("llama", "gemma3_text", "qwen3_5", "llama4")
DRAFTING = [name for name, spec in DRAFTERS.items() if spec.drafts and spec.needs_proposer != "head"]
SAMPLED = {
    "sampling.temperature": 0.3,
    "sampling.top_p": 0.95,
    "sampling.repetition_penalty": 1.05,
}


def loaded_of(
    architecture: str,
    tokenizer: TokenizerWrapper,
    folder: str = "",
    model: Any = None,
    context_tokens: int = CONTEXT_TOKENS,
) -> LoadedModel:
    """A tiny random model, by default that of `architecture`, that never stops by itself."""
    model = model or tiny_once(architecture)
    why_not = why_no_rollback(make_prompt_cache(model))
    info = ModelInfo(
        *(architecture, folder, fingerprint(tokenizer.get_vocab()), "toy", architecture, "float32", ""),
        *(0, 0, context_tokens, VOCABULARY, len(model.layers), not why_not, why_not),
    )
    loaded = LoadedModel(model, tokenizer, info)
    loaded.eos = frozenset()
    return loaded


def engine_of(
    architecture: str,
    tokenizer: TokenizerWrapper,
    folder: str = "",
    model: Any = None,
    kv: KvCache | None = None,
    context_tokens: int = CONTEXT_TOKENS,
) -> Engine:
    """An engine on such a model, tried out with caches as in `kv`."""
    engine = Engine()
    engine.use(loaded_of(architecture, tokenizer, folder, model, context_tokens))
    engine.try_out(kv)
    return engine


@cache
def tiny_once(architecture: str) -> Any:
    return tiny(architecture)


def settings(drafter: str, draft_model: Path, **values: object) -> Settings:
    """Drafts at every step, of anything that was seen before."""
    chosen = {
        "drafting.drafter": drafter,
        "gate.mode": "always",
        "sampling.max_tokens": 80,
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        "cacheback.tree_tokens": 16,
        "cacheback.reserved_tokens": 4,
        "draft_model.model": str(draft_model),
        **values,
    }
    return assign_all(Settings(), chosen.items())


def run(
    engine: Engine, prompt: Sequence[int], chosen: Settings, steps: int = 10**9
) -> tuple[list[int], Finished]:
    """The answer's ids; cancelled after so many looks at the cancel flag."""
    tokens, finished = told(engine, prompt, chosen, steps)
    return [token.id for token in tokens], finished


def told(
    engine: Engine,
    prompt: Sequence[int],
    chosen: Settings,
    steps: int = 10**9,
    also: Generate | None = None,
) -> tuple[list[Token], Finished]:
    """The answer's tokens; cancelled after so many looks at the cancel flag."""
    looks = iter(range(10**9))
    cancelled = lambda: next(looks) >= steps  # noqa: E731
    return written(engine.generate_ids(prompt, chosen, cancelled, also=also))


def written(events: Iterable[Event]) -> tuple[list[Token], Finished]:
    """The tokens of an answer, and its end."""
    *others, finished = events
    assert isinstance(finished, Finished)
    return [event for event in others if isinstance(event, Token)], finished
