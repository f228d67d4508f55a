"""Sight: the images of one prompt, on their way through the model.

A pass over a prompt's tokens gets the rows of images in place of their embeddings; in models whose rows have
positions in three axes (M-RoPE) it also turns its rows to these, and later tokens by as much as images take
fewer positions than rows. In models that let the rows of an image attend to each other in both directions it
has other masks, and an image is read in one pass. The model is mlx-lm's own, and has its original objects
after each block. Worker's main thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import InternalError
from core.events import FIRST_IMAGE_ROW, Image, Message
from core.kv.cached_sequence import CachedSequence
from core.kv.mlx_lm_caches import columns_of, is_appending, is_window, leaves, masked, window_columns
from core.models.parts import Rotation, rotations
from core.vision.eyes import Eyes
from core.vision.family import Scaled

# Most rows of a divided image in the test whether the model sees it, and the tokens before and after it.
_LOOKED_ROWS = 64
_LOOKING_IDS = (1, 2)


class _Held(Struct, frozen=True):
    """An image of the prompt, with its size for the tower."""

    image: Image
    scaled: Scaled


class Sight:
    """The images of `messages`, as `eyes` see them.

    Ids that the messages' images do not have are an error.
    """

    def __init__(self, eyes: Eyes, messages: Sequence[Message]) -> None:
        self._eyes = eyes
        self._held: dict[int, _Held] = {}
        family = eyes.family
        for image in (image for message in messages for image in message.images):
            scaled = family.scale(image.width, image.height)
            self._held[family.rows_of(image)[0]] = _Held(image, scaled)
        self._found: list[Rotation] | None = None
        self.seconds = 0.0  # of decoding images and computing their rows

    @property
    def whole(self) -> bool:
        """Whether a pass must not end within an image."""
        return bool(self._eyes.family.both_ways)

    @property
    def undivided_rows(self) -> int:
        """Rows of the largest image that one pass reads completely; 0 if passes may divide images."""
        return max((each.scaled.rows for each in self._held.values()), default=0) if self.whole else 0

    def end(self, prompt: Sequence[int], start: int, end: int) -> int:
        """The end, after `start`, of a pass over `prompt` from `start`, near `end`; it divides no image if
        that matters.
        """
        if not self.whole or end >= len(prompt) or prompt[end] < FIRST_IMAGE_ROW:
            return end
        first = last = end
        while first > 0 and prompt[first - 1] >= FIRST_IMAGE_ROW:
            first -= 1
        while last < len(prompt) and prompt[last] >= FIRST_IMAGE_ROW:
            last += 1
        return first if first > start else last

    def rows_in(self, ids: Sequence[int], start: int) -> Iterator[None]:
        """Computes the rows of the images in `ids` from `start` on, one image after each yield."""
        for first, held in self._runs(np.asarray(ids, np.int64)):
            if first + held.scaled.rows > start:
                yield
                self._rows(held)

    @contextmanager
    def reading(
        self, sequence: CachedSequence, ids: Sequence[int]
    ) -> Iterator[tuple[mx.array, dict[str, Any]]]:
        """For one pass over `ids`, the next tokens of `sequence`: their block [1, n] and the model's
        arguments.
        """
        held = _held_ids(sequence)
        whole = np.concatenate([held, np.asarray(ids, np.int64)])
        runs = self._runs(whole)
        given: dict[str, Any] = {}
        block = mx.array(np.where(whole[len(held) :] >= FIRST_IMAGE_ROW, self._eyes.family.row_id, ids))[None]
        if any(start + each.scaled.rows > len(held) for start, each in runs):
            given["input_embeddings"] = self._embedded(block, runs, whole, len(held))
        with ExitStack() as hooks:
            if self._eyes.family.sections and runs:
                positions = _positions(whole, runs)[:, len(held) :]
                hooks.enter_context(self._turned(_axes(positions, len(held))))
            if self.whole and given:
                hooks.enter_context(masked(self._masks(sequence, runs, len(held), len(ids))))
            yield block, given

    @contextmanager
    def answering(self, sequence: CachedSequence) -> Iterator[None]:
        """While open, passes continue `sequence`, whose images were read, with text."""
        held = _held_ids(sequence)
        shift = 0
        if self._eyes.family.sections:
            shift = sum(
                max(each.scaled.down, each.scaled.across) - each.scaled.rows for _, each in self._runs(held)
            )
        if not shift:
            yield
            return
        with self._turned(lambda rope: _Shifted(rope, shift)):
            yield

    def why_unseen(self) -> str:
        """Why the model's answer does not depend on the images; empty if it does, or if that was found
        before.

        Two passes over an image at most, once a model: if its rows in another order give the same logits, the
        model does not see. Rows that are all equal show nothing. Images whose rows are not kept, as those of
        a saved chat, are not decoded for this: the answer is complete without their files.
        """
        eyes = self._eyes
        if eyes.sees is None:
            for held in self._held.values():
                rows = eyes.kept(held.image)
                if rows is not None:
                    break
            else:
                return ""
            ids = eyes.family.rows_of(held.image)
            if not self.whole:
                ids = ids[:_LOOKED_ROWS]
            order = np.random.default_rng(0).permutation(len(ids))
            if mx.array_equal(rows[: len(ids)], rows[mx.array(order)]).item():
                return ""
            logits = []
            for each in (np.arange(len(ids)), order):
                sequence = CachedSequence(eyes.new_cache)
                with self.reading(sequence, [*_LOOKING_IDS, *ids, *_LOOKING_IDS]) as (block, given):
                    lead, tail = len(_LOOKING_IDS), len(_LOOKING_IDS) + len(ids)
                    embedded = given["input_embeddings"]
                    middle = embedded[:, lead:tail][:, mx.array(each)]
                    embedded = mx.concatenate([embedded[:, :lead], middle, embedded[:, tail:]], axis=1)
                    logits.append(
                        eyes.parts.model(
                            block, cache=sequence.cache, **{**given, "input_embeddings": embedded}
                        )[0, -1]
                    )
            eyes.sees = not mx.array_equal(*logits).item()
        return "" if eyes.sees else "the model's answer does not depend on its images"

    def _runs(self, ids: NDArray[np.int64]) -> list[tuple[int, _Held]]:
        """Where images begin in `ids`, of which the last may be cut off."""
        found: list[tuple[int, _Held]] = []
        at = end = 0
        for at in np.flatnonzero(ids >= FIRST_IMAGE_ROW).tolist():
            if at < end:
                continue
            held = self._held.get(int(ids[at]))
            if held is None:
                raise InternalError(f"Row {at} of the context belongs to no image of the prompt.")
            found.append((at, held))
            end = at + held.scaled.rows
        return found

    def _embedded(
        self, block: mx.array, runs: Sequence[tuple[int, _Held]], whole: NDArray[np.int64], start: int
    ) -> mx.array:
        """Embeddings [1, n, size] of `block`, which begins at `start` of `whole`, with rows of images."""
        rows = self._eyes.parts.embed(block)[0]
        end, at = start + block.shape[1], start
        pieces: list[mx.array] = []
        for first, held in runs:
            low, high = max(first, start), min(first + held.scaled.rows, end)
            if low < high:
                pieces += [rows[at - start : low - start], self._rows(held)[low - first : high - first]]
                at = high
        pieces.append(rows[at - start :])
        # A copy in any case: some models scale what they are given in place.
        return mx.concatenate(pieces)[None]

    def _rows(self, held: _Held) -> mx.array:
        """The image's rows, timed."""
        started = time.perf_counter()
        found = self._eyes.rows(held.image)
        self.seconds += time.perf_counter() - started
        return found

    @contextmanager
    def _turned(self, replace: Callable[[Any], Any]) -> Iterator[None]:
        """While open, each rotary module is replaced by `replace(rope)`."""
        if self._found is None:
            self._found = rotations(self._eyes.parts.model)
        family = self._eyes.family
        try:
            for rotation in self._found:
                made = replace(rotation.rope)
                if isinstance(made, _Turned):
                    made.choose(family.sections, interleaved=family.interleaved)
                rotation.owner[rotation.key] = made
            yield
        finally:
            for rotation in self._found:
                rotation.owner[rotation.key] = rotation.rope

    def _masks(
        self, sequence: CachedSequence, runs: Sequence[tuple[int, _Held]], start: int, width: int
    ) -> list[tuple[Any, Callable[..., mx.array]]]:
        """For entries of layers in which images attend both ways: masks of a pass over `width` tokens."""
        sees = np.tri(width, dtype=np.bool_)
        for first, held in runs:
            low, high = max(0, first - start), max(0, first + held.scaled.rows - start)
            sees[low:high, low:high] = True
        both = self._eyes.family.both_ways
        entries = [each for each in leaves(sequence.cache) if both == "all" or is_window(each)]
        return [(entry, _mask_of(entry, sees)) for entry in entries]


