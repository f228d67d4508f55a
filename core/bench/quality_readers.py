"""The prompts and the readers of `bench quality`: dense, each scorer, baselines without a score, hindsight.

The baselines are `random` passages, `head-and-tail` and `end`, at the same keep as the scorers. `hindsight-N`
is an upper bound: it scores passages by the attention of the N tokens that follow the prompt. All go through
the product's own selection and reading. A scorer that fell back to dense is an error here. Prompts are
generated from seeds, with their right continuations.

Importing this loads MLX, which `core.models.runtime.prepare` must precede.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from random import Random
from typing import Any

import mlx.core as mx
import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from core.bench.cases import document
from core.bench.quality_tasks import DENSE, SCORELESS, Case, Part, hindsight, task
from core.errors import InternalError, RequestError
from core.events import Attachment, Message
from core.kv.cached_sequence import CachedSequence
from core.models.loader import LoadedModel
from core.models.prompt import Prompt, offsets, render
from core.prefill.layout import Layout, Passages, layout, unknown_layout
from core.prefill.plan import select
from core.prefill.read import read_kept, read_prompt
from core.prefill.reading import PromptText, Reading, ReadingInputs
from core.prefill.scorers.draft_model import Attended, watched
from core.prefill.scorers.scorer import ScoringDraft, carried, means_of
from core.settings.prefill import SCORERS, Prefill

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


# ---- prompts

# Limit for the template, the question and the given beginning of the answer.
_AROUND_TOKENS = 160
_QUOTED_TOKENS = 24


class Probe(Struct, frozen=True):
    """A prompt and its right continuation `gold`; `case` is None if only the likelihood is measured."""

    part: Part
    name: str
    seed: int
    prompt: Prompt
    gold: list[int]
    case: Case | None = None
    answer_tokens: int = 0


def document_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """The first `context` tokens of a document (fewer of a shorter one) and the `continuation` after them."""
    ids = _first_tokens(loaded, kind, seed, context + continuation)
    end = len(ids) - continuation
    return Probe("document", kind, seed, Prompt(ids[:end], "", ()), ids[end:])


def passage_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """A request of about `context` tokens to quote the passage of a document that begins with given words.

    The passage starts at a random line whose first words are unique in the document. The words are in the
    question and begin the answer; `gold` are the `continuation` tokens after them. Raises `RequestError` if
    the document has no such line.
    """
    text = loaded.tokenizer.decode(_first_tokens(loaded, kind, seed, context - _AROUND_TOKENS))
    rng = Random(f"passage {kind} {seed}")
    lines = [line.start() for line in re.finditer(r"^.*\S", text, re.MULTILINE)]
    for start in rng.sample(lines, len(lines)):
        ids = _encoded(loaded, text[start:])
        words = loaded.tokenizer.decode(ids[:_QUOTED_TOKENS])
        if len(ids) >= _QUOTED_TOKENS + continuation and text.count(words) == 1:
            break
    else:
        raise RequestError(
            f"A {kind} of {context:,} tokens has no passage of {continuation:,} with unique first words.",
            "Choose a longer --context or a shorter --continuation.",
        )
    question = f"Which passage of the document begins with these words: “{words.strip()}”? Quote it."
    prompt = _prompt(loaded, question, text, words)
    return Probe("passage", kind, seed, prompt, ids[_QUOTED_TOKENS : _QUOTED_TOKENS + continuation])


def task_probe(loaded: LoadedModel, name: str, seed: int, context: int) -> Probe:
    """A task's prompt of about `context` tokens, with the given beginning of its answer."""
    chosen = task(name)
    room = context - _AROUND_TOKENS
    case = chosen.build(Random(f"{name} {seed}"), room, lambda text: len(_encoded(loaded, text)))
    prompt = _prompt(loaded, case.question, case.document, case.lead)
    return Probe("task", name, seed, prompt, _encoded(loaded, case.gold), case, chosen.answer_tokens)


def _first_tokens(loaded: LoadedModel, kind: str, seed: int, tokens: int) -> list[int]:
    """The first `tokens` of a document; all of a shorter one."""
    ids: list[int] = []
    for part in document(kind, seed):
        ids += _encoded(loaded, part)
        if len(ids) >= tokens:
            break
    return ids[:tokens]


def _prompt(loaded: LoadedModel, question: str, text: str, lead: str) -> Prompt:
    """`question` about the attached `text`, followed by `lead`, the given beginning of the answer."""
    rendered = render(loaded.tokenizer, (Message("user", question, (Attachment("document", text),)),))
    whole = rendered.text + lead
    return Prompt(_encoded(loaded, whole), whole, rendered.regions)


