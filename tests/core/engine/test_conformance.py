"""Conformance: every registered drafter on every architecture gives what plain decoding gives.

Registration alone puts a drafter in here. Tiny random models and windows that every run crosses;
then stops and cancels at random places, and a second turn after them. Greedy answers are tried with
every drafter on every architecture. What follows from the caches alone (stops, cancels, sampling) is
tried so on one architecture of each kind of cache, and on the others with one drafter; the rest, and
longer answers, are slow. All of it is a sweep but every drafter on one architecture, and one drafter on one
of each kind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.decoding.sampling import PENALTY_WINDOW_TOKENS
from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine
from core.events import Event, Finished, Generate, ModelInfo, Token
from core.kv.mlx_lm_caches import why_no_rollback
from core.models.folder import fingerprint
from core.models.loader import LoadedModel
from core.settings import Settings, assign, assign_all
from core.settings.prefill import KvCache
from tests.core.architectures import ARCHITECTURES, CONTEXT_TOKENS, VOCABULARY, tiny
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

TOKENS = 80
GREEDY_TOKENS = 120
LONG_TOKENS = 200
DRAFTING = [name for name, spec in DRAFTERS.items() if spec.drafts and spec.needs_proposer != "head"]
VARIANTS = [(name, "fast") for name in DRAFTING]
VARIANT_IDS = list(DRAFTING)
lengths = pytest.mark.parametrize(
    "tokens", [GREEDY_TOKENS, pytest.param(LONG_TOKENS, marks=pytest.mark.slow)]
)
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=VARIANT_IDS)
# Full, sliding, recurrent and chunked caches.
ONE_OF_EACH = ("llama", "gemma3_text", "qwen3_5", "llama4")
# Of trees where they can be verified, and of every step: the table knows what was just said.
ONE_DRAFTER = ("cacheback", "fast")


def few(architecture: str, variant: tuple[str, str]) -> tuple[pytest.MarkDecorator, ...]:
    """Marks of tests of one thing more: Llama with what drafts by default and with trees is no sweep."""
    if architecture == "llama":
        return () if variant[0] in ("off", "auto", "cacheback") else (pytest.mark.sweep,)
    return (pytest.mark.sweep,) if variant[0] == "off" or variant == ONE_DRAFTER else (pytest.mark.slow,)


def _pairs(rest: pytest.MarkDecorator) -> pytest.MarkDecorator:
    """Every architecture with every drafter; `rest` marks those that can only differ by the caches."""

    def marks(architecture: str, variant: tuple[str, str]) -> tuple[pytest.MarkDecorator, ...]:
        one = architecture in ONE_OF_EACH
        if architecture == "llama" or (one and variant == ONE_DRAFTER):
            return ()
        return (pytest.mark.sweep,) if one or variant == ONE_DRAFTER else (rest,)

    return pytest.mark.parametrize(
        ("architecture", "variant"),
        [
            pytest.param(
                *(architecture, variant), id=f"{name}-{architecture}", marks=marks(architecture, variant)
            )
            for architecture in ARCHITECTURES
            for variant, name in zip(VARIANTS, VARIANT_IDS)
        ],
    )


every_pair, chosen_pairs = _pairs(pytest.mark.sweep), _pairs(pytest.mark.slow)


def engine_of(
    architecture: str,
    tokenizer: TokenizerWrapper,
    folder: str = "",
    model: Any = None,
    kv: KvCache | None = None,
    context_tokens: int = CONTEXT_TOKENS,
) -> Engine:
    """An engine on a tiny random model that never stops by itself, tried out with caches as in `kv`."""
    model = model or tiny_once(architecture)
    why_not = why_no_rollback(make_prompt_cache(model))
    info = ModelInfo(
        *(architecture, folder, fingerprint(tokenizer.get_vocab()), "toy", architecture, "float32", ""),
        *(0, 0, context_tokens, VOCABULARY, len(model.layers), not why_not, why_not),
    )
    loaded = LoadedModel(model, tokenizer, info)
    loaded.eos = frozenset()
    engine = Engine()
    engine.use(loaded)
    engine.try_out(kv)
    return engine


@cache
def tiny_once(architecture: str) -> Any:
    return tiny(architecture)


@cache
def plain(architecture: str, prompt: tuple[int, ...], tokens: int = GREEDY_TOKENS) -> list[int]:
    """mlx-lm's own loop."""
    steps = generate_step(mx.array(prompt), tiny_once(architecture), max_tokens=tokens)
    return [int(token) for token, _ in steps]


