"""Measured answers of Draftlight and of mlx-lm, timed the same way on the same model object.

Decode speed is (tokens after the first step) / (time from the end of that step to the last token), so it
contains neither prefill nor the first draft. Every run is on the main thread.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from core.bench.runner import Environment, describe
from core.events import Effective, Event, Finished, Generate, Message, ModelInfo, Stats, Token
from core.settings import Settings
from core.settings.request import Sampling
from core.system.terminal import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which `prepare()` must come before
    from core.engine.engine import Engine
    from core.machine.trials import Verdict

# ---- model


def start_engine(reference: str, *, quiet: bool) -> tuple[Engine, ModelInfo, Environment]:
    """An engine with a model loaded and tested. Raises `ModelError`."""
    from core.models.runtime import prepare

    blas = prepare()
    from core.engine.engine import Engine

    engine = Engine()
    info, environment = load_tried(engine, reference, blas, quiet=quiet)
    return engine, info, environment


def load_tried(
    engine: Engine, reference: str, blas: str, *, quiet: bool = False
) -> tuple[ModelInfo, Environment]:
    """Load a model and test which drafts are exact on it. Raises `ModelError`.

    The window runs this test in idle time. Without it, trees are not used, and an untested architecture
    gets no drafts at all. It takes some seconds at the first use of a model.
    """
    with ProgressLine(quiet) as line:
        line.say(f"Loading {reference}", now=True)
        info = engine.load(reference)
        line.say(f"Testing trees and long prompts on {info.name}", now=True)
        return info, describe(blas, info.dtype, found(engine.try_out()))


def found(verdict: Verdict) -> str:
    """The result of the test as text for a report."""
    agreed = verdict.splits.agreed_tokens
    trees = f"chains only ({verdict.why_no_trees})" if verdict.why_no_trees else "trees verified"
    if agreed is None:
        return trees
    return f"{trees}, no drafts nor reuse beyond {agreed:,} tokens ({verdict.splits.reason})"


# ---- answers


class BenchRun(Struct, frozen=True):
    """One answer. `stats` and `effective` are None for mlx-lm; `peak_bytes`: MLX's peak memory."""

    tokens: list[int]
    ttft_s: float
    tokens_per_s: float
    peak_bytes: int
    stats: Stats | None = None
    effective: Effective | None = None


class BothRuns(Struct, frozen=True):
    """mlx-lm's and Draftlight's answer to the prompt `ids`; `two_models`: by mlx-lm's speculative path."""

    ids: list[int]
    plain: BenchRun
    own: BenchRun
    two_models: BenchRun | None = None


def draftlight(
    engine: Engine,
    ids: Sequence[int],
    settings: Settings,
    *,
    forget: bool = True,
    also: Generate | None = None,
) -> BenchRun:
    """An answer by the engine to prompt token ids; `also` as in `Engine.generate_ids`.

    `forget` clears the prefix cache and the tables first, because a table that holds the previous run's
    answer would draft this one. Without it the run continues the conversation.
    """
    if forget:
        engine.forget(tables=True)
    return _collect(engine.generate_ids(ids, settings, also=also))


def draftlight_chat(engine: Engine, messages: tuple[Message, ...], settings: Settings) -> BenchRun:
    """Like `draftlight` from messages, so that the engine can distinguish documents from the question."""
    engine.forget(tables=True)
    return _collect(engine.generate(Generate("bench", messages, settings)))


def _collect(events: Iterable[Event]) -> BenchRun:
    import mlx.core as mx

    mx.reset_peak_memory()
    tokens = []
    end: Finished | None = None
    for event in events:
        if isinstance(event, Token):
            tokens.append(event.id)
        elif isinstance(event, Finished):
            end = event
    assert end is not None
    stats = end.stats
    peak_bytes = int(mx.get_peak_memory())
    return BenchRun(tokens, stats.ttft_s, stats.tokens_per_s, peak_bytes, stats, end.effective)


def mlx_lm(engine: Engine, ids: Sequence[int], max_tokens: int, **options: Any) -> BenchRun:
    """An answer by `mlx_lm.stream_generate` with the engine's model object.

    `options` are its keyword arguments (`draft_model`, `num_draft_tokens`). Its speculative path yields all
    tokens of a round at the same time, so the first round is the first step: up to the first token that was
    not drafted.
    """
    import mlx.core as mx
    from mlx_lm import stream_generate

    loaded = engine.loaded
    mx.reset_peak_memory()
    started = time.perf_counter()
    tokens, times, drafted = [], [], []
    for response in stream_generate(
        loaded.model, loaded.tokenizer, list(ids), max_tokens=max_tokens, **options
    ):
        tokens.append(int(response.token))
        times.append(time.perf_counter() - started)
        drafted.append(response.from_draft)
    last = len(tokens) - 1
    first = drafted.index(False) if False in drafted else last
    elapsed = times[last] - times[first]
    speed = (last - first) / elapsed if elapsed > 0 else 0.0
    return BenchRun(tokens, times[0], speed, int(mx.get_peak_memory()))


