"""Encoder: all-MiniLM-L6-v2, a BERT of 6 layers, in MLX.

The weights ship in resources/encoder as int8 rows with a float32 scale each and stay so in memory
(22.7 MB). A forward expands one matrix at a time to float32, at about 4% of its time, so that nothing
else is held between two calls. Float32 on Metal, too: float16 has not been measured there.

`open_encoder` and every method run on the thread that owns MLX.
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from msgspec import Struct

from core.errors import EncoderUnavailableError, reason_of
from core.system.paths import resources_dir

if TYPE_CHECKING:
    from tokenizers import Tokenizer
Array = np.ndarray[Any, Any]

LAYERS = 6
WIDTH = 384
# Word pieces of one row of a forward, with the first and the last token that BERT needs.
WINDOW = 128
# Tokens that the published model reads of a text, with the first and the last token.
MOST_TOKENS = 256
UNKNOWN = 100  # The piece of a word or character that the vocabulary lacks.

_HEADS = 12
_EPS = 1e-12
_ERF = (0.0000430638, 0.0002765672, 0.0001520143, 0.0092705272, 0.0422820123, 0.0705230784, 1.0)
_PAD, _FIRST, _LAST = 0, 101, 102
# SHA-256 of the shipped files, as `make encoder` prints them.
SHIPPED = {
    "encoder.safetensors": "b8d0c81981535425c40acee45eadeceea506e2d52cf0086a91a87a8f74c8a913",
    "tokenizer.json": "5fd1c882abbd30517dced455a2c9768945ec726b96727927e4959348d9de550b",
}
NAME = "all-MiniLM-L6-v2"
# Names vectors of this encoder on the disk. The file of this hash had no positions after 128, which
# passages do not use: their vectors are the same.
MODEL_ID = f"{NAME}/93f010f99a414a00"


class Encoder:
    """The weights and the tokenizer. `nbytes`: memory of the weights."""

    def __init__(self, arrays: dict[str, mx.array], tokenizer: Tokenizer) -> None:
        self._arrays = arrays
        self._tokenizer = tokenizer
        self.nbytes = sum(array.nbytes for array in arrays.values())

    def pieces(self, text: str) -> tuple[Array, Array]:
        """The word pieces of a well-formed text: int32 ids [n], end-exclusive character ranges [n, 2]."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        ids = np.array(encoding.ids, np.int32)
        return ids, np.array(encoding.offsets, np.int32).reshape(len(ids), 2)

    def states(self, windows: Sequence[Array]) -> mx.array:
        """Last hidden states, float32 [windows, longest + 2, 384], not evaluated.

        `windows` are ids of at most `MOST_TOKENS` - 2 pieces each. Row 0 of a window belongs to the first
        token, row 1 to its first piece; rows after the last token are padding and mean nothing.
        """
        lengths = np.array([len(window) + 2 for window in windows])
        ids = np.full((len(windows), int(lengths.max())), _PAD, np.int32)
        for row, window in zip(ids, windows):
            row[: len(window) + 2] = [_FIRST, *window, _LAST]
        used = np.arange(ids.shape[1]) < lengths[:, None]
        mask = None if used.all() else mx.array(used)[:, None, None, :]
        words = mx.array(ids)
        x = self._arrays["words"][words] * self._arrays["words.scales"][words][..., None]
        x = self._norm("norm", x + self._arrays["positions"][: ids.shape[1]])
        for layer in range(LAYERS):
            x = self._layer(f"layers.{layer}", x, mask)
        return x

    def _layer(self, name: str, x: mx.array, mask: mx.array | None) -> mx.array:
        rows, length, _ = x.shape
        qkv = self._linear(f"{name}.qkv", x).reshape(rows, length, 3, _HEADS, -1)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scale = 1 / math.sqrt(WIDTH // _HEADS)
        attended = mx.fast.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask)
        attended = self._linear(f"{name}.attended", attended.transpose(0, 2, 1, 3).reshape(x.shape))
        x = self._norm(f"{name}.attended.norm", x + attended)
        return self._norm(
            f"{name}.down.norm",
            x + self._linear(f"{name}.down", _gelu(self._linear(f"{name}.up", x))),
        )

    def _linear(self, name: str, x: mx.array) -> mx.array:
        matrix = self._arrays[name].astype(mx.float32) * self._arrays[f"{name}.scales"][:, None]
        return x @ matrix.T + self._arrays[f"{name}.bias"]

    def _norm(self, name: str, x: mx.array) -> mx.array:
        weight, bias = self._arrays[f"{name}.weight"], self._arrays[f"{name}.bias"]
        normed: mx.array = mx.fast.layer_norm(x, weight, bias, _EPS)
        return normed