def _encoded(loaded: LoadedModel, text: str) -> list[int]:
    return [int(i) for i in loaded.tokenizer.encode(text, add_special_tokens=False)]


# ---- likelihoods


class Closeness(Struct, frozen=True):
    """Means over positions: KL of next-token distributions, and the share with an equal most likely token."""

    kl_nats: float
    top1_agreement: float


def log_probabilities(logits: mx.array) -> mx.array:
    """[n, V] logits of any dtype to float32 log-probabilities."""
    wide = logits.astype(mx.float32)
    return wide - mx.logsumexp(wide, axis=-1, keepdims=True)


def mean_nll(log_probs: mx.array, tokens: Sequence[int]) -> float:
    """Mean negative log-likelihood of `tokens`, row i of [n, V] predicting token i."""
    taken = mx.take_along_axis(log_probs, mx.array(list(tokens))[:, None], axis=-1)
    return -float(taken.mean())


def closeness(full: mx.array, other: mx.array) -> Closeness:
    """KL(full ‖ other) and top-1 agreement of two [n, V] arrays of log-probabilities."""
    kl = (mx.exp(full) * (full - other)).sum(axis=-1)
    same = mx.argmax(full, axis=-1) == mx.argmax(other, axis=-1)
    return Closeness(max(0.0, float(kl.mean())), float(same.astype(mx.float32).mean()))


# ---- sessions