def settings(variant: tuple[str, str], draft_model: Path, **values: object) -> Settings:
    name, mode = variant
    values = {
        "drafting.drafter": name,
        "decoding.exactness": mode,
        "gate.mode": "always",
        "sampling.max_tokens": TOKENS,
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        "cacheback.tree_tokens": 16,
        "cacheback.reserved_tokens": 4,
        "draft_model.model": str(draft_model),
        **values,
    }
    return assign_all(Settings(), values.items())


def run(
    engine: Engine, prompt: Sequence[int], chosen: Settings, steps: int = 10**9
) -> tuple[list[int], Finished]:
    """The answer's ids; cancelled after so many looks at the cancel flag."""
    tokens, finished = told(engine, prompt, chosen, steps)
    return [token.id for token in tokens], finished


SOURCES = {"ngram-mod": {"table"}, "mtp": {"head"}, "draft-model": {"draft model"}}


def assert_sourced(tokens: Sequence[Token], drafter: str) -> None:
    """Accepted tokens, and no others, have a source, which fits the drafter."""
    assert all(bool(token.source) == (token.origin == "accepted") for token in tokens)
    sources = {token.source for token in tokens} - {"", "grammar", "prediction"}
    assert drafter == "auto" or sources <= SOURCES.get(drafter, {"n-gram"})


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
    events: list[Event] = list(engine.generate_ids(prompt, chosen, cancelled, also=also))
    finished = events[-1]
    assert isinstance(finished, Finished)
    tokens = [event for event in events if isinstance(event, Token)]
    assert_sourced(tokens, finished.effective.drafter)
    return tokens, finished


@every_pair
@lengths
def test_greedy_equals_plain_decoding(
    engine: Engine, architecture: str, variant: tuple[str, str], tokens: int, toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))
    expected = plain(architecture, tuple(prompt), tokens)
    got, finished = run(engine, prompt, settings(variant, toy_folder, **{"sampling.max_tokens": tokens}))
    assert got == expected
    stats, effective = finished.stats, finished.effective
    if why_no_rollback(engine.sequence.cache):
        assert effective.drafter == "off"
        assert "cannot speculate" in effective.changes[0].reason
        return
    assert effective.drafter == variant[0]
    assert stats.drafted > 0
    assert stats.tokens == stats.accepted + stats.bonus + stats.normal == tokens
    assert stats.steps == stats.bonus + stats.normal
    if DRAFTERS[variant[0]].trees:
        refused = [c.reason for c in effective.changes if c.asked.endswith("(tree)")]
        assert bool(refused) == (not ARCHITECTURES[architecture].trees)


@chosen_pairs
def test_stops_cancels_and_the_turn_after_them(
    engine: Engine, architecture: str, variant: tuple[str, str], toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))

    def cold(follow: list[int], tokens: int) -> list[int]:
        steps = generate_step(mx.array(follow), tiny_once(architecture), max_tokens=tokens)
        return [int(token) for token, _ in steps]

    expected = plain(architecture, tuple(prompt))
    ends_and_goes_on(engine, architecture, prompt, expected, settings(variant, toy_folder), cold)


def ends_and_goes_on(
    engine: Engine,
    seed: str,
    prompt: list[int],
    expected: list[int],
    chosen: Settings,
    cold: Callable[[list[int], int], list[int]],
    least_reused: int | None = None,
) -> None:
    """A cancel, a stop, each at a random place, and the next turn: always what a cold start gives.

    `least_reused`: tokens of the cache that the next turn reuses; None: the prompt.
    """
    rng = random.Random(seed)
    cancelled, finished = run(engine, prompt, chosen, steps=rng.randint(3, 25))
    assert finished.reason == "cancelled"
    assert cancelled == expected[: len(cancelled)]
    assert_truthful(engine, prompt + cancelled, least_reused == 0)

    stop = expected[rng.randrange(10, 60)]
    cut = expected.index(stop)
    engine.loaded.eos = frozenset({stop})
    stopped, finished = run(engine, prompt, chosen)
    engine.loaded.eos = frozenset()
    assert finished.reason == "stop"
    assert stopped == expected[: cut + 1]
    assert_truthful(engine, prompt + stopped, least_reused == 0)

    follow = [*prompt, *expected[: cut + 1], *prompt_with_repetition(rng, 15)]
    warm, finished = run(engine, follow, assign(chosen, "sampling.max_tokens", 40))
    assert finished.stats.reused_tokens >= (len(prompt) - 1 if least_reused is None else least_reused)
    assert warm == cold(follow, 40)


