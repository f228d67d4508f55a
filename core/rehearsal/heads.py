"""Training of an MTP head for a model without one, on the model's own greedy answers.

The head (`core.models.mtp`) is one block of the model's own kind, at first a copy of the model's last one. It
predicts over a reduced vocabulary, the most frequent ids of the answers, with the model's own output rows.

1. `record_states` writes the model's hidden states of all answers to a file, once.
2. `HeadTraining` trains on them. Row i has the token at position i and the state before it, and learns the
   model's next distribution and its next hidden state. Each row then continues as in drafting: its own output
   replaces the state, for `DEPTHS` guesses in a row. These rows attend to the rows of the text before them
   and to their own chain (as in EAGLE-3, arXiv 2503.01840).
3. A tenth of the answers, chosen by a hash of their conversation's first prompt, is held out and measured.

Checkpoints hold weights, optimiser and step, so an interrupted training continues. MLX's thread only.
"""

from __future__ import annotations

import copy
import hashlib
import math
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.optimizers import AdamW, clip_grad_norm
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models.cache import KVCache, can_trim_prompt_cache, make_prompt_cache, trim_prompt_cache
from mlx_lm.utils import dequantize_model
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import ModelError, RequestError
from core.kv.cached_sequence import shared_prefix
from core.models.loader import LoadedModel
from core.models.mtp import MtpHead, few_outputs
from core.models.parts import SplitModel
from core.rehearsal.streams import Stream, prompt_key

# Guesses in a row that are trained and measured, and their weights in the loss.
DEPTHS = 3
_DEPTH_WEIGHTS = (1.0, 0.7, 0.5)
# Weight of the difference of hidden states, relative to their size.
_STATE_WEIGHT = 1.0
# Longer conversations lose their beginning.
_LONGEST_TOKENS = 512
_BATCH_TOKENS = 2048
_HELD_OUT = 10
_WEIGHT_DECAY = 0.05
_WARM_UP = 0.05
_LARGEST_GRADIENT = 1.0
_DIGEST_BYTES = 32


class HeadPlan(Struct, frozen=True):
    """`states`: the file of hidden states. `checkpoint`: the file of an unfinished training.

    `vocabulary` limits the predicted ids. `epochs`: passes over the answers.
    """

    states: Path
    checkpoint: Path
    vocabulary: int = 8192
    epochs: int = 8
    learning_rate: float = 1e-3
    seed: int = 0


class HeadProgress(Struct, frozen=True):
    """`done` of `total` steps or tokens. `loss`: of recent steps. `seconds`: of training, in all runs."""

    done: int
    total: int
    loss: float = 0.0
    seconds: float = 0.0


class GuessAccuracy(Struct, frozen=True):
    """Of the guesses at one place whose earlier guesses were right: `count`, and the shares in which the
    model's choice was the head's first, or one of its first two.
    """

    count: int
    first: float
    first_two: float


def first_tokens(streams: Iterable[Stream], most_tokens: int) -> list[Stream]:
    """The first answers with at least `most_tokens` tokens; all if it is 0."""
    found: list[Stream] = []
    tokens = 0
    for stream in streams:
        if 0 < most_tokens <= tokens:
            break
        found.append(stream)
        tokens += len(stream.out)
    return found


# ---- hidden states: a digest of the model and the answers, then float16 [tokens, size] per answer


def record_states(
    loaded: LoadedModel, parts: SplitModel, streams: Sequence[Stream], path: Path
) -> Generator[HeadProgress, None, None]:
    """Writes the hidden states of all tokens but the last of each answer; continues an incomplete file."""
    size = _size(parts)
    total = sum(map(_rows, streams))
    digest = _digest(loaded, streams)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or _start(path) != digest:
        path.write_bytes(digest)
    written = (path.stat().st_size - _DIGEST_BYTES) // (2 * size)
    done = 0
    before: list[int] = []
    states = mx.zeros((0, size), mx.float16)
    cache = make_prompt_cache(loaded.model)
    shares = can_trim_prompt_cache(cache)
    with path.open("rb+") as file:
        for stream in streams:
            done += _rows(stream)
            if done <= written:
                continue
            # Most prompts begin alike, and a follow-up with the turn before it.
            ids = [*stream.prompt, *stream.out][:-1]
            shared = min(shared_prefix(before, ids), len(ids) - 1) if shares else 0
            if shared:
                trim_prompt_cache(cache, len(before) - shared)
            else:
                cache = make_prompt_cache(loaded.model)
            new = parts.body(mx.array([ids[shared:]]), cache=cache)[0].astype(mx.float16)
            before, states = ids, mx.concatenate([states[:shared], new])
            mx.eval(states)
            file.seek(_DIGEST_BYTES + 2 * size * (done - len(ids)))
            file.write(np.array(states).tobytes())
            yield HeadProgress(done, total)


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_DIGEST_BYTES)