def _gelu(x: mx.array) -> mx.array:
    """GELU. On the CPU by sums and products alone, as MLX computes `erf` there one element at a time.

    erf by Abramowitz and Stegun, “Handbook of Mathematical Functions”, 7.1.28: off by 3e-7 at most.
    """
    if mx.default_device() == mx.gpu:
        return mx.array(nn.gelu(x))
    z = mx.abs(x) * math.sqrt(0.5)
    y = mx.array(_ERF[0])
    for coefficient in _ERF[1:]:
        y = y * z + coefficient
    for _ in range(4):
        y = y * y
    return 0.5 * (x + mx.abs(x) * (1 - 1 / y))


def open_encoder(folder: Path | None = None) -> Encoder:
    """The encoder in `folder` (None: the one that ships), some 50 ms.

    Raises `EncoderUnavailableError` if a file is missing, differs from the shipped one, or cannot be read.
    """
    folder = folder or resources_dir() / "encoder"
    check_files(folder)
    try:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        loaded: Any = mx.load(str(folder / "encoder.safetensors"))
        mx.eval(loaded)
    except Exception as error:  # tokenizers raises plain Exception
        raise _unavailable(f"cannot be read: {reason_of(error)}") from error
    return Encoder(loaded, tokenizer)


def check_files(folder: Path | None = None) -> None:
    """Compare the encoder's files with the shipped ones. Raises `EncoderUnavailableError`."""
    folder = folder or resources_dir() / "encoder"
    for name, expected in SHIPPED.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise _unavailable(f"cannot be read: {name}: {error.strerror}") from error
        if found != expected:
            raise _unavailable(
                f"is damaged: {name} has the SHA-256 {found[:16]}…, and {expected[:16]}… is expected"
            )


def _unavailable(what: str) -> EncoderUnavailableError:
    return EncoderUnavailableError(
        f"The sentence encoder {what}.",
        "Install Draftlight again. Until then, text is compared by its words.",
    )


# ---- vectors of a text's passages, and their similarity with a question
#
# The text is cut into word pieces once. Windows of 126 pieces advance by 63, so every piece away from the
# ends has context on both sides in one of its two windows; its hidden states there are averaged with weights
# that fall off linearly from a window's middle. A passage's vector is the mean of its pieces' states.

_LENGTH = WINDOW - 2
_HOP = _LENGTH // 2
# Windows between two yields. Larger batches are not faster on the CPU, and a caller waits for one.
_BATCH_GPU, _BATCH_CPU = 16, 4
# Characters that are cut into word pieces at a time, so that a caller can cancel within milliseconds.
_SEGMENT_CHARACTERS = 32_768
_SCALE_PASSAGES = 4
# Characters of a text that are cut into word pieces first; a long text seldom needs more to fill the model.
_HEAD_CHARACTERS = 4096


class TextVectors(Struct, frozen=True):
    """Vectors of a text's passages.

    `means`: float16 [passages, 384], the mean of a passage's piece states, not normalised; zeros without
    pieces. `counts`: int32 [passages], its pieces. `unknown`: share of the text's letters that the
    vocabulary lacks or has only one by one, in scripts other than Latin: 0 in English and code, above 0.9 in
    Chinese, Japanese, Korean, Arabic, Hindi, Thai and Russian. `pieces_per_word`: mean word pieces of a word:
    1.0 to 1.5 in English, code and JSON, above 1.6 in other languages of Latin script.
    """

    means: Array
    counts: Array
    unknown: float
    pieces_per_word: float


class Pieces(Struct, frozen=True):
    """Word pieces of a text: int32 ids, and the int32 index of the passage that each begins in, or -1."""

    ids: Array
    passages: Array
    unknown: float
    pieces_per_word: float


def embed(encoder: Encoder, text: str, passages: Array) -> Generator[int, None, TextVectors]:
    """The vectors of `passages`; yields the number of encoded pieces.

    `passages`: int32 [n, 2], ascending, end-exclusive character ranges. Pieces between them belong to none,
    and windows that reach no passage are not encoded. Between two yields at most 16 windows are encoded
    (4 on the CPU).
    """
    pieces = yield from cut_pieces(encoder, text, passages)
    return (yield from embed_pieces(encoder, pieces, len(passages)))


