"""How likely a text is after sparse prefill of what precedes it, relative to a dense prefill.

    python -m tests.tuning likelihood --out DIR

Two parts: the continuation of a document, and a passage that is requested by its first words. Each prompt is
read densely and by each reader: the product's scorers, and `random`, `head-and-tail` and `end`, which choose
passages without a score at the same keep. A scorer has to beat these; tests are exact and paired.

Importing this loads MLX, which `core.models.runtime.prepare` must precede.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, Literal

import mlx.core as mx
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.bench.answers import start_engine
from core.bench.cases import truncated_copy
from core.bench.runner import Bench, BenchPiece, compare, run_bench, sign_test, table
from core.decoding.answer import Answer
from core.errors import RequestError
from core.events import Attachment, Generate, Message
from core.events.bench import median
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel, load
from core.prefill.layout import Layout, Passages, layout, unknown_layout
from core.prefill.plan import select
from core.prefill.read import read_kept, read_prompt
from core.prefill.reading import Reading
from core.prefill.scorers.scorer import ScoringDraft
from core.prompt import Prompt, offsets, render
from core.settings import Settings, assign_all
from core.settings.prefill import Prefill
from tests.tuning.texts import SCORELESS, text_of

Part = Literal["document", "passage"]
DENSE = "dense"
_AGREEMENT_TOKENS = 64


class Likelihood(Struct, frozen=True):
    """One prompt read by one reader.

    `nll`: mean negative log-likelihood of the right continuation, in nats a token. `top`: the most likely
    token at each of its first positions.
    """

    part: Part
    kind: str
    seed: int
    reader: str
    prompt_tokens: int
    read_tokens: int
    nll: float
    top: tuple[int, ...]

    @property
    def key(self) -> tuple[Part, str, int, str]:
        return self.part, self.kind, self.seed, self.reader


def run(options: argparse.Namespace) -> int:
    """Measure and write `likelihood.jsonl` and `likelihood.md`."""
    engine, info, environment = start_engine(options.model, quiet=options.quiet)
    loaded = engine.loaded
    if max(options.tokens) + options.continuation >= info.context_tokens:
        raise RequestError(
            f"A prompt of {max(options.tokens):,} tokens exceeds the context of {info.name}.",
            f"Choose --tokens below {info.context_tokens - options.continuation:,}.",
        )
    settings = assign_all(Settings(), [("prefill.mode", "on"), ("prefill.keep_pct", options.keep)]).prefill
    with tempfile.TemporaryDirectory() as scratch, cpu_attention():
        draft = None
        if "draft-model" in options.readers:
            copy = partial(truncated_copy, Path(info.path), options.draft_layers, Path(scratch) / "draft")
            draft = load(options.draft_model or str(copy()))
        tool = _Reader(loaded, settings, draft)
        document_tokens, passage_tokens = options.tokens[0], options.tokens[-1]
        make = {
            "document": cache(partial(document_probe, loaded, document_tokens, options.continuation)),
            "passage": cache(partial(passage_probe, loaded, passage_tokens, options.continuation)),
        }

        def measured(part: str, kind: str, seed: int, reader: str) -> Likelihood:
            return tool.try_out(make[part](kind, seed), reader)

        pieces = [
            BenchPiece((part, kind, seed, reader), partial(measured, part, kind, seed, reader))
            for seed in range(1, options.seeds + 1)
            for part in make
            for kind in options.kinds
            for reader in (DENSE, *options.readers)
        ]
        conditions = [info.name, f"keep {options.keep:g}%", options.tokens, options.continuation]
        conditions += [options.draft_model or f"draft model of {options.draft_layers} layers"]
        title = f"Likelihood after sparse prefill, {info.name}, keep {options.keep:g}%"
        bench = Bench("likelihood", title, environment, conditions, Likelihood, options.out)
        _, progress = run_bench(bench, pieces, _line, report, quiet=options.quiet)
    return progress.status(True)


def _line(each: Likelihood) -> str:
    read = f"read {each.read_tokens:,} of {each.prompt_tokens:,}"
    return f"{each.part} {each.kind} {each.seed} {each.reader}: {read}, nll {each.nll:.3f}"


# ---- prompts

# Limit for the template, the question and the given beginning of the answer.
_AROUND_TOKENS = 180
_QUOTED_TOKENS = 24


class Probe(Struct, frozen=True):
    """A prompt and its right continuation `gold`."""

    part: Part
    kind: str
    seed: int
    prompt: Prompt
    gold: list[int]


def document_probe(loaded: LoadedModel, tokens: int, continuation: int, kind: str, seed: int) -> Probe:
    """The first `tokens` of a document (fewer of a shorter one) and the `continuation` after them."""
    ids = _first_tokens(loaded, kind, seed, tokens + continuation)
    end = len(ids) - continuation
    return Probe("document", kind, seed, Prompt(ids[:end], "", ()), ids[end:])


def passage_probe(loaded: LoadedModel, tokens: int, continuation: int, kind: str, seed: int) -> Probe:
    """A request of about `tokens` tokens to quote the passage of a document that begins with given words.

    The passage starts at a random line whose first words are unique in the document. The words are in the
    question and begin the answer; `gold` are the `continuation` tokens after them. Raises `RequestError` if
    the document has no such line.
    """
    text = loaded.tokenizer.decode(_first_tokens(loaded, kind, seed, tokens - _AROUND_TOKENS))
    rng = Random(f"passage {kind} {seed}")
    lines = [line.start() for line in re.finditer(r"^.*\S", text, re.MULTILINE)]
    for start in rng.sample(lines, len(lines)):
        ids = _encoded(loaded, text[start:])
        words = loaded.tokenizer.decode(ids[:_QUOTED_TOKENS])
        if len(ids) >= _QUOTED_TOKENS + continuation and text.count(words) == 1:
            break
    else:
        raise RequestError(
            f"A {kind} of {tokens:,} tokens has no passage of {continuation:,} with unique first words.",
            "Choose more --tokens or a shorter --continuation.",
        )
    question = f"Which passage of the document begins with these words: “{words.strip()}”? Quote it."
    rendered = render(loaded.tokenizer, (Message("user", question, (Attachment("document", text),)),))
    whole = rendered.text + words
    prompt = Prompt(_encoded(loaded, whole), whole, rendered.regions)
    return Probe("passage", kind, seed, prompt, ids[_QUOTED_TOKENS : _QUOTED_TOKENS + continuation])


def _first_tokens(loaded: LoadedModel, kind: str, seed: int, tokens: int) -> list[int]:
    """The first `tokens` of a document; all of a shorter one."""
    ids: list[int] = []
    for part in text_of(kind, seed):
        ids += _encoded(loaded, part)
        if len(ids) >= tokens:
            break
    return ids[:tokens]


def _encoded(loaded: LoadedModel, text: str) -> list[int]:
    return [int(i) for i in loaded.tokenizer.encode(text, add_special_tokens=False)]


# ---- readers


class _Reader:
    """Reads prompts at the keep of `settings`. Owned by the thread that loaded the models."""

    def __init__(self, loaded: LoadedModel, settings: Prefill, draft: LoadedModel | None) -> None:
        self._loaded = loaded
        self._settings = settings
        self._draft = draft

    def try_out(self, probe: Probe, reader: str) -> Likelihood:
        """The likelihood of the continuation after reading the prompt. Raises `RequestError`."""
        prompt, gold = probe.prompt, probe.gold
        sequence = CachedSequence(self._loaded.new_cache)
        if reader == DENSE:
            self._read(read_prompt, sequence, prompt.ids)
        elif reader in SCORELESS:
            known = self._layout(prompt)
            passages = known.passages(0, len(prompt.ids), self._settings)
            scores = _scoreless(reader, prompt.ids, passages)
            chosen = select(scores, known.always_read, passages, keep_pct=self._settings.keep_pct)
            self._read(read_kept, sequence, prompt.ids, chosen.positions)
        else:
            self._score(reader, sequence, prompt)
        read_tokens = sequence.columns.count + 1
        logits = self._loaded.model(mx.array([prompt.ids[-1], *gold[:-1]])[None], cache=sequence.cache)[0]
        likely = log_probabilities(logits)
        top = [int(token) for token in np.asarray(mx.argmax(likely[:_AGREEMENT_TOKENS], axis=-1))]
        nll = mean_nll(likely, gold)
        return Likelihood(
            probe.part, probe.kind, probe.seed, reader, len(prompt.ids), read_tokens, nll, tuple(top)
        )

    def _read(self, read: Callable[..., Iterable[object]], *arguments: Any) -> None:
        for _ in read(self._loaded.model, *arguments, chunk_tokens=self._settings.chunk_tokens):
            pass

    def _score(self, scorer: str, sequence: CachedSequence, prompt: Prompt) -> None:
        settings = assign_all(Settings(prefill=self._settings), [("prefill.scorer", scorer)]).prefill
        answer = Answer(Generate("likelihood", (), Settings(prefill=settings)), self._loaded, prompt)
        answer.sequence = sequence
        reading = Reading(answer, self)
        for _ in chain(reading.plan(), reading.events()):
            pass
        if not answer.sparse:
            raise RequestError(
                f"{scorer} read all of {len(prompt.ids):,} tokens: {answer.reading_reason}.",
                "Choose more --tokens.",
            )

    def scoring(self, reference: str, *, drafts: bool) -> ScoringDraft:
        """The draft model, with an empty sequence."""
        if self._draft is None:
            raise RequestError("The scorer draft-model needs a draft model.", "Choose other --readers.")
        return ScoringDraft(self._draft, CachedSequence(self._draft.new_cache))

    def _layout(self, prompt: Prompt) -> Layout:
        if not prompt.regions:
            return unknown_layout(len(prompt.ids))
        return layout(prompt, offsets(self._loaded.tokenizer, prompt))


def _scoreless(reader: str, ids: Sequence[int], passages: Passages) -> NDArray[np.float32]:
    """Scores for random passages, those nearest to both ends, or those nearest to the end."""
    middles = (passages.firsts + passages.lengths / 2).astype(np.float32)
    if reader == "head-and-tail":
        return np.asarray(np.abs(middles - len(ids) / 2))
    if reader == "end":
        return middles
    return np.random.default_rng(list(ids)).random(len(passages), dtype=np.float32)


def log_probabilities(logits: mx.array) -> mx.array:
    """[n, V] logits of any dtype to float32 log-probabilities."""
    wide = logits.astype(mx.float32)
    return wide - mx.logsumexp(wide, axis=-1, keepdims=True)


def mean_nll(log_probs: mx.array, tokens: Sequence[int]) -> float:
    """Mean negative log-likelihood of `tokens`, row i of [n, V] predicting token i."""
    taken = mx.take_along_axis(log_probs, mx.array(list(tokens))[:, None], axis=-1)
    return -float(taken.mean())


# ---- attention: MLX's CPU build takes 20 ns per softmax element, nine tenths of the time of a long prefill;
# NumPy takes 1 ns. Results are equal up to rounding. A bench of speed must not use it.

Attend = Callable[..., mx.array]
_ROWS = 64
# Attention is a small part of the time of shorter blocks.
_LEAST_ROWS = 16


@contextmanager
def cpu_attention() -> Iterator[None]:
    """Replace MLX's attention within the context if MLX computes on the CPU; on a GPU nothing changes."""
    own = mx.fast.scaled_dot_product_attention
    if mx.default_device() == mx.Device(mx.cpu):
        mx.fast.scaled_dot_product_attention = _replacement(own)
    try:
        yield
    finally:
        mx.fast.scaled_dot_product_attention = own