def _rows(stream: Stream) -> int:
    return len(stream.prompt) + len(stream.out) - 1


def _size(parts: SplitModel) -> int:
    return int(parts.embed(mx.array([[0]])).shape[-1])


def _digest(loaded: LoadedModel, streams: Sequence[Stream]) -> bytes:
    found = hashlib.blake2b(loaded.info.name.encode(), digest_size=_DIGEST_BYTES)
    for stream in streams:
        for ids in (stream.prompt, stream.out):
            found.update(np.array([len(ids), *ids], dtype="<u4").tobytes())
    return found.digest()


# ---- batches: answers start in the same column, so that chains are computed for answers only


class _Answer(Struct, frozen=True):
    """The ids [length] of a conversation, of which the first `prompt` are not the answer's; and the position
    of its first row in the file.
    """

    ids: list[int]
    prompt: int
    start: int


class _Batch(Struct, frozen=True):
    """`ids` [rows, columns] and the `states` [rows, columns, size] after them; answers start in column
    `begin`. `prompts` and `outs` [rows] are their lengths.
    """

    ids: mx.array
    states: mx.array
    begin: int
    prompts: mx.array
    outs: NDArray[np.int32]


class _ChainCache:
    """Keys and values of the rows of the text, followed by those of each guess; a cache entry of mlx-lm."""

    def __init__(self) -> None:
        self.offset = 0
        self.mask: mx.array | None = None
        self._keys: list[mx.array] = []
        self._values: list[mx.array] = []

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, mx.array]:
        self._keys.append(keys)
        self._values.append(values)
        return mx.concatenate(self._keys, axis=2), mx.concatenate(self._values, axis=2)

    def make_mask(self, *_: Any, **__: Any) -> mx.array | None:
        return self.mask