def embed_pieces(encoder: Encoder, pieces: Pieces, passages: int) -> Generator[int, None, TextVectors]:
    """The second part of `embed`: the vectors of passages 0 to `passages` - 1."""
    count = len(pieces.ids)
    starts = range(0, max(count - _LENGTH + _HOP, 1), _HOP)
    weights = np.zeros(count, np.float32)
    for start in starts:
        weights[start : start + _LENGTH] += _triangle(min(_LENGTH, count - start))
    windows = [
        slice(start, min(start + _LENGTH, count))
        for start in starts
        if (pieces.passages[start : start + _LENGTH] >= 0).any()
    ]
    sums = np.zeros((passages, WIDTH), np.float32)
    size = _BATCH_GPU if mx.default_device() == mx.gpu else _BATCH_CPU
    for first in range(0, len(windows), size):
        batch = windows[first : first + size]
        _add_states(sums, encoder, pieces, weights, batch)
        yield batch[-1].stop
    mx.clear_cache()  # Metal otherwise keeps the buffers of a batch
    counts = np.bincount(pieces.passages[pieces.passages >= 0], minlength=passages).astype(np.int32)
    means = (sums / np.maximum(counts, 1)[:, None]).astype(np.float16)
    return TextVectors(means, counts, pieces.unknown, pieces.pieces_per_word)


def query_vector(encoder: Encoder, text: str) -> Array:
    """float32 [384]: the mean state of a question's pieces, of unit length; zeros without pieces."""
    work = embed(encoder, text, np.array([[0, len(text)]], np.int32))
    while True:
        try:
            next(work)
        except StopIteration as end:
            vector = end.value.means[0].astype(np.float32)
            return np.asarray(vector / (np.linalg.norm(vector) or 1), np.float32)


def text_vectors(encoder: Encoder, texts: Sequence[str]) -> tuple[Array, Array, Array]:
    """Vectors of whole texts as the published model makes them.

    float32 [texts, 384] of unit length: the mean of all hidden states, those of the first and the last token
    included. int32 [texts], tokens read, these two included. bool [texts], whether the text has more tokens
    than the model reads. Source: `1_Pooling` and `2_Normalize` of sentence-transformers/all-MiniLM-L6-v2.
    """
    rows = [_first_pieces(encoder, text) for text in texts]
    ids = [row[: MOST_TOKENS - 2] for row in rows]
    counts = np.array([len(row) + 2 for row in ids], np.int32)
    vectors = np.zeros((len(texts), WIDTH), np.float32)
    size = _BATCH_GPU if mx.default_device() == mx.gpu else _BATCH_CPU
    by_length = np.argsort(counts, kind="stable")
    for first in range(0, len(texts), size):
        batch = by_length[first : first + size]
        states = encoder.states([ids[at] for at in batch])
        used = np.arange(states.shape[1]) < counts[batch][:, None]
        vectors[batch] = np.array(mx.array(used.astype(np.float32))[:, None, :] @ states)[:, 0]
    mx.clear_cache()  # Metal otherwise keeps the buffers of a batch
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors, counts, np.array([len(row) > MOST_TOKENS - 2 for row in rows], bool)


def _first_pieces(encoder: Encoder, text: str) -> Array:
    """Ids of the first word pieces of a text, int32 [n]: all, or more than the model reads."""
    characters = _HEAD_CHARACTERS
    while True:
        ids, ranges = encoder.pieces(text[:characters])
        # A cut changes the pieces of the last word only, which has at most 100 characters or is unknown.
        complete = ids[ranges[:, 1] < characters - 100] if characters < len(text) else ids
        if characters >= len(text) or len(complete) > MOST_TOKENS - 2:
            return np.asarray(complete, np.int32)
        characters *= 8


def similarity(vectors: TextVectors, query: Array) -> Array:
    """float32 [passages]: the similarity of each passage with `query`, -3 to 3.

    The sum of three cosines: of the passage; of the passage with its two neighbours; the best of the windows
    of four passages that hold it. Means over several passages weigh them by their pieces.
    """
    count = len(vectors.counts)
    if not count:
        return np.zeros(0, np.float32)
    sums = vectors.means.astype(np.float32) * vectors.counts[:, None]
    near = sums.copy()
    near[1:] += sums[:-1]
    near[:-1] += sums[1:]
    size = min(_SCALE_PASSAGES, count)
    windows = np.sum([sums[first : count - size + 1 + first] for first in range(size)], axis=0)
    around = np.pad(_cosines(windows, query), size - 1, constant_values=-1)
    best = np.lib.stride_tricks.sliding_window_view(around, size).max(axis=1)
    return np.asarray(_cosines(sums, query) + _cosines(near, query) + best, np.float32)