def sampled_as(settings: Sampling) -> dict[str, Any]:
    """Arguments of `mlx_lm.stream_generate` for the same sampling; none for plain greedy decoding.

    The repetition penalty is mlx-lm's own, whose window begins with the prompt's last token.
    """
    from mlx_lm.sample_utils import make_repetition_penalty, make_sampler

    from core.decoding.sampling import PENALTY_WINDOW_TOKENS

    processors: list[Any] = []
    if settings.repetition_penalty != 1:
        processors.append(make_repetition_penalty(settings.repetition_penalty, PENALTY_WINDOW_TOKENS))
    if settings.frequency_penalty or settings.presence_penalty or settings.no_repeat_ngram_size:
        processors.append(_AnswerPenalties(settings))
    options: dict[str, Any] = {"logits_processors": processors} if processors else {}
    if settings.temperature:
        top_p = settings.top_p if settings.top_p < 1 else 0.0
        options["sampler"] = make_sampler(settings.temperature, top_p, settings.min_p, top_k=settings.top_k)
    return options


class _AnswerPenalties:
    """A logits processor of mlx-lm for one answer: the settings that depend on the answer's tokens alone.

    mlx-lm's own penalties count the prompt's last token too, and it has no `no_repeat_ngram_size`.
    """

    def __init__(self, settings: Sampling) -> None:
        self._settings = settings
        self._begun: int | None = None

    def __call__(self, tokens: Any, logits: Any) -> Any:
        import mlx.core as mx

        settings, ids = self._settings, tokens.tolist()
        self._begun = len(ids) if self._begun is None else self._begun
        answer = ids[self._begun :]
        amounts = {
            token: -count * settings.frequency_penalty - settings.presence_penalty
            for token, count in Counter(answer).items()
        }
        before = settings.no_repeat_ngram_size - 1
        for end in range(before, len(answer)) if before >= 0 else ():
            if answer[end - before : end] == answer[len(answer) - before :]:
                amounts[answer[end]] = -math.inf
        if not amounts:
            return logits
        return logits.at[:, mx.array(list(amounts))].add(mx.array(list(amounts.values())))


# ---- conversations


def converse(engine: Engine, questions: Sequence[str], settings: Settings) -> Iterator[BothRuns]:
    """A conversation answered by mlx-lm (first) and Draftlight, turn by turn.

    Each keeps its cache between turns, as in a chat. Both read mlx-lm's answers as history, so their
    prompts are equal even if an answer differs. Nothing of an earlier conversation is kept.
    """
    from mlx_lm.models.cache import make_prompt_cache

    from core.prompt import render

    loaded = engine.loaded
    cache = make_prompt_cache(loaded.model)
    cached: list[int] = []
    messages: list[Message] = []
    engine.forget(tables=True)
    for question in questions:
        messages.append(Message("user", question))
        ids = render(loaded.tokenizer, messages, settings.chat.system_prompt).ids
        cached, cache = _trimmed(loaded.model, cached, cache, ids)
        plain = mlx_lm(
            engine,
            ids[len(cached) :],
            settings.sampling.max_tokens,
            prompt_cache=cache,
            **sampled_as(settings.sampling),
        )
        # mlx-lm computes one token ahead, so its cache already holds the last one that it yielded.
        cached = [*ids, *plain.tokens]
        yield BothRuns(ids, plain, draftlight(engine, ids, settings, forget=False))
        answer = [token for token in plain.tokens if token not in loaded.eos]
        messages.append(Message("assistant", loaded.tokenizer.decode(answer)))


def _trimmed(
    model: Any, cached: list[int], cache: list[Any], ids: Sequence[int]
) -> tuple[list[int], list[Any]]:
    """mlx-lm's cache trimmed to the longest common prefix with `ids`, and the tokens it then holds."""
    from mlx_lm.models.cache import can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache

    shared = 0
    while shared < min(len(cached), len(ids) - 1) and cached[shared] == ids[shared]:
        shared += 1
    excess = len(cached) - shared
    if excess and not can_trim_prompt_cache(cache):
        return [], make_prompt_cache(model)
    if excess:
        trim_prompt_cache(cache, excess)
    return cached[:shared], cache


# ---- comparison


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """The first index where two answers differ, or where the shorter one ends; None if equal."""
    for index, (a, b) in enumerate(zip(one, other)):
        if a != b:
            return index
    return None if len(one) == len(other) else min(len(one), len(other))


def margin(
    engine: Engine,
    ids: Sequence[int],
    baseline: Sequence[int],
    candidate: Sequence[int],
    index: int,
    width: int,
) -> float:
    """Logit of the baseline's token at `index` minus the candidate's, from a block of `width` tokens."""
    import mlx.core as mx

    known = [*ids, *baseline[:index]]
    cache = engine.loaded.new_cache()
    engine.loaded.model(mx.array(known[:-1])[None], cache=cache)
    mx.eval([entry.state for entry in cache])
    block = [known[-1], *(list(baseline[index:]) + [0] * width)[: width - 1]]
    logits = engine.loaded.model(mx.array(block)[None], cache=cache)[0, 0].astype(mx.float32)
    return float(logits[baseline[index]] - logits[candidate[index]])