def _replacement(own: Attend) -> Attend:
    def attend(
        q: mx.array,
        k: mx.array,
        v: mx.array,
        *,
        scale: float,
        mask: mx.array | str | None = None,
        sinks: mx.array | None = None,
        **more: Any,
    ) -> mx.array:
        plain = q.dtype == k.dtype == v.dtype == mx.float32 and sinks is None and not more
        masked = mask is None or mask == "causal" if not isinstance(mask, mx.array) else _is_flat(mask)
        if not plain or not masked or len(q) != 1 or q.shape[2] < _LEAST_ROWS:
            return own(q, k, v, scale=scale, mask=mask, sinks=sinks, **more)
        scaled = _as_numpy(q) * np.float32(scale)
        return mx.array(_attention(scaled, _as_numpy(k), _as_numpy(v), _visible(mask, q, k)))[None]

    return attend


def _is_flat(mask: mx.array) -> bool:
    """Whether it is one boolean mask for all heads."""
    return mask.dtype == mx.bool_ and mask.size == mask.shape[-1] * mask.shape[-2]


def _as_numpy(array: mx.array) -> NDArray[np.float32]:
    """[heads, tokens, width] of a batch of one sequence."""
    found: NDArray[np.float32] = np.asarray(mx.contiguous(array))[0]
    return found