def _mask_of(entry: Any, sees: NDArray[np.bool_]) -> Callable[..., mx.array]:
    """The mask of a pass whose rows see each other as in `sees`, and all of the past within the window."""

    def make_mask(width: int, window_size: int | None = None, return_array: bool = True) -> mx.array:
        if width != len(sees):
            raise InternalError(f"A pass of {len(sees)} rows is open; the forward has {width}.")
        if is_window(entry):
            past = window_columns(entry)
        else:
            past = columns_of(entry) if is_appending(entry) else 0
        window = window_size or (entry.max_size if is_window(entry) else None)
        found = np.concatenate([np.ones((width, past), np.bool_), sees], axis=1)
        if window is not None:
            found &= np.arange(past, past + width)[:, None] - np.arange(past + width)[None] < window
        return mx.array(found)

    return make_mask


def _held_ids(sequence: CachedSequence) -> NDArray[np.int64]:
    """The ids of the sequence's columns."""
    tokens = np.asarray(sequence.tokens, np.int64)
    return tokens[sequence.columns.places(0, sequence.columns.count)] if len(tokens) else tokens


# ---- positions in three axes
#
# Rotary modules rotate each pair of dimensions separately, so a rotation by three axes is a choice between
# three rotations by the model's own module: a dimension has the one of its axis. An image's rows begin at the
# position after the token before it; the token after it follows the larger side of its grid.