def assert_truthful(engine: Engine, shown: list[int], may_be_empty: bool = False) -> None:
    """The sequence is a prefix of what was shown, lacking only tokens that were still pending."""
    held = engine.sequence.tokens
    if may_be_empty and not held:
        return
    assert held == shown[: len(held)]
    fold = 12 if not engine.sequence.keeps_all else 1
    assert len(held) >= len(shown) - 1 - fold


SAMPLED = {
    "sampling.temperature": 0.3,
    "sampling.top_p": 0.95,
    "sampling.repetition_penalty": 1.05,
}


@chosen_pairs
def test_a_sampled_run_equals_its_plain_run(
    engine: Engine, architecture: str, variant: tuple[str, str], toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))
    values = {**SAMPLED, "sampling.max_tokens": TOKENS}
    expected = plain_sampled(engine, architecture, tuple(prompt), toy_folder, **values)
    got, finished = run(engine, prompt, settings(variant, toy_folder, **SAMPLED))
    assert got == expected
    if variant[0] in ("cacheback", "draft-model") and not why_no_rollback(engine.sequence.cache):
        assert finished.stats.drafted > 0


@chosen_pairs
def test_sampled_stops_cancels_and_the_turn_after_them(
    engine: Engine, architecture: str, variant: tuple[str, str], toy_folder: Path
) -> None:
    prompt = prompt_with_repetition(random.Random(architecture))

    def cold(follow: list[int], tokens: int = TOKENS) -> list[int]:
        values = {**SAMPLED, "sampling.max_tokens": tokens}
        return plain_sampled(engine, architecture, tuple(follow), toy_folder, **values)

    chosen = settings(variant, toy_folder, **SAMPLED)
    ends_and_goes_on(engine, f"sampled {architecture}", prompt, cold(prompt), chosen, cold)


# Contexts that are shorter than what the penalty looks back on, just as long, and longer. Below 1 it
# makes answers that repeat themselves, so that drafts are accepted from the first steps on.
PENALISED = {
    "greedy": {"sampling.repetition_penalty": 0.9},
    "greedy-varied": {"sampling.repetition_penalty": 1.1},
    "sampled": {"sampling.repetition_penalty": 0.8, "sampling.temperature": 0.7},
}


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize(
    "penalised",
    ["greedy-varied", *(pytest.param(n, marks=pytest.mark.slow) for n in PENALISED if n != "greedy-varied")],
)
@pytest.mark.parametrize("length", thinned([1, 30, 63, 64, 65, 200], keep=[30, 64]))
@each_variant
def test_a_penalty_sees_as_far_back_as_in_a_plain_run(
    engine: Engine,
    architecture: str,
    variant: tuple[str, str],
    length: int,
    penalised: str,
    toy_folder: Path,
) -> None:
    prompt = prompt_with_repetition(random.Random(length), length)[:length]
    # Until the whole window was filled by the answer, and one step more.
    tokens = max(PENALTY_WINDOW_TOKENS - length, 16) + 8
    values = {**PENALISED[penalised], "sampling.max_tokens": tokens}
    expected = plain_sampled(engine, architecture, tuple(prompt), toy_folder, **values)
    got, _ = run(engine, prompt, settings(variant, toy_folder, **values))
    assert got == expected
    # Continued: the prompt's end is an answer that somebody stopped early.
    begun = [*prompt, *expected[:5]]
    got, _ = run(engine, begun, settings(variant, toy_folder, **values))
    assert got == plain_sampled(engine, architecture, tuple(begun), toy_folder, **values)


_SAMPLED_ANSWERS: dict[object, list[int]] = {}


def plain_sampled(
    engine: Engine, architecture: str, prompt: tuple[int, ...], draft_model: Path, **values: object
) -> list[int]:
    """The same position-seeded sampling without drafts, from nothing; leaves nothing behind."""
    key = (architecture, prompt, tuple(sorted(values.items())))
    if key not in _SAMPLED_ANSWERS:
        engine.forget()
        _SAMPLED_ANSWERS[key], _ = run(engine, prompt, settings(("off", "fast"), draft_model, **values))
        engine.forget()
    return _SAMPLED_ANSWERS[key]