def _visible(mask: mx.array | str | None, q: mx.array, k: mx.array) -> NDArray[np.bool_]:
    """bool [L, S]: which keys each query attends to."""
    rows, columns = q.shape[2], k.shape[2]
    if isinstance(mask, mx.array):
        return np.asarray(mx.contiguous(mask)).reshape(rows, columns)
    return np.tri(rows, columns, columns - rows if mask else columns, dtype=np.bool_)


def _attention(
    q: NDArray[np.float32],
    k: NDArray[np.float32],
    v: NDArray[np.float32],
    visible: NDArray[np.bool_],
) -> NDArray[np.float32]:
    """float32 [Hq, L, D] of scaled q [Hq, L, D] and k, v [Hk, S, D].

    Computed in blocks of rows whose scores fit the CPU's cache, without the keys no row of a block attends
    to.
    """
    heads, rows, _ = q.shape
    shared = heads // len(k)
    out = np.empty((heads, rows, v.shape[2]), dtype=np.float32)
    for first in range(0, rows, _ROWS):
        block = slice(first, min(first + _ROWS, rows))
        seen = visible[block]
        end = int(np.flatnonzero(seen.any(axis=0))[-1]) + 1
        hidden = ~seen[:, :end]
        for group in range(len(k)):
            own = slice(group * shared, (group + 1) * shared)
            scores = q[own, block] @ k[group, :end].T
            scores[:, hidden] = -np.inf
            scores -= scores.max(axis=-1, keepdims=True)
            np.exp(scores, out=scores)
            out[own, block] = scores @ v[group, :end] / scores.sum(axis=-1, keepdims=True)
    return out