class HeadTraining:
    """Trains a head for `loaded` on `streams`, whose states `record_states` has written.

    Raises `ModelError` if the model's last layer cannot be trained as a head, `RequestError` if there are too
    few answers.
    """

    def __init__(
        self, loaded: LoadedModel, parts: SplitModel, streams: Sequence[Stream], plan: HeadPlan
    ) -> None:
        self._plan = plan
        self._parts = parts
        self._size = _size(parts)
        held_out = _held_out(streams)
        counts = Counter(token for stream, held in zip(streams, held_out) if not held for token in stream.out)
        ids = sorted(token for token, _ in counts.most_common(plan.vocabulary))
        self._index = {token: at for at, token in enumerate(ids)}
        self._outputs = few_outputs(parts, ids)
        states = np.memmap(plan.states, np.float16, "r", offset=_DIGEST_BYTES)
        self._states = states.reshape(-1, self._size)
        self._trained: list[_Answer] = []
        self._held_out: list[_Answer] = []
        start = 0
        for stream, held in zip(streams, held_out):
            if len(stream.out) > 1:
                (self._held_out if held else self._trained).append(_answer(stream, start))
            start += _rows(stream)
        if not self._trained:
            raise RequestError(
                f"{len(streams):,} answers are too few to train a head.", "Give more prompts or tokens."
            )
        mx.random.seed(plan.seed)
        self.head = _new_head(loaded.model, ids)
        self._optimiser = AdamW(plan.learning_rate, weight_decay=_WEIGHT_DECAY)
        self._optimiser.init(self.head.trainable_parameters())
        self._batches = _batched(self._trained)
        self._step, self.seconds = 0, 0.0
        # Of what a checkpoint belongs to.
        answers = _start(plan.states).hex()
        self._mark = f"{answers} {plan.vocabulary} {plan.epochs} {plan.learning_rate} {plan.seed}"
        self._restore()

    @property
    def counts(self) -> tuple[int, int, int]:
        """Trained answers and their tokens; held-out answers."""
        tokens = sum(len(each.ids) - each.prompt for each in self._trained)
        return len(self._trained), tokens, len(self._held_out)

    @property
    def steps(self) -> int:
        """Steps of the whole training."""
        return len(self._batches) * self._plan.epochs

    def train(self) -> Generator[HeadProgress, None, None]:
        """One step of training per `next`. Ends when all steps are done."""
        step_of = nn.value_and_grad(self.head, self._loss)
        recent = 0.0
        while self._step < self.steps:
            began = time.perf_counter()
            epoch, at = divmod(self._step, len(self._batches))
            order = np.random.default_rng((self._plan.seed, epoch)).permutation(len(self._batches))
            self._optimiser.learning_rate = self._rate()
            loss, gradients = step_of(self._loaded_batch(self._batches[order[at]]))
            gradients, _ = clip_grad_norm(gradients, _LARGEST_GRADIENT)
            self._optimiser.update(self.head, gradients)
            mx.eval(loss, self.head.parameters(), self._optimiser.state)
            self._step += 1
            self.seconds += time.perf_counter() - began
            recent = float(loss.item()) if not recent else 0.95 * recent + 0.05 * float(loss.item())
            yield HeadProgress(self._step, self.steps, recent, self.seconds)

    def measure(self) -> tuple[GuessAccuracy, ...]:
        """The accuracy on held-out answers, for each of `DEPTHS` guesses in a row."""
        counts = np.zeros((DEPTHS, 3))
        for batch in _batched(self._held_out):
            given = self._loaded_batch(batch)
            right: NDArray[np.bool_] | None = None
            ids = np.array(given.ids)
            for depth, guessed in enumerate(self._guesses(given)):
                rows = np.arange(guessed.shape[1])
                valid = rows[None] + depth + 1 <= given.outs[:, None]
                targets = ids[:, given.begin + depth :][:, : len(rows)]
                targets = np.pad(targets, ((0, 0), (0, len(rows) - targets.shape[1])))
                rank = self._ranks(guessed, targets)
                reached = valid if right is None else valid & right
                right = reached & (rank == 0)
                counts[depth] += [reached.sum(), right.sum(), (reached & (rank <= 1)).sum()]
        return tuple(
            GuessAccuracy(int(count), first / max(1, count), two / max(1, count))
            for count, first, two in counts.tolist()
        )

    def save_checkpoint(self) -> None:
        """Writes weights, optimiser and step."""
        arrays = {f"head.{name}": value for name, value in tree_flatten(self.head.parameters())}
        arrays |= {f"optimiser.{name}": value for name, value in tree_flatten(self._optimiser.state)}
        arrays["step"], arrays["seconds"] = mx.array(self._step), mx.array(self.seconds)
        temporary = self._plan.checkpoint.with_suffix(".new.safetensors")
        mx.save_safetensors(str(temporary), arrays, metadata={"training": self._mark})
        temporary.replace(self._plan.checkpoint)

    def _restore(self) -> None:
        if not self._plan.checkpoint.exists():
            return
        loaded: Any = mx.load(str(self._plan.checkpoint), return_metadata=True)
        arrays, metadata = loaded
        if metadata.get("training") != self._mark:
            return
        found = {name: value for name, value in arrays.items() if name.startswith("head.")}
        self.head.load_weights([(name.removeprefix("head."), value) for name, value in found.items()])
        state = [(name.removeprefix("optimiser."), v) for name, v in arrays.items() if "optimiser." in name]
        self._optimiser.state = tree_unflatten(state)
        self._step, self.seconds = int(arrays["step"].item()), float(arrays["seconds"].item())

    # ---- one step

    def _rate(self) -> float:
        """A linear warm-up, then half a cosine."""
        done = self._step / self.steps
        if done < _WARM_UP:
            return self._plan.learning_rate * (done / _WARM_UP + 1e-3)
        return self._plan.learning_rate * 0.5 * (1 + math.cos(math.pi * (done - _WARM_UP) / (1 - _WARM_UP)))

    def _loss(self, batch: _Batch) -> mx.array:
        begin, size = batch.begin, self._size
        width = int(batch.outs.max())
        inside = np.arange(1, width + 1)[None] <= batch.outs[:, None]
        rows, columns = np.nonzero(inside)
        later = batch.states[:, begin - 1 : begin - 1 + width].reshape(-1, size)
        later = later[mx.array(rows * width + columns)]
        chances = mx.stop_gradient(mx.softmax(self._outputs(later), axis=-1))
        # Where each answer's row is among those of `later`.
        place = np.cumsum(inside).reshape(inside.shape) - 1
        total = mx.array(0.0)
        for depth, guessed in enumerate(self._guesses(batch)):
            # Rows whose next tokens are all in the answer, in guesses and in targets.
            rows, columns = np.nonzero(np.arange(width)[None] + depth + 1 <= batch.outs[:, None])
            own = guessed.reshape(-1, size)[mx.array(rows * width + columns)]
            target = mx.array(place[rows, columns + depth])
            logits = self._outputs(own)
            entropy = (mx.logsumexp(logits, axis=-1) - (chances[target] * logits).sum(axis=-1)).mean()
            states = mx.square(own - later[target]).mean() / mx.square(later).mean()
            total = total + _DEPTH_WEIGHTS[depth] * (entropy + _STATE_WEIGHT * states)
        return total / sum(_DEPTH_WEIGHTS)

    def _guesses(self, batch: _Batch) -> list[mx.array]:
        """The head's states [rows, answer columns, size] for each of `DEPTHS` guesses in a row."""
        begin, width = batch.begin, int(batch.outs.max())
        ids = mx.pad(batch.ids, [(0, 0), (0, DEPTHS)])
        cache = _ChainCache()
        count = batch.ids.shape[1] - 2
        keys = mx.arange(count)
        known = keys[None] >= (begin - batch.prompts)[:, None]
        cache.mask = ((keys[None] <= keys[:, None])[None] & known[:, None])[:, None]
        states = self.head(self._parts.embed(batch.ids[:, 1:-1]), batch.states[:, :-2], cache)
        states = states[:, begin - 2 :]
        found = [states]
        mask = cache.mask[:, :, begin - 2 :]
        own = mx.broadcast_to(mx.eye(width, dtype=mx.bool_), (len(batch.outs), 1, width, width))
        for depth in range(1, DEPTHS):
            cache.offset = begin - 2 + depth
            mask = cache.mask = mx.concatenate([mask, own], axis=-1)
            start = begin - 1 + depth
            states = self.head(self._parts.embed(ids[:, start : start + width]), states, cache)
            found.append(states)
        return found

    def _ranks(self, guessed: mx.array, targets: NDArray[np.int32]) -> NDArray[np.int64]:
        """The number of ids that the head finds likelier than each target [rows, columns]."""
        index = np.vectorize(lambda token: self._index.get(token, -1), otypes=[np.int64])(targets)
        logits = self._outputs(guessed)
        own = mx.take_along_axis(logits, mx.array(np.maximum(index, 0))[..., None], axis=-1)
        ranks = np.array((logits > own).sum(axis=-1)).astype(np.int64)
        return np.where(index < 0, len(self._index), ranks)

    def _loaded_batch(self, answers: Sequence[_Answer]) -> _Batch:
        begin = max(each.prompt for each in answers)
        outs = np.array([len(each.ids) - each.prompt for each in answers], dtype=np.int32)
        columns = begin + int(outs.max())
        ids = np.zeros((len(answers), columns), np.int32)
        states = np.zeros((len(answers), columns, self._size), np.float32)
        for row, each in enumerate(answers):
            first = begin - each.prompt
            ids[row, first : first + len(each.ids)] = each.ids
            last = each.start + len(each.ids) - 1
            states[row, first : first + len(each.ids) - 1] = self._states[each.start : last]
        prompts = mx.array([each.prompt for each in answers])
        return _Batch(mx.array(ids), mx.array(states), begin, prompts, outs)


