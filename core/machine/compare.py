"""Comparison of blocks with plain steps, up to rounding and bit by bit: logits and the cache.

The cache is computed from the hidden states of all layers but the last, the logits from the last one's, so a
difference anywhere that could reach a token is seen in one of them.

A stream is a context and the tokens after it, half of them the model's own choices. It is read once with a
plain step per token, and once for each width in blocks that end in rejected tokens, kept and rolled back as
in the decode loop, so every block is computed on a cache that blocks wrote. After a first difference the rows
that follow depend on it, so rows are counted up to there.

Generators yield after each forward pass. Engine's thread.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from statistics import median
from typing import Any

import mlx.core as mx
from msgspec import Struct
from msgspec.structs import replace

from core.events import ModelInfo
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import (
    Cache,
    CacheEntry,
    LanguageModel,
    columns_of,
    is_window,
    kind_of,
    leaves,
    parts,
    window_in_order,
)
from core.kv.verify_block import VerifyBlock
from core.machine.exactness import LEAST_ROWS, PROFILES, WIDTHS, Profile, load_profile
from core.models.loader import LoadedModel
from core.models.memory import fault

_TOLERANCE_FLOAT32 = 1e-4
_TOLERANCE_16_BIT = 0.02
# Differences up to this many times a model's rounding are rounding: the largest of a trial's rows is compared
# with the median of others. Wrong positions were off by 0.1 and more, so beyond that nothing is rounding.
_ROUNDINGS = 3.0
_MOST_TOLERANCE = 0.1
_ROUNDING_CONTEXT, _ROUNDING_ROWS, _ROUNDING_BATCH = 56, 6, 6


def agree(rows: mx.array, others: mx.array, rounding: float = 0.0) -> bool:
    """Whether logits `rows` equal `others`, of the same shape, up to rounding.

    Errors are relative to the largest finite logit. Ids that a model forbids (−inf) must be the same on both
    sides; NaN agrees with nothing. `rounding`: this model's own in 16 bits, by `rounding_of`, if it is known.
    Measured on a CPU: other kernels and other orders of sums give errors below 1e-6 in float32; bfloat16 is
    off by 0.012 to 0.032 from float32; without its position hook SmolLM2-135M is off by 0.1 to 0.3.
    """
    tolerance = _TOLERANCE_FLOAT32
    if rows.dtype != mx.float32:
        tolerance = min(max(_TOLERANCE_16_BIT, _ROUNDINGS * rounding), _MOST_TOLERANCE)
    difference, scale = differences(rows, others)
    return float(difference.max()) <= tolerance * float(scale)


def rounding_of(model: LanguageModel, new_cache: Callable[[], Cache]) -> float:
    """How far other kernels move this model's logits, relative to the largest: the median of some rows.

    The same tokens are read one at a time alone, and one at a time in a batch of equal sequences as large as
    a verify block. Kernels depend on the number of rows, but neither masks, positions nor splits differ, so
    what differs is rounding, as deep models in bfloat16 amplify it. 0 if the model takes no batches.
    """
    rng = random.Random(0)
    ids = random_ids(rng, _ROUNDING_CONTEXT + _ROUNDING_ROWS)
    alone, batch = new_cache(), new_cache()
    found = []
    try:
        for cache, copies in ((alone, 1), (batch, _ROUNDING_BATCH)):
            mx.eval(model(mx.array([ids[:_ROUNDING_CONTEXT]] * copies), cache=cache))
        for token in ids[_ROUNDING_CONTEXT:]:
            one = model(mx.array([[token]]), cache=alone)[0]
            several = model(mx.array([[token]] * _ROUNDING_BATCH), cache=batch)[:1, 0]
            difference, scale = differences(one, several)
            found.append(float(difference.max() / scale))
    except Exception as error:  # any exception of a model's code
        if fault(error):
            raise  # depends on the machine, not on the model
        return 0.0
    return median(found)


def differences(rows: mx.array, others: mx.array) -> tuple[mx.array, mx.array]:
    """Absolute differences, float32 of the rows' shape, and the largest finite logit of `others`.

    Equal infinities have difference 0. NaN, or an infinity on one side only, gives an infinite difference.
    """
    rows, others = rows.astype(mx.float32), others.astype(mx.float32)
    difference = mx.where(rows == others, 0.0, mx.abs(rows - others))
    scale = mx.where(mx.isfinite(others), mx.abs(others), 0.0).max()
    return mx.where(mx.isnan(difference), mx.inf, difference), scale


# Context lengths of successive streams: short ones find differences that depend on the tokens, long ones
# those that depend on the length (kernels that split long sums).
_CONTEXTS = (60, 7, 250, 21, 1030, 110, 60, 2060)
_STREAM_TOKENS = 48
_LEAST_STREAM_TOKENS = 8
_CHUNK_TOKENS = 128
# The first streams try all widths, later ones a third of the widths without a difference.
_FULL_STREAMS = 3
_MOST_STREAMS = 400
_IDS = 200
_WORDS = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}


def random_ids(rng: random.Random, count: int) -> list[int]:
    """`count` token ids that exist in every tokenizer."""
    return [rng.randrange(_IDS) for _ in range(count)]


class Comparison(Struct, frozen=True):
    """`rows` up to and including the first that differs; `noise` is the largest difference of a logit."""

    rows: int
    identical: bool
    noise: float


def compare_widths(
    profile: Profile, model: LanguageModel, new_cache: Callable[[], Cache], info: ModelInfo
) -> Generator[Profile, None, None]:
    """Adds streams to `profile` until it is complete; yields it after each forward pass."""
    window = min((int(e.max_size) for e in leaves(new_cache()) if is_window(e)), default=0)
    profile = replace(profile, window_tokens=window)
    while profile.streams < _FULL_STREAMS or not profile.is_complete:
        if profile.streams >= _MOST_STREAMS:
            return
        number = profile.streams
        rng = random.Random(number)
        past_window = bool(window) and (number % 4 == 3 or not profile.fits_window)
        limit = window if window and not past_window else info.context_tokens
        context, tokens = _lengths(
            _CONTEXTS[number % len(_CONTEXTS)], limit, longer_than=window * past_window
        )
        profile = replace(profile, streams=number + 1)
        if tokens < _LEAST_STREAM_TOKENS:
            return
        stream = _Stream(model, new_cache, rng, context, tokens)
        for _ in stream.read():
            yield profile
        profile = replace(
            profile,
            longest_tokens=max(profile.longest_tokens, context + tokens)
            if not past_window
            else profile.longest_tokens,
        )
        for width in _widths(profile, number):
            found = yield from _passed(stream.compare(width, rng), profile)
            profile = replace(profile, noise=max(profile.noise, found.noise))
            if not past_window:
                profile = profile.with_comparison(width, found.rows, identical=found.identical)
            yield profile
            if not found.identical and number >= _FULL_STREAMS and width > 2:
                # A narrower block probably differs on these tokens, too.
                for narrower in range(width - 1, 1, -1):
                    again = yield from _passed(stream.compare(narrower, rng), profile)
                    if not past_window:
                        profile = profile.with_comparison(narrower, again.rows, identical=again.identical)
                break


def _passed(
    steps: Generator[None, None, Comparison], profile: Profile
) -> Generator[Profile, None, Comparison]:
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Comparison = done.value
            return found
        yield profile


def _lengths(context: int, limit: int, longer_than: int) -> tuple[int, int]:
    """Tokens of a stream's context and of the text after it, together fewer than `limit`."""
    context = max(context, longer_than)
    room = limit - WIDTHS[-1]
    tokens = min(_STREAM_TOKENS, room // 2)
    return min(context, room - tokens), tokens


def _widths(profile: Profile, number: int) -> Sequence[int]:
    if number < _FULL_STREAMS:
        return WIDTHS
    incomplete = [
        each.width
        for each in profile.widths
        if each.width <= profile.identical_width and each.rows < LEAST_ROWS
    ]
    return incomplete if len(incomplete) <= 5 else incomplete[number % 3 :: 3]


class _Stream:
    """`tokens` tokens after a random context of `context` tokens."""

    def __init__(
        self,
        model: LanguageModel,
        new_cache: Callable[[], Cache],
        rng: random.Random,
        context: int,
        tokens: int,
    ) -> None:
        self._model = model
        self._base = CachedSequence(new_cache)
        self._context = random_ids(rng, context)
        self._random = random_ids(rng, tokens)
        self._tokens: list[int] = []
        self._plain: list[mx.array] = []
        self._cache: Cache = []

    def read(self) -> Iterator[None]:
        """Reads the context, and then one token after the other."""
        base = self._base
        for start in range(0, len(self._context), _CHUNK_TOKENS):
            chunk = self._context[start : start + _CHUNK_TOKENS]
            forward(self._model, chunk, base.cache)
            base.append(chunk)
            yield
        base.snapshot()
        sequence = base.fork(len(self._context))
        token = self._random[0]
        for index, other in enumerate(self._random):
            self._tokens.append(token)
            got = forward(self._model, [token], sequence.cache)
            sequence.append([token])
            self._plain += got
            token = int(mx.argmax(got[0])) if index % 2 else other
            yield
        self._cache = sequence.cache

    def compare(self, width: int, rng: random.Random) -> Generator[None, None, Comparison]:
        """Reads the same tokens in blocks of `width`."""
        sequence = self._base.fork(len(self._context))
        rows: list[mx.array] = []
        start, lead, count = 0, 1, len(self._tokens)
        while start < count:
            room = min(width, count - start)
            known = room if room < width or rng.random() < 0.5 else rng.randint(lead, room)
            if known == 1 and room == 1:
                got = forward(self._model, self._tokens[start:], sequence.cache)
                kept = True
            else:
                tail = random_ids(rng, width - known) if room == width else []
                block = VerifyBlock(sequence.cache)
                got = forward(self._model, self._tokens[start : start + known] + tail, sequence.cache)
                kept = block.keep(known + len(tail), list(range(known)))
            rows += got[len(rows) - start : known]
            if kept:
                sequence.append(self._tokens[start : start + known])
                start, lead = start + known, 1
            else:  # recurrent: the accepted tokens begin the next block
                lead = min(known + 1, width, count - start)
            yield
        return compare_rows(self._plain, rows, self._cache, sequence.cache)


def compare_rows(
    plain: Sequence[mx.array],
    block: Sequence[mx.array],
    plain_cache: Sequence[CacheEntry],
    other: Sequence[CacheEntry],
) -> Comparison:
    """Compares rows of logits in order, then the caches that hold them."""
    noise = 0.0
    first: int | None = None
    for index, (one, two) in enumerate(zip(plain, block, strict=True)):
        if same_bits(one, two):
            continue
        first = index if first is None else first
        noise = max(noise, float(differences(one, two)[0].max()))
    identical = first is None and same_cache(plain_cache, other)
    return Comparison(len(plain) if first is None else first + 1, identical, noise)


def same_cache(cache: Sequence[CacheEntry], other: Sequence[CacheEntry]) -> bool:
    """Whether two caches of the same tokens hold the same bits; a window's columns in temporal order."""
    for one, two in zip(leaves(cache), leaves(other), strict=True):
        held, also = _columns(one), _columns(two)
        if kind_of(one) == "window":
            shared = min(held[0].shape[-2], also[0].shape[-2])
            held, also = ([each[..., -shared:, :] for each in some] for some in (held, also))
        if not all(same_bits(a, b) for a, b in zip(held, also, strict=True)):
            return False
    return True


def _columns(entry: Any) -> list[mx.array]:
    kind = kind_of(entry)
    if kind == "appending":
        return [
            part[..., : columns_of(entry), :] for held in (entry.keys, entry.values) for part in parts(held)
        ]
    if kind == "window":
        return window_in_order(entry)
    return [part for part in getattr(entry, "cache", ()) if isinstance(part, mx.array)]


def same_bits(one: mx.array, other: mx.array) -> bool:
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    word = _WORDS[one.dtype.size]
    return bool(mx.array_equal(one.view(word), other.view(word)).item())


def forward(model: LanguageModel, ids: Sequence[int], cache: Cache) -> list[mx.array]:
    """One evaluated forward pass; the logits of each of `ids`."""
    logits = model(mx.array(list(ids))[None], cache=cache)[0]
    mx.eval(logits, [entry.state for entry in cache])
    return [logits[row] for row in range(len(ids))]


# ---- in the background

# Before the first answer that wants it, and in streams of comparisons; the rest is done while idle.
_UP_FRONT_S = 4.0
_UP_FRONT_STREAMS = 3


class ExactWidths:
    """Compares block widths of one loaded model. `clock` gives seconds.

    Comparing begins with the first answer in `exact`: for a few seconds before it, then while the engine is
    idle, until `Profile.is_complete`. Each finished comparison is saved, so an interrupted run is not lost.
    """

    def __init__(self, loaded: LoadedModel, clock: Callable[[], float] = time.perf_counter) -> None:
        self._loaded = loaded
        self._clock = clock
        self._profile: Profile | None = None
        self._wanted = False
        self._comparing: Generator[Profile, None, None] | None = None

    @property
    def profile(self) -> Profile:
        """The current profile; compares nothing."""
        if self._profile is None:
            self._profile = load_profile(self._loaded.info)
        return self._profile

    def want(self) -> Profile:
        """The profile for an answer in `exact`; compares for a few seconds if it has nothing."""
        self._wanted = True
        end = self._clock() + _UP_FRONT_S
        while self.profile.streams < _UP_FRONT_STREAMS and self._clock() < end and self.some():
            pass
        return self.profile

    def complete(self) -> Profile:
        """The complete profile, compared now (minutes for a model of some size)."""
        self._wanted = True
        while self.some():
            pass
        return self.profile

    def some(self) -> bool:
        """One forward of a comparison; whether there was any."""
        if not self._wanted:
            return False
        if self._comparing is None:
            if self.profile.streams >= _UP_FRONT_STREAMS and self.profile.is_complete:
                return False
            loaded = self._loaded
            self._comparing = compare_widths(self.profile, loaded.model, loaded.new_cache, loaded.info)
        before = self.profile
        found = next(self._comparing, None)
        if found is None:
            self._comparing, self._wanted = None, False
            return False
        self._profile = found
        if found.widths != before.widths or found.is_complete != before.is_complete:
            PROFILES.save(found)
        return True