# ---- report

_MAX_NATS = 50.0
_CLEAR_P = 0.05


def perplexity(nll: float) -> float:
    """exp of a mean negative log-likelihood in nats; bounded, so that an impossible token cannot overflow."""
    return math.exp(min(nll, _MAX_NATS))


def report(found: Sequence[Likelihood]) -> list[str]:
    """Perplexity relative to dense by reader and kind, and scorers against the readers without a score."""
    lines: list[str] = []
    for part in dict.fromkeys(each.part for each in found):
        of_part = [each for each in found if each.part == part]
        kinds = list(dict.fromkeys(each.kind for each in of_part))
        readers = [name for name in dict.fromkeys(each.reader for each in of_part) if name != DENSE]
        rows = []
        for reader in readers:
            pairs = _pairs(of_part, DENSE, reader)
            ratios = [perplexity(own.nll - dense.nll) for dense, own in pairs]
            low, high = quartiles(ratios)
            by_kind = " | ".join(
                f"{median(perplexity(own.nll - dense.nll) for dense, own in pairs if own.kind == kind):.2f}"
                for kind in kinds
            )
            same = [a == b for dense, own in pairs for a, b in zip(dense.top, own.top)]
            rows.append(
                f"{reader} | {len(pairs)} | {median(o.read_tokens / o.prompt_tokens for _, o in pairs):.0%}"
                f" | **{median(ratios):.3f}** ({low:.2f} to {high:.2f})"
                f" | {sum(same) / max(1, len(same)):.0%} | {by_kind}"
            )
        lines += [f"## {part.capitalize()}s: perplexity relative to dense, median (quartiles)", ""]
        lines += table(f"reader | prompts | read | ratio | same first choice | {' | '.join(kinds)}", rows)
        duels = [
            _duel(of_part, scorer, baseline)
            for scorer in readers
            for baseline in readers
            if scorer not in SCORELESS and baseline in SCORELESS
        ]
        if duels:
            lines += ["", *table("scorer | baseline | won | lost | p | clearly better", duels)]
        lines += [""]
    return lines


def _duel(found: Sequence[Likelihood], scorer: str, baseline: str) -> str:
    pairs = _pairs(found, baseline, scorer)
    wins, losses = compare([own.nll for _, own in pairs], [other.nll for other, _ in pairs])
    p = sign_test(wins, losses)
    verdict = "yes" if wins > losses and p < _CLEAR_P else "**no**"
    return f"{scorer} | {baseline} | {wins} | {losses} | {p:.2g} | {verdict}"


def _pairs(found: Sequence[Likelihood], one: str, other: str) -> list[tuple[Likelihood, Likelihood]]:
    """The same prompts by two readers."""
    by_key = {each.key: each for each in found}
    firsts = [each for each in found if each.reader == one]
    return [(each, by_key[*each.key[:3], other]) for each in firsts if (*each.key[:3], other) in by_key]


def quartiles(values: Iterable[float]) -> tuple[float, float]:
    """First and third quartile; the value itself if there is one, zeros for no values."""
    held = sorted(values)
    if len(held) < 2:
        return (held[0], held[0]) if held else (0.0, 0.0)
    low, _, high = statistics.quantiles(held, n=4, method="inclusive")
    return low, high