class Session:
    """A prompt that was read by some reader. Owned by the thread that loaded the model.

    `sequence` holds all of `prompt` but its last token. Every method starts from this state and restores it,
    which needs a cache that can be truncated to any prefix.
    """

    def __init__(self, loaded: LoadedModel, sequence: CachedSequence, prompt: Sequence[int]) -> None:
        self._loaded = loaded
        self._sequence = sequence
        self._prompt = list(prompt)

    @property
    def read_tokens(self) -> int:
        """Number of prompt tokens that the model reads, the last one included."""
        return self._sequence.columns.count + 1

    def predict(self, tokens: Sequence[int]) -> mx.array:
        """float32 log-probabilities [n, V] for each of `tokens` given the prompt and those before it."""
        block = [self._prompt[-1], *tokens[:-1]]
        found = log_probabilities(self._run(block)[0])
        mx.eval(found)
        self._restore()
        return found

    def attended_by(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        """Attention on each prompt token (float32) by the last prompt token and the following `tokens`.

        Computed as by `core.prefill.scorers.draft_model`, over all layers that attend to the whole prompt.
        Raises `InternalError` if there is none.
        """
        block = [self._prompt[-1], *tokens]
        attended = Attended(list(range(len(block))), len(self._prompt) + len(tokens), len(self._prompt))
        with watched(self._loaded.model, attended.add):
            logits = self._run(block)
        found = attended.result
        if found is None:
            raise InternalError("No layer of this model attends to the whole prompt.")
        mx.eval(found, logits)
        self._restore()
        return np.array(found)

    def answer(self, max_tokens: int) -> str:
        """The greedy answer up to a stop token or a line break."""
        decode, stops = self._loaded.tokenizer.decode, self._loaded.eos
        tokens: list[int] = []
        last = self._prompt[-1]
        while len(tokens) < max_tokens:
            last = int(mx.argmax(self._run([last])[0, -1]))
            if last in stops:
                break
            tokens.append(last)
            if "\n" in decode([last]):
                break
        self._restore()
        return str(decode(tokens))

    def _run(self, block: Sequence[int]) -> mx.array:
        logits: mx.array = self._loaded.model(mx.array(list(block))[None], cache=self._sequence.cache)
        self._sequence.append(block)
        return logits

    def _restore(self) -> None:
        self._sequence.truncate(len(self._prompt) - 1)


# ---- readers

Scores = NDArray[np.float32]


class Hindsight(Struct, frozen=True):
    """What no scorer has: the prompt read densely, and the `tokens` that follow it."""

    full: Session
    tokens: list[int]


class Reader(ABC):
    """One way to read a prompt. Owned by the thread that loaded the model."""

    def __init__(self, name: str, loaded: LoadedModel, settings: Prefill) -> None:
        self.name = name
        self._loaded = loaded
        self._settings = settings

    def read(self, prompt: Prompt, future: Hindsight | None = None) -> Session:
        """Read `prompt` into a new sequence. Only readers by hindsight need `future`.

        Raises `RequestError` if the model's cache cannot be truncated, or if a scorer fell back to dense.
        """
        sequence = CachedSequence(self._loaded.new_cache)
        if not sequence.keeps_all:
            raise RequestError(
                f"{self._loaded.info.name} has a cache that cannot be truncated, which this bench needs.",
                "Choose a model with plain full attention.",
            )
        self._fill(sequence, prompt, future)
        return Session(self._loaded, sequence, prompt.ids)

    @abstractmethod
    def _fill(self, sequence: CachedSequence, prompt: Prompt, future: Hindsight | None) -> None:
        """Read all of `prompt` but its last token into the empty `sequence`."""

    def _layout(self, prompt: Prompt) -> Layout:
        if not prompt.regions:
            return unknown_layout(len(prompt.ids))
        return layout(prompt, offsets(self._loaded.tokenizer, prompt))


class _Dense(Reader):
    """Reads everything."""

    def _fill(self, sequence: CachedSequence, prompt: Prompt, future: Hindsight | None) -> None:
        steps = read_prompt(
            self._loaded.model, sequence, prompt.ids, chunk_tokens=self._settings.chunk_tokens
        )
        for _ in steps:
            pass


class _Scored(Reader):
    """Reads what one of the product's scorers selects."""

    def __init__(self, name: str, loaded: LoadedModel, settings: Prefill, draft: LoadedModel | None) -> None:
        super().__init__(name, loaded, settings)
        self._draft = draft

    def _fill(self, sequence: CachedSequence, prompt: Prompt, future: Hindsight | None) -> None:
        inputs = ReadingInputs(self._scoring_draft)
        text = PromptText(prompt.ids, prompt.asked, lambda: self._layout(prompt))
        reading = Reading("bench", self._loaded, sequence, text, self._settings, inputs)
        for _ in chain(reading.plan(), reading.events()):
            pass
        if not reading.outcome.sparse:
            raise RequestError(
                f"{self.name} read all of {len(prompt.ids):,} tokens: {reading.outcome.reason}.",
                "Choose a longer --context or --document-context.",
            )

    def _scoring_draft(self) -> ScoringDraft:
        if self._draft is None:
            raise RequestError("The scorer draft-model needs a draft model.", "Choose other --readers.")
        return ScoringDraft(self._draft, CachedSequence(self._draft.new_cache))


class _Chosen(Reader):
    """Reads the passages with the highest `_scores`, which are not those of a product scorer."""

    @abstractmethod
    def _scores(self, ids: Sequence[int], passages: Passages, future: Hindsight | None) -> Scores:
        """float32, one score per passage."""

    def _fill(self, sequence: CachedSequence, prompt: Prompt, future: Hindsight | None) -> None:
        known = self._layout(prompt)
        passages = known.passages(0, len(prompt.ids), self._settings)
        chosen = select(
            self._scores(prompt.ids, passages, future),
            known.always_read,
            passages,
            keep_pct=self._settings.keep_pct,
        )
        model, chunk = self._loaded.model, self._settings.chunk_tokens
        for _ in read_kept(model, sequence, prompt.ids, chosen.positions, chunk_tokens=chunk):
            pass


class _Scoreless(_Chosen):
    """Reads random passages, those nearest to both ends, or those nearest to the end."""

    def _scores(self, ids: Sequence[int], passages: Passages, future: Hindsight | None) -> Scores:
        middles = (passages.firsts + passages.lengths / 2).astype(np.float32)
        if self.name == "head-and-tail":
            return np.asarray(np.abs(middles - len(ids) / 2))
        if self.name == "end":
            return middles
        return np.random.default_rng(list(ids)).random(len(passages), dtype=np.float32)


class _ByHindsight(_Chosen):
    """Reads what the following tokens attend to, averaged over passages as in the product's scorers."""

    def _scores(self, ids: Sequence[int], passages: Passages, future: Hindsight | None) -> Scores:
        if future is None:
            raise RequestError(f"{self.name} needs the following tokens.", "Pass `future`.")
        attended = future.full.attended_by(future.tokens[: hindsight(self.name)])
        return carried(means_of(attended, passages))


def readers(
    names: Sequence[str], loaded: LoadedModel, settings: Prefill, draft: LoadedModel | None
) -> list[Reader]:
    """The dense reader, then those in `names`, each at the keep of `settings`. Raises `RequestError`."""
    made: list[Reader] = [_Dense(DENSE, loaded, settings)]
    for name in names:
        if name in SCORELESS:
            made.append(_Scoreless(name, loaded, settings))
        elif hindsight(name):
            made.append(_ByHindsight(name, loaded, settings))
        elif name in SCORERS:
            own = replace(settings, mode="on", scorer=name)
            made.append(_Scored(name, loaded, own, draft if name == "draft-model" else None))
        else:
            raise RequestError(
                f"Unknown reader “{name}”.",
                f"Choose from {', '.join((*SCORERS, *SCORELESS))} and hindsight-N with N tokens.",
            )
    return made