def _positions(ids: NDArray[np.int64], runs: Sequence[tuple[int, _Held]]) -> NDArray[np.int32]:
    """int32 [3, n]: positions of `ids` by time, line and column."""
    found = np.broadcast_to(np.arange(len(ids), dtype=np.int32), (3, len(ids))).copy()
    for first, held in runs:
        rows, down, across = held.scaled.rows, held.scaled.down, held.scaled.across
        place = found[0, first] if first < len(ids) else 0
        end = min(first + rows, len(ids))
        line, column = np.divmod(np.arange(end - first, dtype=np.int32), across)
        found[:, first:end] = place + np.stack([np.zeros_like(line), line, column])
        found[:, end:] += max(down, across) - rows
    return found


def _axes(positions: NDArray[np.int32], start: int) -> Callable[[Any], Any]:
    """The replacement of a rotary module in a pass over rows at `positions` [3, n] after `start` columns."""
    width = positions.shape[1]
    shift = int(positions[0, 0]) - start
    if np.array_equal(positions, np.broadcast_to(np.arange(width) + start + shift, (3, width))):
        return lambda rope: _Shifted(rope, shift)
    held = [mx.array(each) for each in positions]
    return lambda rope: _Turned(rope, held)


class _Shifted(nn.Module):  # type: ignore[misc]
    """`rope` for positions that are `shift` after a cache's offset. A module, so that trees find it."""

    def __init__(self, rope: Any, shift: int) -> None:
        super().__init__()
        # Not as the module's parts, in which `rotations` would find them again.
        object.__setattr__(self, "_held", (rope, shift))

    def __call__(self, x: mx.array, offset: Any = 0, *rest: Any, **options: Any) -> mx.array:
        rope, shift = self._held
        turned: mx.array = rope(x, offset + shift, *rest, **options)
        return turned


class _Turned:
    """`rope` for rows at three `positions` each, int32 [n], whatever the cache's offset."""

    def __init__(self, rope: Any, positions: Sequence[mx.array]) -> None:
        self._rope = rope
        self._positions = positions
        self._axis = mx.array(0)

    def choose(self, sections: Sequence[int], *, interleaved: bool) -> None:
        """Sets the axis of each dimension."""
        self._axis = mx.array(axes_of(sections, interleaved=interleaved))

    def __call__(self, x: mx.array, offset: Any = 0, *rest: Any, **options: Any) -> mx.array:
        if x.shape[-2] != self._positions[0].size:
            raise InternalError(
                f"A pass of {self._positions[0].size} rows is open; {x.shape} was to be rotated."
            )
        flipped = x.swapaxes(0, -2)
        turned = [mx.swapaxes(self._rope(flipped, each, *rest, **options), 0, -2) for each in self._positions]
        unrotated = x.shape[-1] - self._axis.size
        axis = mx.pad(self._axis, (0, unrotated)) if unrotated else self._axis
        found: mx.array = mx.where(axis == 0, turned[0], mx.where(axis == 1, turned[1], turned[2]))
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rope, name)


def axes_of(sections: Sequence[int], *, interleaved: bool) -> NDArray[np.int32]:
    """int32 [2 · pairs]: the axis (0 time, 1 line, 2 column) of each rotated dimension.

    Pairs are of dimensions i and i + pairs, as in rotary modules that are not traditional. `interleaved`: T H
    W T H W … T T (Qwen3-VL and later), else T… H… W… (Qwen2-VL, Qwen2.5-VL).
    """
    pairs = sum(sections)
    if interleaved:
        axis = np.zeros(pairs, np.int32)
        for which in (1, 2):
            axis[which : sections[which] * 3 : 3] = which
    else:
        axis = np.repeat(np.arange(3, dtype=np.int32), sections)
    return np.concatenate([axis, axis])