def _answer(stream: Stream, start: int) -> _Answer:
    ids = [*stream.prompt, *stream.out]
    cut = max(0, min(len(ids) - _LONGEST_TOKENS, len(stream.prompt) - 2))
    return _Answer(ids[cut : cut + _LONGEST_TOKENS], len(stream.prompt) - cut, start + cut)


def _batched(answers: Sequence[_Answer]) -> list[list[_Answer]]:
    """Batches of answers of similar lengths."""
    ordered = sorted(answers, key=lambda each: ((len(each.ids) - each.prompt) // 32, each.prompt))
    batches: list[list[_Answer]] = []
    for each in ordered:
        begin, width = each.prompt, len(each.ids) - each.prompt
        if batches:
            begin = max(begin, *(other.prompt for other in batches[-1]))
            width = max(width, *(len(other.ids) - other.prompt for other in batches[-1]))
        if not batches or (begin + width) * (len(batches[-1]) + 1) > _BATCH_TOKENS:
            batches.append([])
        batches[-1].append(each)
    return batches


def _held_out(streams: Sequence[Stream]) -> list[bool]:
    """Whether each answer is held out; those of a conversation together."""
    prompts = {tuple(stream.prompt) for stream in streams}
    lengths = sorted({len(prompt) for prompt in prompts})
    found = []
    for stream in streams:
        prompt = tuple(stream.prompt)
        first = next(prompt[:length] for length in lengths if prompt[:length] in prompts)
        found.append(prompt_key(first) % _HELD_OUT == 0)
    return found


def _new_head(model: Any, vocabulary: Sequence[int]) -> MtpHead:
    """A head with a copy of the model's last layer; its projection hands on the state."""
    owner = getattr(model, "language_model", model)
    args, layers = getattr(owner, "args", None), getattr(owner.model, "layers", None)
    if args is None or not layers or type(make_prompt_cache(model)[-1]) is not KVCache:
        raise ModelError(
            "No head can be trained for this model: its last layer does not have plain full attention.",
            "Choose another model.",
        )
    size, eps = int(args.hidden_size), float(args.rms_norm_eps)
    block = dequantize_model(copy.deepcopy(layers[-1]))
    head = MtpHead(block, size, eps, hidden_first=False, vocabulary=vocabulary)
    small = mx.random.normal((size, size)) * (0.1 / math.sqrt(size))
    head.projection.weight = mx.concatenate([small, mx.eye(size)], axis=1)
    head.set_dtype(mx.float32)
    mx.eval(head.parameters())
    return head