def _cosines(rows: Array, query: Array) -> Array:
    norms = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
    return np.asarray(rows @ query / np.where(norms == 0, 1, norms))


def _triangle(length: int) -> Array:
    """Weights of a window's pieces, the highest in its middle."""
    return np.minimum(np.arange(1, length + 1), np.arange(length, 0, -1)).astype(np.float32)


def _add_states(sums: Array, encoder: Encoder, pieces: Pieces, weights: Array, windows: list[slice]) -> None:
    """Add the weighted states of the pieces in `windows` to `sums`, float32 [passages, 384]."""
    states = encoder.states([pieces.ids[window] for window in windows])
    passages = np.full(states.shape[:2], -1, np.int32)
    shares = np.zeros(states.shape[:2], np.float32)
    for row, window in enumerate(windows):
        length = window.stop - window.start
        passages[row, 1 : length + 1] = pieces.passages[window]
        shares[row, 1 : length + 1] = _triangle(length) / weights[window]
    held, index = np.unique(passages, return_inverse=True)
    matrix = np.zeros((len(held), passages.size), np.float32)
    matrix[index.ravel(), np.arange(passages.size)] = shares.ravel()
    added = np.array(mx.array(matrix) @ states.reshape(-1, WIDTH))
    sums[held[held >= 0]] += added[held >= 0]


def cut_pieces(encoder: Encoder, text: str, passages: Array) -> Generator[int, None, Pieces]:
    """The first part of `embed`: the word pieces of `text`. Yields 0 after each segment."""
    ids, starts, letters = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], np.zeros(4, np.int64)
    for start, end in _segments(len(text), passages):
        found, ranges = encoder.pieces(text[start:end])
        letters += _letters(text[start:end], found, ranges)
        ids.append(found)
        starts.append(ranges[:, 0] + start)
        yield 0
    begins = np.concatenate(starts)
    if len(passages):
        index = np.searchsorted(passages[:, 0], begins, side="right") - 1
        index[(index >= 0) & (begins >= passages[index, 1])] = -1
    else:
        index = np.full(len(begins), -1)
    all_letters, unknown, words, pieces = letters.tolist()
    return Pieces(
        np.concatenate(ids), index.astype(np.int32), unknown / max(all_letters, 1), pieces / max(words, 1)
    )


def _segments(characters: int, passages: Array) -> Iterator[tuple[int, int]]:
    """End-exclusive ranges that cover the text and begin where a passage does."""
    begin = 0
    for start in passages[:, 0].tolist():
        if start - begin >= _SEGMENT_CHARACTERS:
            yield begin, start
            begin = start
    if begin < characters:
        yield begin, characters


def _letters(text: str, ids: Array, ranges: Array) -> Array:
    """int64 [4]: letters of `text`, unknown ones, words, pieces that hold letters.

    Words are runs of letters, cut before a capital that follows a small letter, as identifiers are.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    known, index = np.unique(codes, return_inverse=True)
    letters, foreign, capital = np.array([_kinds(chr(code)) for code in known], bool).reshape(-1, 3)[index].T
    long = (ids != UNKNOWN) & (ranges[:, 1] - ranges[:, 0] > 1)
    unknown = letters & (foreign & ~_covered(len(text), ranges[long]))
    unknown |= letters & _covered(len(text), ranges[ids == UNKNOWN])
    begins = letters.copy()
    begins[1:] &= ~letters[:-1] | (capital[1:] & ~capital[:-1])
    return np.array([letters.sum(), unknown.sum(), begins.sum(), letters[ranges[:, 0]].sum()], np.int64)


def _covered(characters: int, ranges: Array) -> Array:
    """bool [characters]: whether each is in one of `ranges`, int32 [n, 2]."""
    edges = np.bincount(ranges[:, 0], minlength=characters + 1)
    edges -= np.bincount(ranges[:, 1], minlength=characters + 1)
    return np.asarray(edges[:-1].cumsum() > 0)


def _kinds(character: str) -> tuple[bool, bool, bool]:
    """Whether it is a letter (or a mark on one), one of a script other than Latin, and a capital."""
    if character.isascii():
        return character.isalpha(), False, character.isupper()
    letter = unicodedata.category(character)[0] in "LM"
    latin = unicodedata.name(character, "").startswith(("LATIN", "COMBINING"))
    return letter, letter and not latin, character.isupper()
